"""``python -m tests.evidence``: run what backs the claims, keep the figures, renew the page.

``list`` names the lanes. ``run`` runs those named (all if none is) and puts their figures into
docs/evidence.json and docs/evidence.md, one by one as they end; it exits 1 when one of them
failed, which the page then says. ``render`` makes the page from the record again.
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
    commands.add_parser("list", help="name the lanes and what they show")
    commands.add_parser("render", help="make the page from the record")
    run = commands.add_parser("run", help="run lanes and keep their figures")
    run.add_argument("lanes", nargs="*", metavar="LANE", help="a name, or the start of several")
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
    """Run them in turn; 1 when one of them failed."""
    failed = []
    for name in names:
        lane = BY_NAME[name]
        click.echo(f"{name}: {lane.command(scale)}", err=True)
        entry, output = collect(lane, scale)
        # Read again: somebody may have recorded another lane meanwhile.
        save((load() | {name: entry}).values())
        # From the record, whose order of figures is its own: the page must come out so again.
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
