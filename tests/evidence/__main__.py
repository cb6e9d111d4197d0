"""``python -m tests.evidence``: run the lanes, record their figures, and renew the pages.

``list`` names the lanes. ``run`` runs the named lanes, or all. When a lane ends, its figures are
written to docs/evidence.json and the pages. A failed lane is marked on the pages and makes the
exit code 1. ``render`` makes the pages again from docs/evidence.json.
"""

from __future__ import annotations

import argparse
import sys

import click

from tests.evidence.collect import collect
from tests.evidence.lanes import BY_NAME, LANES
from tests.evidence.page import render
from tests.evidence.record import load, save


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the lanes and what they show")
    commands.add_parser("render", help="make the pages from docs/evidence.json")
    run = commands.add_parser("run", help="run lanes and record their figures")
    run.add_argument(
        "lanes", nargs="*", metavar="LANE", help="a lane, or the beginning of the names of several"
    )
    run.add_argument("--full", action="store_true", help="the long form: hours for all of them")
    parsed = parser.parse_args(arguments)
    if parsed.command == "list":
        for lane in LANES:
            click.echo(f"{lane.name:24} {lane.shows}\n{'':24} {lane.command('full')}")
        return 0
    if parsed.command == "render":
        render(load())
        return 0
    chosen = [
        lane
        for lane in LANES
        if not parsed.lanes or any(lane.name.startswith(each) for each in parsed.lanes)
    ]
    for each in parsed.lanes:
        if not any(name.startswith(each) for name in BY_NAME):
            parser.error(f"no lane is called {each}")
    return run_lanes([lane.name for lane in chosen], "full" if parsed.full else "quick")


def run_lanes(names: list[str], scale: str) -> int:
    """Run the lanes one after the other; return 1 if one failed, else 0."""
    failed = []
    for name in names:
        lane = BY_NAME[name]
        click.echo(f"{name}: {lane.command(scale)}", err=True)
        entry, output = collect(lane, scale)
        # Load again: another process may have recorded another lane meanwhile.
        save((load() | {name: entry}).values())
        # Render from the file, which sorts keys: ``render`` must give the same pages later.
        render(load())
        check_result = "passed" if entry.has_passed else f"FAILED ({entry.exit_code})"
        click.echo(f"{name}: {check_result} in {entry.seconds:.0f} s", err=True)
        if not entry.has_passed:
            failed.append(name)
            click.echo(output, err=True)
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
