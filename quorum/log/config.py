"""Settings of the log on disk, in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.errors import ConfigError

SEGMENT_BYTES_MAX = (1 << 31) - 1
"""Positions in Kafka's index are signed 32-bit numbers."""


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
        found = []
        if not 1 <= self.segment_bytes <= SEGMENT_BYTES_MAX:
            found.append(
                f"segment_bytes must be in 1 to {SEGMENT_BYTES_MAX}, not {self.segment_bytes}"
            )
        if self.index_interval_bytes < 0:
            found.append(
                f"index_interval_bytes must be at least 0, not {self.index_interval_bytes}"
            )
        if self.scan_bytes < 1:
            found.append(f"scan_bytes must be at least 1, not {self.scan_bytes}")
        return found

    def validate(self) -> None:
        """Check all settings together.

        Raises:
            ConfigError: With every problem found.
        """
        found = self.problems()
        if found:
            raise ConfigError(found)
