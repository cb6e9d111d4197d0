"""The configuration of the nodes of a simulated run."""

from __future__ import annotations

import random
from dataclasses import dataclass

from quorum.config import QuorumConfig
from quorum.log.config import LogConfig
from snapshot.config import SnapshotConfig


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration, equal on all nodes."""

    quorum: QuorumConfig
    log: LogConfig
    snapshot: SnapshotConfig
    idle_ms: int
    uses_native_codec: bool = True
    """Whether records are in the native codec; else they are in Kafka's."""

    @staticmethod
    def draw(rng: random.Random) -> Settings:
        """Draw small sizes and short times, so that a few thousand events reach every code path."""
        election = rng.choice((60, 150))
        return Settings(
            QuorumConfig(
                election_timeout_ms=election,
                fetch_timeout_ms=2 * election,
                election_backoff_max_ms=election,
                fetch_max_wait_ms=rng.choice((10, 40)),
                fetch_bytes_max=rng.choice((200, 1_000, 1 << 20)),
                snapshot_chunk_bytes=rng.choice((150, 1_000, 1 << 20)),
                request_timeout_ms=rng.choice((50, 200)),
                retry_backoff_ms=5,
                disk_stall_ms=4 * election,
                lost_leader_jitter_ms=20,
                lost_leader_retry_ms=30,
                process_pause_ms=election // 4,
                observer_session_ms=1_000,
                start_offset_lag_max_ms=rng.choice((50, 300)),
                high_watermark_store_ms=rng.choice((20, 200)),
            ),
            LogConfig(
                segment_bytes=rng.choice((600, 3_000, 1 << 20)),
                index_interval_bytes=rng.choice((100, 4_096)),
            ),
            SnapshotConfig(
                min_changed_records_ratio=rng.choice((0.0, 0.5)),
                max_bytes_between=rng.choice((400, 1_500, 6_000)),
                lease_ms=300,
            ),
            rng.choice((0, 100)),
        )
