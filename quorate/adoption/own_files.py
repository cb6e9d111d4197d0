"""Which files beside a log are ours and not Kafka's."""

from __future__ import annotations

from collections.abc import Iterable

from quorum.log.layout import (
    DIGEST_SUFFIX,
    LOG_START_NAME,
    WATERMARK_NAMES,
    parse_segment_name,
)


def own_side_files(names: Iterable[str], *, with_log_start: bool) -> tuple[str, ...]:
    """Those of ``names`` that follow from the log, and ``log-start`` if that is wanted too."""
    wanted = {*WATERMARK_NAMES, LOG_START_NAME} if with_log_start else {*WATERMARK_NAMES}
    return tuple(
        sorted(
            name
            for name in names
            if name in wanted or parse_segment_name(name, DIGEST_SUFFIX) is not None
        )
    )
