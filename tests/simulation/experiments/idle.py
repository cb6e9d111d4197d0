"""A cluster that nobody writes to for a long time: its log must not grow for ever."""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.log.config import LogConfig
from simulation.invariants.violation import Violation
from simulation.settings import Settings
from snapshot.config import SnapshotConfig
from tests.simulation.experiments.experiment import Experiment
from tests.simulation.experiments.quiet_cluster import QuietCluster

NAME = "idle-log"
BYTES_BETWEEN = 2_000
IDLE_MS = 50
PASS_MS = 10_000
"""Time in which an idle leader writes several times ``BYTES_BETWEEN``."""


def run(seed: int) -> Violation | None:
    """Write a little, then nothing: every log is trimmed again and again all the same."""
    snapshot = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=BYTES_BETWEEN)
    settings = Settings(QuorumConfig(), LogConfig(), snapshot, idle_ms=IDLE_MS)
    try:
        cluster = QuietCluster(seed, settings, voters=(1, 3))
        for _ in range(cluster.rng.randint(20, 60)):
            if not cluster.write(within_ms=20_000):
                return Violation("liveness", "no write was acknowledged")
        cluster.pass_ms(PASS_MS)
        ends = {each.id: _log(cluster, each.id)[1] for each in cluster.members.values()}
        cluster.pass_ms(2 * PASS_MS)
        for node_id, end in ends.items():
            start, now = _log(cluster, node_id)
            if start < end:
                text = "an idle log is not trimmed"
                return Violation(NAME, text, node=node_id, start=start, end=now)
    except Violation as found:
        return found
    return None


def _log(cluster: QuietCluster, node_id: int) -> tuple[int, int]:
    replica = cluster.members[node_id].replica
    assert replica is not None
    return replica.node.log_start.offset, replica.node.log_end_offset


IDLE = Experiment("an idle cluster", run)
