"""The generated parts of docs/evidence.md, made from docs/evidence.json.

Lanes without a run are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from simulation.counts import Counts
from tests.evidence.lanes import BY_NAME, LANES
from tests.evidence.record import Entry
from tests.support.doc_regions import table

Entries = Mapping[str, Entry]
_SIMULATION = "simulation-"
_MODEL = "model-"
_RELAY_COLUMNS = (
    "observers", "relays", "direct", "messages_per_s", "kib_per_s", "p50_ms", "p99_ms", "max_ms",
    "missing",
)  # fmt: skip
_SILENT_COLUMNS = (
    "situation", "deaths", "p50_ms", "p95_ms", "max_ms", "split", "observers_max_ms",
)  # fmt: skip
_OUTCOMES = tuple(each.name for each in fields(Counts) if each.name != "acts")


def runs(entries: Entries) -> str:
    """Every lane: date, commit, duration, command, and whether it passed."""
    rows = []
    for lane in LANES:
        entry = entries.get(lane.name)
        if entry is None:
            rows.append([lane.name, lane.shows, "not run", *[""] * 4, f"`{lane.command('full')}`"])
            continue
        check_result = "passed" if entry.has_passed else f"**failed** ({entry.exit_code})"
        rows.append(
            [
                lane.name, lane.shows, f"{check_result}, {entry.scale}", entry.date, entry.commit,
                entry.python, f"{entry.seconds:,.0f} s, load {entry.load_average:g}",
                f"`{entry.command}`",
            ]
        )  # fmt: skip
    return table(["Lane", "Shows", "Result", "UTC", "Commit", "Python", "Took", "Command"], rows)


def _of(name: str, make: Callable[[Entry], str]) -> Callable[[Entries], str]:
    """A part that is made from one lane, below the command and commit of its run."""

    def made(entries: Entries) -> str:
        entry = entries.get(name)
        if entry is None:
            return not_run(name)
        return f"{origin(entry)}\n\n{make(entry)}"

    return made


def not_run(name: str) -> str:
    """Return the text for missing figures."""
    return f"Not run yet: `{BY_NAME[name].command('full')}`"


def origin(entry: Entry) -> str:
    """Return the line that names the run of the figures below it."""
    failed = "" if entry.has_passed else f" **This run failed** (exit code {entry.exit_code})."
    return (
        f"`{entry.command}` ({entry.scale}), commit {entry.commit}, {entry.date} UTC, "
        f"{entry.seconds:,.0f} s.{failed}"
    )


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return table(["Figure", "Value"], [(name, shown(value)) for name, value in pairs])


def shown(value: object) -> str:
    """Format a number for people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _simulated(entries: Entries) -> dict[str, Entry]:
    return {
        name.removeprefix(_SIMULATION): entry
        for name, entry in entries.items()
        if name.startswith(_SIMULATION) and "seeds" in entry.figures
    }


def simulated_totals(entries: Entries) -> tuple[int, int, int, int]:
    """Return the recorded profiles, and the sums of seeds, failed seeds and events."""
    found = _simulated(entries).values()
    return (
        len(found),
        sum(entry.figures["seeds"] for entry in found),
        sum(len(entry.figures["failed_seeds"]) for entry in found),
        sum(_counts(entry)["events"] for entry in found),
    )


def _counts(entry: Entry) -> dict[str, int]:
    return {row["what"]: row["count"] for row in entry.figures["rows"]}


def simulation(entries: Entries) -> str:
    """One row for each profile."""
    rows = []
    for profile, entry in _simulated(entries).items():
        figures, counts = entry.figures, _counts(entry)
        acts = sum(count for name, count in counts.items() if name not in _OUTCOMES)
        rows.append(
            [
                profile, figures["seeds"], len(figures["failed_seeds"]), counts["events"],
                figures["events_per_cpu_second"], figures["simulated_seconds"], acts,
                counts["acknowledged"], counts["reads"], figures["longest_healing_ms"],
                entry.commit,
            ]
        )  # fmt: skip
    if not rows:
        return not_run(f"{_SIMULATION}default")
    head = [
        "Profile", "Seeds", "Failed", "Events", "Events per CPU second", "Simulated s",
        "Faults", "Acknowledged writes", "Reads", "Longest healing ms", "Commit",
    ]  # fmt: skip
    return table(head, [[shown(cell) for cell in row] for row in rows])


