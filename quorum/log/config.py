"""Settings of the log on disk, in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.errors import ConfigError
from quorum.setting import Range, out_of_range, setting

SEGMENT_BYTES_MAX = (1 << 31) - 1
"""Positions in Kafka's index are signed 32-bit numbers."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes of segments and their indexes. ``validate`` reports all problems at once."""

    segment_bytes: int = setting(
        1 << 30, "Size at which a log segment is sealed; a larger append still goes into one.",
        Range(1, SEGMENT_BYTES_MAX), kafka="metadata.log.segment.bytes",
    )  # fmt: skip
    index_interval_bytes: int = setting(
        4096, "Log bytes between two index entries.",
        Range(0, SEGMENT_BYTES_MAX), kafka="index.interval.bytes",
    )  # fmt: skip
    scan_bytes: int = setting(
        4 << 20, "Bytes read at once when a segment is scanned.", Range(1, SEGMENT_BYTES_MAX)
    )

    inline_sync_ms_max: float = setting(
        2.0,
        "Small appends are written on the event loop's thread while none of the latest 100 syncs "
        "took longer than this; 0: always on the writer thread.",
        Range(0, 1000),
    )

    def problems(self) -> list[str]:
        """Return one sentence per invalid setting; empty if all are valid."""
        return out_of_range(self)

    def validate(self) -> None:
        """Check all settings together.

        Raises:
            ConfigError: With every problem found.
        """
        found = self.problems()
        if found:
            raise ConfigError(found)
