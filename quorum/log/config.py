"""Settings of the log on disk, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quorum.errors import ConfigError
from quorum.ranges import Range, out_of_range

SEGMENT_BYTES_MAX = (1 << 31) - 1
"""Positions in Kafka's index are signed 32-bit numbers."""

RANGES: Final[Mapping[str, Range]] = {
    "segment_bytes": Range(1, SEGMENT_BYTES_MAX),
    "index_interval_bytes": Range(0, SEGMENT_BYTES_MAX),
    "scan_bytes": Range(1, SEGMENT_BYTES_MAX),
}
"""Every number of ``LogConfig``."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes of segments and their indexes. ``validate`` reports all problems at once."""

    segment_bytes: int = 1 << 30
    """``metadata.log.segment.bytes``: a segment that would grow beyond this is sealed and a new
    one begun. One append larger than this still goes into one segment."""
    index_interval_bytes: int = 4096
    """``index.interval.bytes``: log bytes between two index entries."""
    scan_bytes: int = 4 << 20
    """Bytes read at once when a whole segment is scanned."""

    def problems(self) -> list[str]:
        """Every setting that cannot work, as one sentence each; empty when all can."""
        return out_of_range(self, RANGES)

    def validate(self) -> None:
        """Check all settings together.

        Raises:
            ConfigError: With every problem found.
        """
        found = self.problems()
        if found:
            raise ConfigError(found)
