"""Cases for the bars of lanes that need no process: simulation, models, zoo and mutants."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from quorate.cli.exits import CliError
from simulation import relay_scale, silent_death
from simulation.cli import sim, sim_explore, sim_recoveries
from simulation.enforcement import enforced
from simulation.explore.models import MODELS
from simulation.explore.search import Report as Exploration
from simulation.invariants.violation import Violation
from simulation.lanes import LaneReport, SeedResult
from simulation.minima import MINIMA
from simulation.options import Options
from simulation.recoveries.counts import RecoveryCounts
from simulation.relay_scale import GROWTH_MAX, TOP_RELAYS, Load
from simulation.silent_death import SITUATIONS, Death
from simulation.silent_death import Report as Deaths
from tests.evidence.bars import Bars, Passes, raises
from tests.mutation.report import Report as Mutants
from tests.mutation.report import report
from tests.mutation.survivors import Survivor
from tests.simulation.zoo.published import Row, missed


def _simulated(profile: str, *, seeds: int = 100, failed: bool = False, short: str = "") -> Passes:
    """A run of ``seeds`` that just meets every minimum, and misses the one named ``short``."""

    def passes() -> bool:
        report = LaneReport(Options(profile))
        least = dict(enforced(report.options, seeds))
        if short:
            least[short] -= 1
        for seed in range(1, seeds + 1):
            failure = "lost-write" if failed and seed == 1 else ""
            report.add(SeedResult(seed, type(report.counts)(), 0, 0, 0.0, failure=failure))
        known = report.counts.numbers()
        for name, count in least.items():
            if name in known:
                setattr(report.counts, name, count)
            else:
                report.counts.acts[name] = count
        return not raises(CliError, lambda: sim.refuse(report, report.shortfalls()))

    return passes


def _minima() -> dict[str, Passes]:
    return {
        f"{profile}: {name}": _simulated(profile, short=name)
        for profile, least in MINIMA.items()
        for name, needed in least.items()
        if needed
    }


SIMULATION = Bars(
    ("simulation-",),
    (sim.refuse, LaneReport.add, LaneReport.shortfalls),
    {profile: _simulated(profile) for profile in MINIMA},
    {
        "a seed failed": _simulated("default", failed=True),
        "no seed was run": _simulated("default", seeds=0),
        "too few events": _simulated("default", short="events"),
        **_minima(),
    },
)


def _recovered(seeds: int, *, failed: bool = False, missing: str = "") -> Passes:
    """Runs in which everything that is counted occurred once, but for ``missing``."""

    def passes() -> bool:
        counts = {each.name: int(each.name != missing) for each in fields(RecoveryCounts)}
        failures = ["seed 1: recovery-skip"] if failed else []
        total = RecoveryCounts(**counts)
        return not raises(CliError, lambda: sim_recoveries.refuse(seeds, failures, total))

    return passes


_ENOUGH = sim_recoveries.SEEDS_FOR_ALL
RECOVERIES = Bars(
    ("recoveries",),
    (sim_recoveries.refuse, RecoveryCounts.missing),
    {
        "each situation once": _recovered(_ENOUGH),
        "few seeds need not show all": _recovered(_ENOUGH - 1, missing="truncations"),
    },
    {
        "a seed failed": _recovered(1, failed=True),
        **{
            f"no {each.name}": _recovered(_ENOUGH, missing=each.name)
            for each in fields(RecoveryCounts)
        },
    },
)


def _explored(*, is_complete: bool = True, violation: Violation | None = None) -> Passes:
    def passes() -> bool:
        report = Exploration(MODELS["election"], violation=violation, is_complete=is_complete)
        return not raises(CliError, lambda: sim_explore.refuse(report, 1))

    return passes


MODEL = Bars(
    ("model-",),
    (sim_explore.refuse,),
    {"to the end": _explored()},
    {
        "an invariant does not hold": _explored(violation=Violation("one-leader", "two lead")),
        "not to the end": _explored(is_complete=False),
    },
)


def _hunted(**changed: Any) -> Passes:
    row = Row("bug", "what", "source", "default", 1, "invariant", 1.0)
    return lambda: not missed([row, replace(row, **changed)])


ZOO = Bars(
    ("zoo",),
    (missed, Row.is_found.fget),
    {"found by a seed": _hunted(), "shown by a scenario": _hunted(seed=0)},
    {
        "a bug was not found": _hunted(seed=-1),
        "found by something else": _hunted(is_expected=False),
    },
)


def _mutants(killed: int, *, survivors: int = 0, known: int = 0) -> Passes:
    def passes() -> bool:
        rows = [{"function": "a.b", "status": "killed"}] * killed
        rows += [
            {"function": "a.b", "status": "survived", "change": f"- {number}"}
            for number in range(survivors)
        ]
        listed = frozenset(Survivor("a.b", f"- {number}") for number in range(known))
        return report(rows, listed).has_passed

    return passes


MUTATION = Bars(
    ("mutation",),
    (report, Mutants.has_passed.fget, Mutants.killed_share.fget),
    {"at the bar": _mutants(95, survivors=5, known=5), "all killed": _mutants(1)},
    {
        "too few are killed": _mutants(94, survivors=6, known=6),
        "a survivor without a reason": _mutants(99, survivors=1),
        "no mutant was made": _mutants(0),
    },
)


def _tree(
    observers: int = 1_000, *, messages: int = 1_000, size: int = 1_000, lost: int = 0
) -> Load:
    return Load(observers, TOP_RELAYS, messages, size, [1.0], lost)


def _trees(*behind_relays: Load, direct: Load | None = None) -> Passes:
    return lambda: not relay_scale.problems([direct or _tree(5)], behind_relays)


_MOST = round(1_000 * (1 + GROWTH_MAX))
RELAY_SCALE = Bars(
    ("relay-scale",),
    (relay_scale.problems,),
    {
        "at the bars": _trees(_tree(TOP_RELAYS), _tree(messages=_MOST, size=_MOST)),
        "fewer than the relays are no measure": _trees(_tree(TOP_RELAYS - 1, messages=1), _tree()),
    },
    {
        "a commit was missed": _trees(_tree(lost=1)),
        "a commit was missed without relays": _trees(_tree(), direct=_tree(lost=1)),
        "messages grew": _trees(_tree(TOP_RELAYS), _tree(messages=_MOST + 1)),
        "bytes grew": _trees(_tree(TOP_RELAYS), _tree(size=_MOST + 1)),
    },
)


def _died(*deaths: Death) -> Passes:
    return lambda: not silent_death.problems([Deaths(SITUATIONS[0], list(deaths))])


_PROMPT = Death(3_000, 1, (0, 20_000))
SILENT_DEATH = Bars(
    ("silent-death",),
    (silent_death.problems, Deaths.split_share.fget, Deaths.percentile),
    {"at the bars": _died(*[_PROMPT] * 19, Death(9_000, 2)), "at once": _died(Death(0, 1))},
    {
        "the median": _died(Death(3_001, 1)),
        "split votes": _died(*[_PROMPT] * 18, *[Death(2_900, 2)] * 2),
        "an observer found no leader": _died(_PROMPT, Death(2_000, 1, (2_500, -1))),
        "no write was ever acknowledged": _died(Death(-1, 1), _PROMPT, Death(-1, 1)),
    },
)
