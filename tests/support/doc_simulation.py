"""Tables of docs/testing/ about the simulator: profiles, minima, invariants, models and the zoo."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from simulation.explore.models import MODELS
from simulation.faults.table import ACTS
from simulation.invariants import table as invariants
from simulation.minima import MINIMA
from simulation.profiles import PROFILES
from tests.simulation.zoo.published import published
from tests.support.doc_regions import table


def profiles_table() -> str:
    return table(
        ["Profile", "What happens", "What disks may lose"],
        [[f"`{each.name}`", each.about, each.budget] for each in PROFILES.values()],
    )


def acts_table() -> str:
    return table(
        ["Fault", "What is done"],
        [[f"`{name}`", (act.__doc__ or "").split("\n")[0]] for name, act in ACTS.items()],
    )


def minima_table() -> str:
    """Minima of results, by profile. Minima of faults are in ``minima.py`` as well."""
    names = (
        "leaders",
        "truncations",
        "installs",
        "checkpoints",
        "crashes",
        "lossy_crashes",
        "quarantines",
        "refused_starts",
        "voter_changes",
        "rollbacks_detected",
        "acknowledged",
        "duplicates",
        "reads",
    )
    return table(
        ["Profile", *(name.replace("_", " ") for name in names)],
        [
            [f"`{profile}`", *(str(least.get(name, "")) for name in names)]
            for profile, least in MINIMA.items()
        ],
    )


def invariants_table() -> str:
    lines = (invariants.__doc__ or "").split("\n")
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return table(["Property", "Source"], [[f"`{row[0]}`", row[1]] for row in rows[1:]])


def models_table() -> str:
    """What the models leave out, besides their bounds."""
    return table(
        ["Model", "Left out"],
        [
            [f"`{name}`", ", ".join(model.left_out()) or "nothing of these"]
            for name, model in MODELS.items()
        ],
    )


def zoo_table() -> str:
    """The finds that ``python -m tests.simulation.zoo --publish`` has stored."""
    return table(
        ["Bug", "What is broken", "After", "Where", "Seed", "Caught by", "Seconds"],
        [
            [
                f"`{row.name}`",
                row.what,
                row.source,
                f"`{row.ran}`",
                str(row.seed) if row.seed else "",
                f"`{row.caught_by}`" if row.seed else row.caught_by,
                f"{row.seconds:.1f}",
            ]
            for row in published()
        ],
    )


def zoo_figures() -> str:
    """Return the sentence that sums up the table."""
    rows = published()
    seeds = sorted(row.seed for row in rows if row.seed)
    shown = sum(row.seed == 0 for row in rows)
    return (
        f"{len(rows)} bugs: {len(seeds)} found by seeds, the median after "
        f"{statistics.median(seeds):g} and the last after {seeds[-1]}; {shown} shown by scenarios."
    )


MAKERS: dict[str, Callable[[], str]] = {
    "profiles": profiles_table,
    "acts": acts_table,
    "minima": minima_table,
    "invariants": invariants_table,
    "models": models_table,
    "zoo": zoo_table,
    "zoo-figures": zoo_figures,
}
