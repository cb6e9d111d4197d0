"""Decides which command runs a test.

A test is in exactly one lane: that of the first mark of ``LANE_OF_MARK`` on the test or its file,
and ``make test`` without such a mark.

As a pytest plugin (``-p tests.gate.lanes``) it adds ``--lane``, leaves out tests of other lanes,
and prints how many tests those were, and how much processor time the run took.
"""

from __future__ import annotations

import collections
import enum
import re
import resource
from collections.abc import Collection

import pytest

from tests.support import fork_server


class Lane(enum.StrEnum):
    """The make target that runs a test; ``make nightly`` runs all the others once more."""

    VERIFY = "verify"
    TEST = "test"
    LONG = "test-long"
    NIGHTLY = "nightly"


LANE_OF_MARK = {
    "nightly": Lane.NIGHTLY, "bench": Lane.NIGHTLY, "long": Lane.LONG, "tidy": Lane.VERIFY,
}  # fmt: skip
LEFT_OUT = re.compile(r"^left out: (\d+) of make (\S+)$", re.M)
PROCESSOR_TIME = re.compile(r"^processor time: (\d+) s$", re.M)
_LEFT = pytest.StashKey[collections.Counter[Lane]]()


def lane_of(marks: Collection[str]) -> Lane:
    """The lane of a test with these marks."""
    return next((lane for mark, lane in LANE_OF_MARK.items() if mark in marks), Lane.TEST)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("quorate").addoption(
        "--lane", type=Lane, choices=list(Lane), help="only what this make target runs"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Behind ``-m``: what that leaves out is not counted here, so no test is counted twice."""
    wanted: Lane | None = config.getoption("--lane")
    if wanted is None:
        return
    lanes = [lane_of({mark.name for mark in item.iter_markers()}) for item in items]
    left = [item for item, lane in zip(items, lanes) if lane is not wanted]
    config.stash[_LEFT] = collections.Counter(lane for lane in lanes if lane is not wanted)
    items[:] = [item for item, lane in zip(items, lanes) if lane is wanted]
    config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    seconds = sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    seconds += fork_server.processor_seconds
    terminalreporter.write_line(f"processor time: {seconds:.0f} s")
    for lane, count in sorted(config.stash.get(_LEFT, collections.Counter[Lane]()).items()):
        terminalreporter.write_line(f"left out: {count} of make {lane}")
