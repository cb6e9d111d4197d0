"""The refusal of a log read when the next batch does not fit in a message.

A batch is atomic and cannot be sent in parts. The limit on client writes keeps our batches smaller
than a message. A larger batch may have got into the log otherwise; the refusal then explains how
its readers can continue.
"""

from __future__ import annotations

from quorate.client.limits import MESSAGE_BYTES_MAX
from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode


def check_batch_fits(
    base_offset: int, end_offset: int, size_bytes: int, *, framing_bytes: int = 0
) -> None:
    """Pass if one message holds the batch [``base_offset``, ``end_offset``) and its framing.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, with the batch's place and how to continue.
    """
    if size_bytes + framing_bytes > MESSAGE_BYTES_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch [{base_offset}, {end_offset}) has {size_bytes} bytes, more than a message "
            f"holds; read it with `quorate log dump` where a node keeps its log, and go on from "
            f"offset {end_offset}",
        )


def check_state_fits(offset: int, size_bytes: int) -> None:
    """Pass if a message holds this part of the state at ``offset``.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, with the state's place and how to continue.
    """
    if size_bytes > MESSAGE_BYTES_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of the state has {size_bytes} bytes, more than a message holds; read the "
            f"state with `quorate snapshot dump` where a node keeps its checkpoints, and go on "
            f"from offset {offset}",
        )
