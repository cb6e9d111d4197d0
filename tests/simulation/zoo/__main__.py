"""``python -m tests.simulation.zoo``: look for every bug in turn and print what found it."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict

import click

from tests.simulation.zoo.bug import Bug
from tests.simulation.zoo.hunt import Find, hunt
from tests.simulation.zoo.published import Row, publish
from tests.simulation.zoo.table import BUGS


def main(arguments: list[str] | None = None) -> int:
    """Hunt; 1 when a bug was not found, or found by something that it is not known for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.zoo")
    parser.add_argument("--name", action="append", help="only this bug; may be repeated")
    parser.add_argument("--seeds-max", type=int, help="seeds to draw, from 1; default: each bug's")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument(
        "--publish", action="store_true", help="keep the result for the documents and the CI lane"
    )
    parser.add_argument("--evidence", action="store_true", help="print what each violation says")
    parsed = parser.parse_args(arguments)
    names = {bug.name for bug in BUGS}
    for name in parsed.name or ():
        if name not in names:
            parser.error(f"no bug is called {name}")
    rows = []
    for bug in BUGS:
        if parsed.name and bug.name not in parsed.name:
            continue
        found = hunt(bug, range(1, (parsed.seeds_max or bug.seeds) + 1))
        row = _row(bug, found)
        rows.append(row)
        if parsed.output == "table":
            click.echo(_line(row))
            if parsed.evidence and found is not None:
                click.echo(found.evidence)
    failed = [row for row in rows if not row.is_found or not row.is_expected]
    if parsed.output == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        click.echo(_summary(rows))
    if parsed.publish and not failed:
        publish(rows)
    return 1 if failed else 0


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
