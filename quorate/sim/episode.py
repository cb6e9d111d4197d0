"""One run of one seed: a storm in which safety is checked at every step, then calm.

In the calm everything must come right: one leader, everybody caught up, a fresh write served,
every acknowledged write present once, and equal images.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from quorate.controller.requests import Answer, RequestContext
from quorate.sim.cluster import Cluster
from quorate.sim.counts import Counts
from quorate.sim.invariants.relay_paths import RelayPaths
from quorate.sim.invariants.subtree_reported import SubtreeReported
from quorate.sim.invariants.violation import Violation
from quorate.sim.options import Options
from quorate.sim.trace import Trace
from quorum.errors import ErrorCode
from statemachine.commands import InitProducerId
from statemachine.dump import state_digest

DEFAULT = Options()
STORM_MAX_US = 600_000_000
CALM_MAX_US = 30_000_000
CALM_SLICE_US = 50_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. ``violation`` is None for a clean one."""

    seed: int
    options: Options
    counts: Counts
    trace_hash: str
    virtual_us: int
    """How much simulated time passed."""
    healed_us: int
    """How much of it passed from the end of all faults until everything had come right."""
    violation: Violation | None
    last_lines: tuple[str, ...]

    @property
    def replay_command(self) -> str:
        """The line that shows every event of this run again."""
        return f"quorate sim replay {self.seed}{self.options.arguments()} --trace"

    def report(self) -> str:
        """Everything needed to see and repeat a failure."""
        return "\n".join(
            (
                f"seed {self.seed}: {self.violation}",
                *self.last_lines,
                f"replay: {self.replay_command}",
            )
        )


def run(
    seed: int,
    options: Options = DEFAULT,
    *,
    on_line: Callable[[str], None] | None = None,
    is_traced: bool = True,
) -> Outcome:
    """Run a seed: a storm of ``options.events`` events, then calm.

    Without a trace nothing else differs; a seed that fails is then run again with one. What
    escapes from the simulator itself is a failure of the seed as well (``sim-sound``).
    """
    trace = Trace(on_line, is_kept=is_traced)
    cluster = Cluster(seed, trace, options)
    violation = None
    calm_from_us = 0
    try:
        cluster.start()
        _storm(cluster, options.events)
        calm_from_us = cluster.scheduler.now_us
        _calm(cluster)
        cluster.recording.check()
    except Violation as found:
        violation = found
    except Exception as error:
        # A lane must not end with it, and must name the seed.
        lines = "".join(traceback.format_exception(error))
        violation = Violation("sim-sound", "the simulator itself failed", error=lines)
    if violation is not None and not is_traced:
        return run(seed, options)
    end_us = cluster.scheduler.now_us
    _count_relays(cluster)
    return Outcome(
        seed,
        options,
        cluster.counts,
        trace.digest(),
        end_us,
        end_us - calm_from_us,
        violation,
        tuple(trace.last),
    )


def _count_relays(cluster: Cluster) -> None:
    """What only the onlookers have counted."""
    for each in cluster.witness.invariants:
        if isinstance(each, RelayPaths):
            cluster.counts.relay_answers = each.answers
            cluster.counts.relay_chains = each.chained
            cluster.counts.relay_refusals = each.refusals
        elif isinstance(each, SubtreeReported):
            cluster.counts.relay_reports = each.reports


def _storm(cluster: Cluster, events: int) -> None:
    step, counts, scheduler = cluster.scheduler.step, cluster.counts, cluster.scheduler
    while counts.events < events and scheduler.now_us < STORM_MAX_US:
        step()


def _calm(cluster: Cluster) -> None:
    """End all faults; within a bound everything must come right.

    Nodes read their files again, as they do in the background, where something has rotted.
    A fresh write is served, then a linearizable read that sees it, and when every client knows
    what became of its commands, all replicas are level
    and all watchers were handed everything.
    """
    cluster.heal()
    answers: list[Answer] = []
    reads: list[int | None] = []
    is_asked = False
    end_us = cluster.scheduler.now_us + CALM_MAX_US
    while cluster.scheduler.now_us < end_us:
        slice_end = cluster.scheduler.now_us + CALM_SLICE_US
        while cluster.scheduler.now_us < slice_end:
            cluster.scheduler.step()
        for member in cluster.members.values():
            member.scrub()
        if not (answers and answers[-1].code == ErrorCode.NONE):
            if not is_asked or answers:
                is_asked = _ask(cluster, answers)
        elif not reads or reads[-1] is None:
            _read(cluster, reads)
        elif cluster.clients.are_settled() and _is_level(cluster):
            _check_end(cluster)
            return
        else:
            _check_read(answers[-1].offset, reads[-1])
            cluster.clients.stop()
    raise Violation(
        "liveness",
        "the cluster did not come right",
        answers=answers,
        reads=reads,
        watchers=cluster.watchers.offsets(),
        **{f"node{each.id}": each.state() for each in cluster.members.values()},
    )


def _read(cluster: Cluster, reads: list[int | None]) -> None:
    """Ask the leader for a linearizable read, if there is one."""
    reads.clear()
    for member in cluster.members.values():
        if member.replica is not None and member.replica.node.can_write:
            member.serve(
                "fresh read", lambda replica: replica.controller.confirm_read(reads.append)
            )
            return


def _check_read(written: int, read: int | None) -> None:
    if read is not None and read < written:
        raise Violation(
            "confirmed-reads", "the fresh read misses the fresh write", written=written, read=read
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
    return len(ends) == 1 and cluster.watchers.have(ends.pop())


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
