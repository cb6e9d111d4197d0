"""Settings of checkpoints: when to write one, and how long a transfer may hold one."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.errors import ConfigError


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
        found = []
        if not 0 <= self.min_changed_records_ratio <= 1:
            found.append(
                "min_changed_records_ratio must be within 0 and 1, not "
                f"{self.min_changed_records_ratio}"
            )
        if self.max_bytes_between < 1:
            found.append(f"max_bytes_between must be at least 1, not {self.max_bytes_between}")
        if self.interval_ms is not None and self.interval_ms < 1:
            found.append(f"interval_ms must be at least 1 or absent, not {self.interval_ms}")
        if self.lease_ms < 1:
            found.append(f"lease_ms must be at least 1, not {self.lease_ms}")
        return found

    def validate(self) -> None:
        """Check all settings together.

        Raises:
            ConfigError: With every problem found.
        """
        found = self.problems()
        if found:
            raise ConfigError(found)
