"""The healing phase of a run: faults have ended, and the cluster must recover within bounds.

Half of the runs heal in two steps (``survivors``). The fault phase ends with a minority down or cut
off, and the other nodes must pass the checks below without it. Then the minority comes back, and
the whole cluster must pass them again.

1. *Progress.* There is a leader, a fresh write is acknowledged, and a linearizable read sees it.
   Survivors without a minority have ``progress_bound_ms`` for that.
2. *Convergence.* Within ``HEALING_MAX_US`` every client knows the outcome of its commands, every
   node has the leader's log, every watcher has received every change, every consumer has read the
   log, images are equal, and every acknowledged write is in the log once.
3. *Stability.* From then on, without writes, leader and epoch do not change. Every node knows where
   clients reach the leader.

Meanwhile nodes with corrupt files scrub them, as they do in the background.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from quorate.controller.requests import Answer, RequestContext
from quorum.config import QuorumConfig
from quorum.errors import ErrorCode
from quorum.types import Epoch, NodeId
from simulation.cluster import Cluster
from simulation.environment import endpoints_of
from simulation.invariants.violation import Violation
from simulation.member import Member
from simulation.survivors import Ending, leave_minority
from statemachine.commands import InitProducerId
from statemachine.dump import state_digest

HEALING_MAX_US = 30_000_000
ELECTION_ROUNDS = 6
"""Failed election rounds that are allowed, each of two election timeouts."""
_SLICE_US = 10_000


def progress_bound_ms(config: QuorumConfig) -> int:
    """Return how long a connected majority may take until it serves writes and reads again, in ms.

    Twice the fetch timeout, until followers and a leader without a majority have given up (at most
    1.5 times it, plus a quarter for a process that was paused); then ``ELECTION_ROUNDS``; then the
    request timeout, for a Fetch that was sent to a dead node.
    """
    return (
        2 * config.fetch_timeout_ms
        + 2 * ELECTION_ROUNDS * config.election_timeout_ms
        + config.request_timeout_ms
    )


def heal_and_check(cluster: Cluster, ending: Ending) -> int:
    """End all faults, in one step or in two, and check that the cluster recovers.

    Returns the part of the allowed time that the survivors took for progress, in percent; 0 where
    everything healed in one step.

    Raises:
        Violation: The cluster did not recover in time, or not correctly.
    """
    members = list(cluster.members.values())
    away = leave_minority(cluster, ending.rng) if ending.leaves_minority else []
    percent = 0
    if away:
        cluster.happened("minority-left-out")
        percent = HealingPhase(cluster, [each for each in members if each not in away]).run()
    cluster.heal()
    HealingPhase(cluster, members).run()
    return percent


class HealingPhase:
    """The checks for ``members``, which can reach each other and run or are about to."""

    def __init__(self, cluster: Cluster, members: Collection[Member]) -> None:
        self._cluster = cluster
        self._members = members
        self._began_us = cluster.scheduler.now_us
        self._bound_us = 1_000 * progress_bound_ms(cluster.settings.quorum)
        is_whole = len(members) == len(cluster.members)
        # With all nodes back, some may have to download what they lost, which takes longer.
        self._limit_us = HEALING_MAX_US if is_whole else self._bound_us
        self._answers: list[Answer] = []
        self._reads: list[int | None] = []
        self._asked: tuple[Member, int] | None = None
        """The node that received the fresh write, and its incarnation then."""

    def run(self) -> int:
        """Run the three checks; return the percentage of the allowed time that progress took."""
        taken_us = self._make_progress()
        self._converge()
        check_end(self._cluster, self._members)
        self._check_stability()
        return 100 * taken_us // self._bound_us

    # ------------------------------------------------------------------ progress

    def _make_progress(self) -> int:
        scheduler = self._cluster.scheduler
        while scheduler.now_us < self._began_us + self._limit_us:
            self._pass()
            if not (self._answers and self._answers[-1].code == ErrorCode.NONE):
                if self._answers or not self._is_under_way():
                    self._ask()
            elif not self._reads or self._reads[-1] is None:
                self._read()
            else:
                _check_read(self._answers[-1].offset, self._reads[-1])
                return scheduler.now_us - self._began_us
        return self._fail("no progress in time")

    def _pass(self) -> None:
        """Advance the simulation by one step of time."""
        scheduler = self._cluster.scheduler
        slice_end = scheduler.now_us + _SLICE_US
        while scheduler.now_us < slice_end:
            scheduler.step()
        for member in self._members:
            member.scrub()

    def _leader(self) -> Member | None:
        for member in self._members:
            if member.replica is not None and member.replica.node.can_write:
                return member
        return None

    def _is_under_way(self) -> bool:
        """Return whether the process that received the fresh write may still answer."""
        return self._asked is not None and self._asked[0].incarnation == self._asked[1]

    def _ask(self) -> None:
        """Send a fresh write to the leader, if there is one."""
        self._answers.clear()
        leader = self._leader()
        self._asked = None if leader is None else (leader, leader.incarnation)
        if leader is not None:
            leader.serve(
                "fresh write",
                lambda replica: replica.controller.submit(
                    InitProducerId(), RequestContext("fresh"), self._answers.append
                ),
            )

    def _read(self) -> None:
        """Ask the leader for a linearizable read, if there is one."""
        self._reads.clear()
        leader = self._leader()
        if leader is not None:
            leader.serve(
                "fresh read", lambda replica: replica.controller.confirm_read(self._reads.append)
            )

    # ------------------------------------------------------------------ convergence

    def _converge(self) -> None:
        cluster = self._cluster
        cluster.clients.stop()
        while cluster.scheduler.now_us < self._began_us + HEALING_MAX_US:
            if cluster.clients.are_settled() and self._is_level():
                return
            self._pass()
        self._fail("the cluster did not converge")

    def _is_level(self) -> bool:
        ends = set()
        for member in self._members:
            replica = member.replica
            if replica is None:
                return False
            node = replica.node
            applied = replica.controller.image.provenance.end_offset
            ends |= {node.log_end_offset, node.high_watermark, applied}
        if len(ends) != 1:
            return False
        end = ends.pop()
        return self._cluster.watchers.have(end) and self._cluster.consumers.have(end)

    def _fail(self, message: str) -> NoReturn:
        raise Violation(
            "liveness",
            message,
            answers=self._answers,
            reads=self._reads,
            watchers=self._cluster.watchers.offsets(),
            consumers=self._cluster.consumers.offsets(),
            healing=sorted(each.id for each in self._members),
            **{f"node{each.id}": each.state() for each in self._cluster.members.values()},
        )

    # ------------------------------------------------------------------ stability

    def _check_stability(self) -> None:
        """Check that leader and epoch stay the same for as long as a leader tolerates silence."""
        cluster = self._cluster
        end_us = cluster.scheduler.now_us + 1_000 * cluster.settings.quorum.check_quorum_ms
        incarnations, before = self._incarnations(), self._leaders()
        while cluster.scheduler.now_us < end_us:
            self._pass()
        # A node that found corruption in its own files has restarted.
        is_intact = incarnations == self._incarnations()
        if not (is_intact and self._answers_are_in_time()):
            return
        if before != self._leaders():
            raise Violation(
                "stable-leader",
                "leader or epoch changed although nothing went wrong",
                before=before,
                after=self._leaders(),
            )
        self._check_addresses()

    def _check_addresses(self) -> None:
        """Check that every node knows where peers and clients reach the leader."""
        leader = self._leader()
        if leader is None:
            return
        expected = (leader.id, tuple(each.address for each in endpoints_of(leader.id)))
        for member in self._members:
            if member is leader or member.replica is None:
                continue
            known = member.replica.driver.addresses.leader
            if known != expected:
                raise Violation(
                    "leader-addresses",
                    "a node does not know where clients reach the leader",
                    node=member.id,
                    known=known,
                    leader=leader.id,
                )

    def _answers_are_in_time(self) -> bool:
        """Whether an idle leader answers each Fetch before its follower gives up.

        A Fetch is held by the leader's clock and given up by the follower's. With the widest drift
        the longest hold is longer than the shortest timeout; then elections are no mistake.
        """
        plan, quorum = self._cluster.plan, self._cluster.settings.quorum
        slow, fast = 1_000 - plan.drift_per_mille, 1_000 + plan.drift_per_mille
        longest_us = quorum.fetch_max_wait_ms * 1_000_000 // slow + 2 * plan.delay_max_us
        return longest_us < quorum.request_timeout_ms * 1_000_000 // fast

    def _incarnations(self) -> list[int]:
        return [each.incarnation for each in self._members]

    def _leaders(self) -> dict[NodeId, tuple[Epoch, NodeId]]:
        """Return the epoch and the leader known to each node."""
        return {
            each.id: (each.replica.node.epoch, each.replica.node.leader_id)
            for each in self._members
            if each.replica is not None
        }


def _check_read(written: int, read: int | None) -> None:
    if read is not None and read < written:
        raise Violation(
            "confirmed-reads", "the fresh read misses the fresh write", written=written, read=read
        )


def check_end(cluster: Cluster, members: Collection[Member]) -> None:
    """Check one leader, equal images, and every acknowledged write at its acknowledged offset."""
    leaders = [
        each.id for each in members if each.replica is not None and each.replica.node.is_leader
    ]
    if len(leaders) != 1:
        raise Violation("liveness", "not exactly one leader in the healing phase", leaders=leaders)
    digests = {
        state_digest(each.replica.controller.image) for each in members if each.replica is not None
    }
    if len(digests) != 1:
        raise Violation(
            "equal-images", "images differ although all logs are equal", nodes=len(members)
        )
    committed = cluster.run_observer.sequences
    for key, offset in cluster.clients.acknowledged().items():
        if committed.get(key) != offset:
            raise Violation(
                "acknowledged-survives",
                "an acknowledged write is missing",
                command=key,
                acknowledged=offset,
                found=committed.get(key),
            )
