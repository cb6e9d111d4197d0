"""One run of one seed: a storm in which safety is checked at every step, then calm.

In the calm everything must come right: one leader, everybody caught up, a fresh write served,
every acknowledged write present once, and equal images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.controller.requests import Answer, RequestContext
from quorum.errors import ErrorCode
from statemachine.commands import InitProducerId
from statemachine.dump import state_digest
from tests.simulation.cluster import Cluster, Counts
from tests.simulation.invariants.violation import Violation
from tests.simulation.trace import Trace

STORM_EVENTS = 2_000
STORM_MAX_US = 600_000_000
CALM_MAX_US = 30_000_000
CALM_SLICE_US = 50_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. ``violation`` is None for a clean one."""

    seed: int
    counts: Counts
    trace_hash: str
    violation: Violation | None
    last_lines: tuple[str, ...]

    def report(self) -> str:
        """Everything needed to see and repeat a failure."""
        return "\n".join(
            (
                f"seed {self.seed}: {self.violation}",
                *self.last_lines,
                f"replay: python -m tests.simulation --seed {self.seed} --trace",
            )
        )


def run(
    seed: int, *, events: int = STORM_EVENTS, on_line: Callable[[str], None] | None = None
) -> Outcome:
    """Run a seed with a storm of at least ``events`` events."""
    trace = Trace(on_line)
    cluster = Cluster(seed, trace)
    violation = None
    try:
        cluster.start()
        _storm(cluster, events)
        _calm(cluster)
    except Violation as found:
        violation = found
    return Outcome(seed, cluster.counts, trace.digest(), violation, tuple(trace.last))


def _storm(cluster: Cluster, events: int) -> None:
    step, counts, scheduler = cluster.scheduler.step, cluster.counts, cluster.scheduler
    while counts.events < events and scheduler.now_us < STORM_MAX_US:
        step()


def _calm(cluster: Cluster) -> None:
    cluster.heal()
    answers: list[Answer] = []
    is_asked = False
    end_us = cluster.scheduler.now_us + CALM_MAX_US
    while cluster.scheduler.now_us < end_us:
        slice_end = cluster.scheduler.now_us + CALM_SLICE_US
        while cluster.scheduler.now_us < slice_end:
            cluster.scheduler.step()
        if answers and answers[-1].code == ErrorCode.NONE:
            if cluster.clients.are_settled() and _is_level(cluster):
                _check_end(cluster)
                return
            cluster.clients.stop()
        elif not is_asked or answers:
            is_asked = _ask(cluster, answers)
    raise Violation(
        "liveness",
        "the cluster did not come right",
        answers=answers,
        **{f"node{each.id}": each.state() for each in cluster.members.values()},
    )


def _ask(cluster: Cluster, answers: list[Answer]) -> bool:
    """Send a fresh write to the leader, if there is one."""
    answers.clear()
    for member in cluster.members.values():
        if member.replica is not None and member.replica.node.can_write:
            member.serve(
                "fresh write",
                lambda replica: replica.controller.submit(
                    InitProducerId(), RequestContext("fresh"), answers.append
                ),
            )
            return True
    return False


def _is_level(cluster: Cluster) -> bool:
    ends = set()
    for member in cluster.members.values():
        replica = member.replica
        if replica is None:
            return False
        node = replica.node
        applied = replica.controller.image.provenance.end_offset
        ends |= {node.log_end_offset, node.high_watermark, applied}
    return len(ends) == 1


def _check_end(cluster: Cluster) -> None:
    members = list(cluster.members.values())
    leaders = [
        each.id for each in members if each.replica is not None and each.replica.node.is_leader
    ]
    if len(leaders) != 1:
        raise Violation("liveness", "not exactly one leader in the calm", leaders=leaders)
    digests = {
        state_digest(each.replica.controller.image) for each in members if each.replica is not None
    }
    if len(digests) != 1:
        raise Violation("equal-images", "images differ in the calm", nodes=len(members))
    committed = cluster.witness.sequences
    for key, offset in cluster.clients.acknowledged().items():
        if committed.get(key) != offset:
            raise Violation(
                "acknowledged-survives",
                "an acknowledged write is not there",
                command=key,
                acknowledged=offset,
                found=committed.get(key),
            )
