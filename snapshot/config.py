"""Settings of checkpoints: when to write one, and how long a transfer may keep one."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.setting import AGE, BYTES, WAIT, Range, out_of_range, setting


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """All tunable settings of checkpoints. ``problems`` reports all problems."""

    min_changed_records_ratio: float = setting(
        0.5, "Share of the newest checkpoint that must have changed before the next.",
        Range(0, 1), kafka="metadata.snapshot.min.changed_records.ratio",
    )  # fmt: skip
    max_bytes_between: int = setting(
        20 << 20, "Log bytes since the newest checkpoint; both thresholds must be reached.",
        BYTES, kafka="metadata.log.max.record.bytes.between.snapshots",
    )  # fmt: skip
    interval_ms: int | None = setting(
        None, "Checkpoint at least this often if anything is new; 0: off.",
        AGE, kafka="metadata.log.max.snapshot.interval.ms",
    )  # fmt: skip
    cpu_share: float = setting(
        0.05, "Share of one core that writing a checkpoint may take; 1: as fast as it can.",
        Range(0.01, 1),
    )  # fmt: skip
    lease_ms: int = setting(60_000, "A transfer idle for this long no longer keeps its file.", WAIT)

    def problems(self) -> list[str]:
        """Return one sentence per invalid setting; empty if all are valid."""
        return out_of_range(self)
