"""Mutation tests of the consensus core: ``python -m tests.mutation [MODULE ...]``.

Each mutant drops or reverses one rule. If no test fails, no test checks that rule. A survivor needs
a test, or an entry in ``survivors.toml`` that says why no test can notice it.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tests.mutation.report import Report, report
from tests.mutation.settings import KILLED
from tests.mutation.survivors import listed

ROOT = Path(__file__).parents[2]
_RECORDINGS = ROOT / ".mutation" / "recordings"


def _copy(to: Path) -> None:
    """Copy the checkout with its uncommitted changes, without ignored files."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout
    for name in names.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())


def run(order: dict[str, object], rows: Path | None = None) -> dict[str, Any]:
    """Run the mutants of a ``campaign.Order``; return their rows and figures.

    Runs in a copy, so that the checkout may change meanwhile. ``rows`` gets each row at once, so a
    stopped run keeps its results.
    """
    with tempfile.TemporaryDirectory(prefix="quorate-mutation-") as folder:
        copy = Path(folder)
        _copy(copy)
        environment = {
            **os.environ,
            "PYTHONPATH": folder,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis"),
        }
        file = copy / "rows.json" if rows is None else rows.absolute()
        command = [
            sys.executable, "-m", "tests.mutation.campaign", str(file), str(_RECORDINGS),
            json.dumps(order),
        ]  # fmt: skip
        # Only the messages of the process itself matter; under pytest no standard stream is a file.
        subprocess.run(command, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found


def _share(text: str) -> tuple[int, int]:
    """``K/N``, both counted from 1, as ``(part, parts)`` with the part counted from 0."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"{text}: K/N, K must be from 1 to N")
    return int(part) - 1, int(parts)


def _survivors(rows: Path) -> list[tuple[str, str]]:
    found = json.loads(rows.read_text(encoding="utf-8"))["rows"]
    return [(row["function"], row["change"]) for row in found if row["status"] not in KILLED]


@click.command(help=__doc__)
@click.argument("modules", nargs=-1)
@click.option(
    "--share",
    default="1/1",
    show_default=True,
    help="K/N: only the K-th of N shares of the mutants.",
)
@click.option(
    "--sample", type=click.IntRange(min=1), help="Run this many mutants, drawn at random."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random sample.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--first-stage", is_flag=True, help="Run neither explorer nor simulator.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=math.inf,
    metavar="SECONDS",
    help="Processor seconds of the first stage per mutant; a mutant not killed by then survives.",
)
@click.option(
    "--tests",
    multiple=True,
    metavar="PATH",
    help="Tests to run instead of those of the first stage.",
)
@click.option("-o", "output", type=click.Choice(("text", "json")), default="text")
@click.option(
    "--again",
    type=click.Path(exists=True, path_type=Path),
    help="Run only the survivors among these rows.",
)
@click.option(
    "--rows", type=click.Path(path_type=Path), help="Write the row of every mutant to this file."
)
def main(
    modules: tuple[str, ...],
    share: str,
    sample: int | None,
    seed: int,
    jobs: int,
    first_stage: bool,
    budget: float,
    tests: tuple[str, ...],
    output: str,
    again: Path | None,
    rows: Path | None,
) -> None:
    """Run mutants and print the survivors. Exits 1 if too many, or one without a reason."""
    part, parts = _share(share)
    came_to = run(
        {
            "modules": modules,
            "part": part,
            "parts": parts,
            "sample": sample or 0,
            "seed": seed,
            "jobs": jobs,
            "first_stage": first_stage,
            "budget": budget,
            "tests": tests,
            "only": [] if again is None else _survivors(again),
        },
        rows,
    )
    found = report(came_to["rows"], listed())
    rate = _per_minute(found.mutants, came_to["seconds"])
    cpu_rate = _per_minute(found.mutants, came_to["cpu_seconds"])
    figures = {
        **asdict(found),
        "killed_share": found.killed_share,
        "made": came_to["made"],
        "mutants_per_minute": rate,
        "mutants_per_cpu_minute": cpu_rate,
        "by_module": [asdict(each) for each in found.by_module()],
    }
    if output == "json":
        click.echo(json.dumps(figures, indent=1))
    else:
        _print(found, made=came_to["made"], rate=rate, cpu_rate=cpu_rate)
    sys.exit(0 if found.has_passed else 1)


def _per_minute(mutants: int, seconds: float) -> int:
    return round(mutants / seconds * 60) if seconds else 0


def _print(found: Report, *, made: int, rate: int, cpu_rate: int) -> None:
    for each in (*found.by_module(), found.whole()):
        click.echo(str(each))
    for stage, killed in found.stages.items():
        click.echo(f"{killed} were killed by the {stage}")
    click.echo(
        f"{found.mutants} of {made} mutants were run, {rate} per minute, "
        f"{cpu_rate} per minute of processor time"
    )
    click.echo(f"{found.with_a_reason} survivors are listed, {len(found.without_a_reason)} are not")
    for survivor in found.without_a_reason:
        click.echo(f"\n{survivor.function}\n{survivor.change}")


if __name__ == "__main__":
    main()
