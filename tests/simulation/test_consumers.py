"""Simulated consumers of the log: they read, look up and reset, and notice what goes wrong.

That they notice false truncations and resets is shown by the bug zoo (``zoo/watching.py``).
"""

from __future__ import annotations

import pytest

from quorate.services.log_range import LogRange
from quorum.v1.errors_pb2 import DivergenceHint
from simulation import episode
from simulation.consumers import NAME
from simulation.options import Options

SEEDS_MAX = 30


def test_consumers_read_look_up_and_reset() -> None:
    """Method: a few seeds in which nothing is broken."""
    outcomes = [episode.run(seed, Options("network")) for seed in range(1, 7)]
    assert [each.violation for each in outcomes] == [None] * len(outcomes)
    for name in ("log_batches", "log_lookups", "log_resets"):
        assert sum(getattr(each.counts, name) for each in outcomes) > 0, name


def test_a_position_is_not_given_up_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break it: a replica calls a position out of range that it merely does not have yet."""
    check_position = LogRange.check_position

    def refuse(range_: LogRange, offset: int, last_epoch: int) -> DivergenceHint | None:
        if offset > range_._node.high_watermark >= 0 and not range_._node.is_leader:
            raise range_.out_of_range(offset)
        return check_position(range_, offset, last_epoch)

    monkeypatch.setattr(LogRange, "check_position", refuse)
    names = set()
    for seed in range(1, SEEDS_MAX + 1):
        violation = episode.run(seed, Options("network")).violation
        if violation is not None:
            names.add(violation.name)
        if NAME in names:
            return
    pytest.fail(f"not noticed, only {names}")
