"""Settings of checkpoints: when to write one, and how long a transfer may hold one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quorum.errors import ConfigError
from quorum.ranges import BYTES_MAX, CENTURY_MS, HOUR_MS, Range, out_of_range

RANGES: Final[Mapping[str, Range]] = {
    "min_changed_records_ratio": Range(0, 1),
    "max_bytes_between": Range(1, BYTES_MAX),
    "interval_ms": Range(1, CENTURY_MS),
    "lease_ms": Range(1, HOUR_MS),
}
"""Every number of ``SnapshotConfig``."""


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """Everything about checkpoints that may be tuned. ``validate`` reports all problems."""

    min_changed_records_ratio: float = 0.5
    """``metadata.snapshot.min.changed_records.ratio`` (630.4)."""
    max_bytes_between: int = 20 << 20
    """``metadata.log.max.record.bytes.between.snapshots`` (630.4)."""
    interval_ms: int | None = None
    """Also write one when the newest is this old and the log has moved on; None: never."""
    lease_ms: int = 60_000
    """A transfer that has read nothing for this long no longer keeps a file from deletion."""

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
