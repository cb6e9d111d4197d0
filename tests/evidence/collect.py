"""Runs a lane's command and records its result, also if it failed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.evidence import readers
from tests.evidence.lanes import Figures, Lane
from tests.evidence.record import ROOT, Entry

PLACE = "FILE"
OUTPUT_CHARACTERS = 2_000


def collect(lane: Lane, scale: str, folder: Path = ROOT) -> tuple[Entry, str]:
    """Run the lane's command in the checkout's root; return its entry and the end of its output.

    A command that fails is recorded as failed, with the figures that it wrote. A command that
    leaves no figures, or whose tests were all skipped, is recorded as failed as well.
    """
    commit = commit_of_checkout()
    began = time.perf_counter()
    date = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="quorate-evidence-") as made:
        place = Path(made) / "figures"
        arguments = [each.replace(PLACE, str(place)) for each in lane.arguments(scale)]
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        output = (done.stdout + done.stderr)[-OUTPUT_CHARACTERS:]
        try:
            figures = read_figures(lane, done.stdout, place)
        except readers.UnreadableError as error:
            figures = {"unreadable": str(error)}
        status = check_result(done.returncode, figures)
    seconds = round(time.perf_counter() - began, 1)
    entry = Entry(
        lane.name, scale, lane.command(scale), commit, date, seconds, round(load, 1), status,
        figures, platform.python_version(),
    )  # fmt: skip
    return entry, output


def check_result(exit_code: int, figures: Mapping[str, Any]) -> int:
    """Return the exit code, or 1 in place of 0 where the figures show nothing."""
    if exit_code:
        return exit_code
    if "unreadable" in figures:
        return 1
    is_of_tests = "tests" in figures
    return 1 if is_of_tests and not figures["passed"] else 0


def read_figures(lane: Lane, printed: str, place: Path) -> dict[str, Any]:
    """Read the figures from where this lane's command leaves them.

    Raises:
        readers.UnreadableError: The command left no figures.
    """
    if lane.figures is Figures.PRINTED:
        return readers.printed_json(printed)
    return (readers.junit if lane.figures is Figures.JUNIT else readers.json_file)(place)


def commit_of_checkout() -> str:
    """The short hash, followed by ``+`` if tracked files differ from the commit.

    Changes of docs/evidence.json and the pages do not count: recording a lane changes them.
    """
    commit = _git("rev-parse", "--short=10", "HEAD")
    changed = _git(
        "status", "--porcelain", "--untracked-files=no",
        "--", ".", ":!docs/evidence.json", ":!docs/evidence.md", ":!docs/evidence",
    )  # fmt: skip
    return commit + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
