"""``python -m tests.simulation.zoo``: search for every bug in turn and print what found it."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import click

from tests.simulation.zoo.bug import Bug
from tests.simulation.zoo.hunt import Find, hunt
from tests.simulation.zoo.published import Row, missed, publish
from tests.simulation.zoo.table import BUGS


def main(arguments: list[str] | None = None) -> int:
    """Hunt; return 1 if a bug was not found, or was found by an unexpected check."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.zoo")
    parser.add_argument("--name", action="append", help="only this bug; may be repeated")
    parser.add_argument("--seeds-max", type=int, help="seeds to draw, from 1; default: each bug's")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument(
        "--publish", action="store_true", help="keep the result for the documents and the CI lane"
    )
    parser.add_argument("--evidence", action="store_true", help="print what each violation says")
    parser.add_argument("--result", type=Path, metavar="FILE", help="write the table as JSON")
    parser.add_argument("--jobs", type=int, help="processes; default: one for each processor")
    parsed = parser.parse_args(arguments)
    names = {bug.name for bug in BUGS}
    for name in parsed.name or ():
        if name not in names:
            parser.error(f"no bug is called {name}")
    bugs = [bug for bug in BUGS if not parsed.name or bug.name in parsed.name]
    rows = []
    for row, evidence in _hunt_all(bugs, parsed.seeds_max, parsed.jobs or os.cpu_count() or 1):
        rows.append(row)
        if parsed.output == "table":
            click.echo(_line(row))
            if parsed.evidence and evidence:
                click.echo(evidence)
    failed = missed(rows)
    if parsed.output == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        click.echo(_summary(rows))
    if parsed.result is not None:
        content = json.dumps([asdict(row) for row in rows], indent=1)
        parsed.result.write_text(content + "\n", encoding="utf-8")
    if parsed.publish and not failed:
        publish(rows)
    return 1 if failed else 0


def _hunt_all(bugs: Sequence[Bug], seeds_max: int | None, jobs: int) -> Iterator[tuple[Row, str]]:
    """Hunt for each bug from seed 1, and print the results in the order of the bugs."""
    if jobs == 1 or len(bugs) == 1:
        yield from (_hunt(bug, seeds_max) for bug in bugs)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_hunt_named, [bug.name for bug in bugs], [seeds_max] * len(bugs))


def _hunt_named(name: str, seeds_max: int | None) -> tuple[Row, str]:
    """Hunt one bug in a process of its own; a bug is code and cannot be pickled."""
    return _hunt(next(bug for bug in BUGS if bug.name == name), seeds_max)


def _hunt(bug: Bug, seeds_max: int | None) -> tuple[Row, str]:
    found = hunt(bug, range(1, (seeds_max or bug.seeds) + 1))
    return _row(bug, found), "" if found is None else found.evidence


def _row(bug: Bug, found: Find | None) -> Row:
    return Row(
        bug.name,
        bug.what,
        bug.source,
        bug.ran,
        found.seed if found is not None else -1,
        found.caught_by if found is not None else "",
        round(found.seconds, 2) if found is not None else 0.0,
        is_expected=found is not None and found.caught_by in bug.caught_by,
    )


def _line(row: Row) -> str:
    if not row.is_found:
        return f"{row.name:36} NOT FOUND"
    where = "no seed" if row.seed == 0 else f"seed {row.seed}"
    odd = "" if row.is_expected else "  (not what it is known for)"
    return f"{row.name:36} {where:10} {row.caught_by:24} {row.seconds:8.2f} s{odd}"


def _summary(rows: list[Row]) -> str:
    seeds = [row.seed for row in rows if row.seed > 0]
    median = f", median {statistics.median(seeds):g} seeds, most {max(seeds)}" if seeds else ""
    found = sum(row.is_found for row in rows)
    return f"{found} of {len(rows)} found{median}, {sum(row.seconds for row in rows):.0f} s"


if __name__ == "__main__":
    sys.exit(main())