def faults(entries: Entries) -> str:
    """What happened, by kind, one column for each profile."""
    simulated = _simulated(entries)
    if not simulated:
        return not_run(f"{_SIMULATION}default")
    columns = {profile: _counts(entry) for profile, entry in simulated.items()}
    kinds = sorted({name for counts in columns.values() for name in counts})
    ordered = [*(each for each in _OUTCOMES if each in kinds)]
    ordered += [each for each in kinds if each not in _OUTCOMES]
    rows = [
        [name, *(shown(counts.get(name, 0)) for counts in columns.values())] for name in ordered
    ]
    return table(["What", *columns], rows)


def models(entries: Entries) -> str:
    """One row for each model that was explored."""
    names = [lane.name for lane in LANES if lane.name.startswith(_MODEL)]
    head = ("states", "transitions", "depth", "steps_of_the_core", "to_the_end", "seconds")
    rows = []
    for name in names:
        entry = entries.get(name)
        if entry is None or "states" not in entry.figures:
            rows.append([name.removeprefix(_MODEL), *[""] * len(head), "not run"])
            continue
        cells = [shown(entry.figures[each]) for each in head]
        rows.append([name.removeprefix(_MODEL), *cells, entry.commit])
    return table(["Model", *(each.replace("_", " ") for each in head), "Commit"], rows)


def _recoveries(entry: Entry) -> str:
    return _pairs(
        (name.replace("_", " "), value)
        for name, value in entry.figures.items()
        if isinstance(value, int) and name != "version"
    )


def _chaos(entry: Entry) -> str:
    figures = entry.figures
    names = (
        "seed", "faults", "faults_without_effect", "without_effect_beside_another_fault",
        "longest_other_without_effect_s", "isolated_leaders", "deposed_leaders",
        "not_deposed_beside_another_fault",
        "operations", "answered", "watched", "log_batches", "lost", "duplicated",
        "stale", "not_linearizable", "check_result",
    )  # fmt: skip
    parts = [_pairs((name.replace("_", " "), figures[name]) for name in names if name in figures)]
    for head, name in (
        ("Fault with an effect", "faults_by_kind"),
        ("Operations", "operations_by_outcome"),
    ):
        rows = sorted(figures.get(name, {}).items())
        parts.append(table([head, "Count"], [(each, shown(count)) for each, count in rows]))
    return "\n\n".join(parts)


def _failover(entry: Entry) -> str:
    figures = entry.figures
    found = {"Quorate": figures.get("failover", {})}
    for name, peer in figures.get("peers", {}).items():
        found[name] = peer.get("failover", {})
    rows = [
        [name, len(each["all"]), *(f"{each[key]:.0f}" for key in ("p50_ms", "min_ms", "max_ms"))]
        for name, each in found.items()
        if each
    ]
    return table(["System", "Kills", "p50 ms", "Least ms", "Most ms"], rows)


def _calm(entry: Entry) -> str:
    figures = entry.figures
    rates = figures.get("rates") or [0]
    return _pairs(
        [
            ("minutes", figures.get("minutes", 0)),
            ("elections", figures.get("elections", "")),
            ("acknowledged writes", figures.get("writes", 0)),
            ("writes per second, least and most", f"{min(rates):,} and {max(rates):,}"),
            ("longest write, ms", figures.get("worst_ms", 0)),
            ("load average, most", figures.get("load_average", 0)),
        ]
    )


