"""The first table of docs/evidence.md: one line per kind of evidence, made from the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.evidence.lanes import LANES
from tests.evidence.record import Entry
from tests.evidence.tables import simulated_totals
from tests.simulation.zoo.published import published
from tests.support.doc_regions import table

Entries = Mapping[str, Entry]


def summary(entries: Entries) -> str:
    """Return the table; a kind without a recorded run is marked."""
    rows = [
        ["Simulation", _simulation(entries)],
        ["Recoveries", _of(entries, "recoveries", _recoveries)],
        ["Seeded bugs (bug zoo)", _zoo()],
        ["Every interleaving of small clusters", _models(entries)],
        ["Real processes under faults", _of(entries, "chaos", _chaos)],
        ["Mutated calls", _of(entries, "campaign-calls", _campaign)],
        ["Damaged files", _of(entries, "campaign-damages", _campaign)],
        ["Damaged files of two nodes at once", _of(entries, "campaign-damages-of-two", _campaign)],
        ["Kill of the leader to the next write", _of(entries, "failover", _failover)],
        ["Elections under full load", _of(entries, "calm", _calm)],
        ["All lanes", _lanes(entries)],
    ]
    return table(["What", "Last run"], rows)


def _of(entries: Entries, name: str, make: Callable[[Entry], str]) -> str:
    entry = entries.get(name)
    if entry is None:
        return "not run"
    failed = "" if entry.has_passed else " **This run failed.**"
    return f"{make(entry)} ({entry.date[:10]}, {entry.scale}).{failed}"


def _simulation(entries: Entries) -> str:
    profiles, seeds, failed, events = simulated_totals(entries)
    if not profiles:
        return "not run"
    return f"{profiles} profiles, {seeds:,} seeds, {events:,} events, {failed} failed seeds"


def _models(entries: Entries) -> str:
    found = [
        entry.figures
        for name, entry in entries.items()
        if name.startswith("model-") and "states" in entry.figures
    ]
    if not found:
        return "not run"
    return f"{len(found)} models, {sum(each['states'] for each in found):,} states"


def _recoveries(entry: Entry) -> str:
    get = entry.figures.get
    return (
        f"{get('seeds', 0):,} seeds, {get('recoveries', 0):,} recoveries, "
        f"{get('truncations', 0):,} truncations, {get('failed', '?')} failed seeds"
    )


def _zoo() -> str:
    rows = published()
    by_seed = sum(row.seed > 0 for row in rows)
    return (
        f"{len(rows)} published: {by_seed} found by seeds, {len(rows) - by_seed} shown by scenarios"
    )


def _chaos(entry: Entry) -> str:
    get = entry.figures.get
    return (
        f"{get('seconds', 0) / 60:.0f} minutes, {get('faults', 0)} faults, "
        f"{get('operations', 0):,} operations: {get('lost', '?')} lost, "
        f"{get('duplicated', '?')} duplicated, {get('stale', '?')} stale"
    )


def _campaign(entry: Entry) -> str:
    return f"{len(entry.figures['problems'])} problems"


def _failover(entry: Entry) -> str:
    found = entry.figures.get("failover", {})
    if not found:
        return "no figures"
    return (
        f"p50 {found['p50_ms']:.0f} ms, most {found['max_ms']:.0f} ms of {len(found['all'])} kills"
    )


def _calm(entry: Entry) -> str:
    get = entry.figures.get
    return (
        f"{get('minutes', 0):.0f} minutes, {get('writes', 0):,} writes: "
        f"{get('elections', '?')} needless elections"
    )


def _lanes(entries: Entries) -> str:
    run = [entries[lane.name] for lane in LANES if lane.name in entries]
    passed = sum(entry.has_passed for entry in run)
    return f"{passed} of {len(run)} passed, {len(LANES) - len(run)} not run yet"
