"""One run of one seed: a fault phase with checks after every step, then the healing phase."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from simulation.cluster import Cluster
from simulation.counts import Counts
from simulation.healing import heal_and_check
from simulation.invariants.relay_paths import RelayPaths
from simulation.invariants.subtree_reported import SubtreeReported
from simulation.invariants.violation import Violation
from simulation.options import Options
from simulation.survivors import Ending, wait_for_disagreement
from simulation.trace import Trace

DEFAULT = Options()
FAULT_PHASE_MAX_US = 600_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run. ``violation`` is None for a clean one."""

    seed: int
    options: Options
    counts: Counts
    trace_hash: str
    virtual_us: int
    """Simulated duration of the run."""
    healed_us: int
    """Simulated time from the end of all faults until every check of healing passed."""
    progress_percent: int
    """Part of the allowed time that the survivors took for progress; 0 without survivors."""
    violation: Violation | None
    last_lines: tuple[str, ...]

    @property
    def replay_command(self) -> str:
        """Return the command that prints every event of this run."""
        return f"quorate sim replay {self.seed}{self.options.arguments()} --trace"

    def report(self) -> str:
        """Return everything needed to see and repeat a failure."""
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
    """Run a seed: faults for ``options.events`` events, then healing.

    The trace changes nothing else: a seed that fails is run again with one. An exception from the
    simulator itself is a failure of the seed as well (``sim-intact``).
    """
    trace = Trace(on_line, is_kept=is_traced)
    cluster = Cluster(seed, trace, options)
    violation = None
    healing_from_us = percent = 0
    try:
        cluster.start()
        _fault_phase(cluster, options.events)
        ending = Ending.draw(seed)
        if ending.leaves_minority:
            wait_for_disagreement(cluster, ending)
        healing_from_us = cluster.scheduler.now_us
        percent = heal_and_check(cluster, ending)
        cluster.recording.check()
    except Violation as found:
        violation = found
    except Exception as error:
        # The lane must go on and report the seed.
        lines = "".join(traceback.format_exception(error))
        violation = Violation("sim-intact", "the simulator itself failed", error=lines)
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
        end_us - healing_from_us,
        percent,
        violation,
        tuple(trace.last),
    )


def _count_relays(cluster: Cluster) -> None:
    """Add the counters that only the invariants keep."""
    for each in cluster.run_observer.invariants:
        if isinstance(each, RelayPaths):
            cluster.counts.relay_answers = each.answers
            cluster.counts.relay_chains = each.chained
            cluster.counts.relay_refusals = each.refusals
        elif isinstance(each, SubtreeReported):
            cluster.counts.relay_reports = each.reports


def _fault_phase(cluster: Cluster, events: int) -> None:
    step, counts, scheduler = cluster.scheduler.step, cluster.counts, cluster.scheduler
    while counts.events < events and scheduler.now_us < FAULT_PHASE_MAX_US:
        step()
