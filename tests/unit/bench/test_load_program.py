"""How a load program is run: its figures, the nodes' processor time, and what makes it fail."""

from __future__ import annotations

import os
import sys

import pytest

from bench.peers.load_program import run_load_program
from bench.peers.processes import PeerError

FIGURES = '{"clients": 1, "operations": %d, "errors": %d, "rate": 9.5}'


def program(*lines: str) -> list[str]:
    return [sys.executable, "-c", "import os, sys, time\n" + "\n".join(lines)]


def say(text: str) -> str:
    return f"print({text!r}, flush=True)"


def test_processor_time_counts_between_begin_and_end() -> None:
    """Goal: what a node spent in the measured time. Method: this process as the node."""
    measured = program(say("BEGIN"), say("END"), say(FIGURES % (100, 0)))
    row = run_load_program(measured, {0: os.getpid(), 1: os.getppid()}, 0)
    assert (row["operations"], row["rate"], len(row["followers_us"])) == (100, 9.5, 1)
    assert row["leader_us"] >= 0.0
    assert row["resident_mib"] > 1.0


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([say("BEGIN"), "sys.exit('no connection')"], "no connection"),
        ([say("BEGIN"), say("END"), say(FIGURES % (100, 3))], "3 operations failed"),
        ([say("BEGIN"), say("END"), say(FIGURES % (0, 0))], "0 operations failed"),
    ],
)
def test_a_load_that_failed_has_no_figures(lines: list[str], words: str) -> None:
    with pytest.raises(PeerError, match=words):
        run_load_program(program(*lines), {0: os.getpid()}, 0)
