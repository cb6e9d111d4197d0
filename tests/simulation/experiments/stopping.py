"""An operator who asks before a node is stopped: after a yes the majority is not lost.

Real are the replicas and the command's own reasoning (``quorate.cli.quorum_may_stop``), which asks
the leader and waits in virtual time.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from quorate.cli import quorum_may_stop
from quorate.cli.exits import CliError, Exit
from quorate.client.results.admin import DescribeQuorumResponse, QuorumReplica
from quorum.config import QuorumConfig
from quorum.core.state.replica_progress import ReplicaView
from quorum.log.config import LogConfig
from simulation.invariants.violation import Violation
from simulation.member import Member
from simulation.memory_filesystem import KEEP_ALL
from simulation.settings import Settings
from snapshot.config import SnapshotConfig
from tests.simulation.experiments.experiment import Experiment
from tests.simulation.experiments.quiet_cluster import QuietCluster

NAME = "may-stop"
AGO_MS_MAX = 3_500
"""How long ago other voters may have died when the operator asks."""
WRITE_MS_MAX = 20_000


def run(seed: int) -> Violation | None:
    """Some voters die, an operator asks about another one, and stops it if that is allowed."""
    config = QuorumConfig()
    settings = Settings(config, LogConfig(), SnapshotConfig(), idle_ms=500)
    try:
        cluster = QuietCluster(seed, settings, voters=(3, 5))
        rng, voters = cluster.rng, sorted(cluster.members)
        if not cluster.write(WRITE_MS_MAX):
            return Violation("liveness", "no write was acknowledged")
        cluster.pass_ms(rng.randint(1_000, 3_000))
        dead = rng.sample(voters, rng.randint(0, (len(voters) - 1) // 2))
        for each in dead:
            _stop(cluster.members[each])
        cluster.pass_ms(rng.randint(0, AGO_MS_MAX))
        node_id = rng.choice([each for each in voters if each not in dead])
        may_stop = _may_stop(cluster, node_id)
        if not dead and may_stop is not True:
            return Violation(NAME, "all voters live, and none may be stopped", node=node_id)
        if may_stop:
            _stop(cluster.members[node_id])
            if not cluster.write(WRITE_MS_MAX):
                return Violation(NAME, "no majority is left", dead=dead, stopped=node_id)
    except Violation as found:
        return found
    return None


def _stop(member: Member) -> None:
    member.crash("kill", KEEP_ALL, is_refusing=True)


def _may_stop(cluster: QuietCluster, node_id: int) -> bool | None:
    """What the command says; None where it finds no leader to ask."""

    def ask(session: object, work: object) -> DescribeQuorumResponse:
        del session, work
        leader = cluster.leader()
        if leader is None:
            raise CliError("no leader", code=Exit.UNREACHABLE)
        return _described(leader, cluster.settings.quorum.check_quorum_ms)

    virtual = SimpleNamespace(
        monotonic=lambda: cluster.scheduler.now_us / 1e6,
        sleep=lambda seconds: cluster.pass_ms(round(1_000 * seconds)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quorum_may_stop, "ask", ask)
        patch.setattr(quorum_may_stop, "time", virtual)
        try:
            found = quorum_may_stop._probed(SimpleNamespace(timeout_s=1.0), node_id, 0)  # type: ignore[arg-type]  # nobody looks into it
        except CliError:
            return None
    return not found.reasons


def _described(leader: Member, check_quorum_ms: int) -> DescribeQuorumResponse:
    """As the leader's service answers, by its own clock."""
    assert leader.replica is not None
    node = leader.replica.node
    return DescribeQuorumResponse(
        leader_id=leader.id,
        leader_epoch=node.epoch,
        node_id=leader.id,
        directory_id=leader.key.directory_id,
        is_leader=True,
        log_end_offset=node.log_end_offset,
        timestamp_ms=leader.clock.now_ms(),
        check_quorum_ms=check_quorum_ms,
        voters=[_replica(view) for view in node.replicas() if view.is_voter],
    )


def _replica(view: ReplicaView) -> QuorumReplica:
    return QuorumReplica(
        replica_id=view.key.id,
        directory_id=view.key.directory_id,
        log_end_offset=view.log_end_offset,
        last_fetch_timestamp_ms=view.last_fetch_ms,
        last_caught_up_timestamp_ms=view.last_caught_up_ms,
    )


STOPPING = Experiment("a voter is stopped", run)
