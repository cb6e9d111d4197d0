"""Small parts of the driver: what waits for the disk, and whether the node comes in time."""

from __future__ import annotations

import pytest

from quorum.core.contract.output import Promise
from quorum.runtime.flushed_end import FlushedEnd
from quorum.runtime.pause_detector import PauseDetector
from quorum.runtime.promises import Promises
from tests.support.core_disk import key


def test_a_promise_leaves_with_its_ticket_and_in_order() -> None:
    left: list[int] = []
    promises = Promises(lambda each: left.append(each.to))
    for ticket, to in ((2, 1), (2, 2), (3, 3)):
        promises.add(Promise(ticket, to, key(1)))  # type: ignore[arg-type]
    promises.durable(1)
    assert left == []
    promises.durable(2)
    assert left == [1, 2]
    promises.durable(3)
    assert left == [1, 2, 3]


@pytest.mark.parametrize(
    ("limit_ms", "now_ms", "late_ms"), [(250, 1250, 0), (250, 1251, 251), (0, 9_000, 0)]
)
def test_late_is_what_exceeds_the_limit(limit_ms: int, now_ms: int, late_ms: int) -> None:
    pause_detector = PauseDetector(limit_ms)
    assert pause_detector.late_by(10**9) == 0, "nothing was asked for"
    pause_detector.due_ms = 1000
    assert pause_detector.late_by(now_ms) == late_ms


def test_lateness_is_told_once() -> None:
    pause_detector = PauseDetector(250)
    pause_detector.due_ms = 0
    assert pause_detector.late_by(1000) == 1000
    assert pause_detector.late_by(2000) == 0


def test_what_a_cut_took_away_never_counts_as_flushed() -> None:
    flushed = FlushedEnd()
    flushed.replaced(5)
    flushed.appended(1, 10)
    flushed.appended(2, 20)
    flushed.truncated(12)
    assert flushed.durable(2)
    assert flushed.offset == 12
    assert not flushed.durable(3)