def recorded(entry: Entry) -> str:
    """What the tests of a lane recorded, and how they ended."""
    figures = entry.figures
    pairs: list[tuple[str, object]] = [
        ("tests passed", f"{figures.get('passed', 0)} of {figures.get('tests', 0)}")
    ]
    for name, value in figures.get("recorded", {}).items():
        pairs.append((name.replace("_", " "), _inline(value)))
    return _pairs(pairs)


def _inline(value: Any) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(each)}" for name, each in value.items())
    return value


def relay(entries: Entries) -> str:
    """Simulated trees, then real processes."""
    parts = [
        _rows(entries, "relay-scale", _RELAY_COLUMNS),
        _of("relay-processes", recorded)(entries),
    ]
    return "\n\n".join(parts)


def silent_death(entries: Entries) -> str:
    """The time until the next write after a leader has fallen silent, by situation."""
    return _rows(entries, "silent-death", _SILENT_COLUMNS)


def _rows(entries: Entries, name: str, columns: Sequence[str]) -> str:
    """The rows that a command printed, below the command and commit of its run."""
    entry = entries.get(name)
    if entry is None or "rows" not in entry.figures:
        return not_run(name)
    head = [each.replace("_", " ") for each in columns]
    rows = [[shown(row.get(each, "")) for each in columns] for row in entry.figures["rows"]]
    return f"{origin(entry)}\n\n{table(head, rows)}"


def counted_tests(entries: Entries) -> str:
    """The lanes whose figures are counts of tests."""
    rows = []
    for name in ("scenarios", "history-checker", "guarantees"):
        entry = entries.get(name)
        if entry is None:
            rows.append([name, BY_NAME[name].shows, "not run", "", "", ""])
            continue
        count = entry.figures.get
        rows.append(
            [name, BY_NAME[name].shows, count("passed", 0), count("failed", 0), count("skipped", 0),
             entry.commit]
        )  # fmt: skip
    return table(["Lane", "Shows", "Passed", "Failed", "Skipped", "Commit"], rows)


def _bench(entry: Entry) -> str:
    figures = entry.figures
    parts = []
    systems = {"Quorate": figures.get("writes", [])}
    for name, peer in figures.get("peers", {}).items():
        systems[name] = peer.get("writes", [])
    rows = [
        [
            system,
            row["clients"],
            shown(round(row["rate"])),
            *(f"{row[key]:.2f}" for key in _TIMES),
            *(f"{row[key]:.2f}" if key in row else "" for key in _RATIOS),
            f"{row['rounds']} + {row['disturbed']}",
            "" if row["stolen"] is None else f"{row['stolen']:.1%}",
        ]
        for system, loads in systems.items()
        for row in loads
    ]
    if rows:
        parts.append(table(_LOAD_COLUMNS, rows))
        parts.append(_LOAD_LEGEND)
    if "image" in figures:
        rate = shown(round(figures["image"]["p50"]))
        parts.append(f"Checkpoint to image: {rate} records/s.")
    if "snapshot" in figures:
        parts.append(f"FetchSnapshot, verified: {figures['snapshot']['p50']:.0f} MB/s.")
    return "\n\n".join(parts)


_TIMES = ("p50_ms", "p99_ms")
_RATIOS = ("rate_ratio", "p50_ratio")
_LOAD_COLUMNS = (
    "System", "Writers", "Writes/s", "p50 ms", "p99 ms", "Rate ratio", "p50 ratio", "Rounds",
    "Stolen",
)  # fmt: skip
_LOAD_LEGEND = (
    "A ratio is Quorate's figure divided by the other system's in the same round. Above 1 is "
    "better for rates, below 1 for p50. Rounds: those that count + those that the machine's host "
    "disturbed. "
    "Stolen: the largest share of processor time that the host took in a round that counts."
)

chaos = _of("chaos", _chaos)
recoveries = _of("recoveries", _recoveries)
failover = _of("failover", _failover)
calm = _of("calm", _calm)
kill_nine = _of("kill-nine", recorded)
rolling_restart = _of("rolling-restart", recorded)
attacks = _of("attacks", recorded)
bench = _of("bench", _bench)
