"""Nodes that are cut off for a while, and meet a stranger there: afterwards all must follow again.

Under many faults the next election brings back a node that was moved to a later epoch. Here nothing
else goes wrong, so no election comes by itself.
"""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.log.config import LogConfig
from simulation.invariants.violation import Violation
from simulation.settings import Settings
from snapshot.config import SnapshotConfig
from tests.simulation.experiments.experiment import Experiment
from tests.simulation.experiments.quiet_cluster import QuietCluster

NAME = "liveness"
WRITE_MS_MAX = 20_000
ELECTION_MS = 60
APART_MS_MAX = 20 * ELECTION_MS
LEVEL_MS_MAX = 200 * ELECTION_MS
"""Time for three transfers of leadership, at most one in 30 election timeouts, and for the rest."""
STEP_MS = 20


def run(seed: int) -> Violation | None:
    """A minority of the voters and any observers are cut off now and then, and a stranger asks."""
    quorum = QuorumConfig(
        election_timeout_ms=ELECTION_MS, fetch_timeout_ms=2 * ELECTION_MS,
        election_backoff_max_ms=ELECTION_MS, disk_stall_ms=4 * ELECTION_MS,
        process_pause_ms=ELECTION_MS // 4, observer_session_ms=1_000,
    )  # fmt: skip
    settings = Settings(quorum, LogConfig(), SnapshotConfig(), idle_ms=500)
    try:
        cluster = QuietCluster(seed, settings, voters=(1, 3), observers=(1, 2))
        rng = cluster.rng
        if not cluster.write(WRITE_MS_MAX):
            return Violation(NAME, "no write was acknowledged")
        cluster.pass_ms(rng.randint(100, 1_000))
        for _ in range(rng.randint(1, 3)):
            _cut_some_off(cluster)
            cluster.network.heal()
            cluster.pass_ms(rng.randint(0, APART_MS_MAX))
        if not cluster.write(WRITE_MS_MAX):
            return Violation(NAME, "no write was acknowledged after the stranger has left")
        return _comes_level(cluster)
    except Violation as found:
        return found


def _cut_some_off(cluster: QuietCluster) -> None:
    rng, members = cluster.rng, cluster.members
    spared = (len(cluster.voter_ids) - 1) // 2
    away = rng.sample(cluster.voter_ids, rng.randint(0, spared))
    away += rng.sample(cluster.observer_ids, rng.randint(0, len(cluster.observer_ids)))
    cluster.network.cut(away, [each for each in members if each not in away], both_ways=True)
    for _ in range(rng.randint(1, 8)):
        cluster.pass_ms(rng.randint(0, APART_MS_MAX // 4))
        cluster.network.stranger.forge_request(members[rng.choice(sorted(members))])


def _comes_level(cluster: QuietCluster) -> Violation | None:
    """Every node follows the leader in its epoch, and has all of its log."""
    states: dict[str, object] = {}
    for _ in range(LEVEL_MS_MAX // STEP_MS):
        cluster.pass_ms(STEP_MS)
        nodes = [each.replica.node for each in cluster.members.values() if each.replica is not None]
        if len(nodes) == len(cluster.members) and len(
            {(node.epoch, node.leader_id, node.log_end_offset) for node in nodes}
        ) == 1 and nodes[0].leader_id >= 0:  # fmt: skip
            return None
        states = {f"node{each.id}": each.state() for each in cluster.members.values()}
    return Violation(NAME, "not all nodes follow the leader again", **states)


CUT_OFF = Experiment("nodes cut off, and a stranger", run)
