"""The state of a replica's log that client services read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from quorate.replica.log_facts import LogFacts
from quorate.replica.replica import Replica
from quorum.core.positions.epoch_history import EpochHistory
from quorum.types import LOG_BEGINNING, EpochStart, OffsetAndEpoch


@pytest.mark.parametrize(
    ("start", "epochs", "end", "expected"),
    [
        (LOG_BEGINNING, [(2, 0), (3, 7)], 9, 7),
        (LOG_BEGINNING, [(3, 0)], 9, 0),
        (LOG_BEGINNING, [(2, 0)], 9, 9),
        (OffsetAndEpoch(5, 2), [(3, 5)], 9, 5),
        (OffsetAndEpoch(5, 3), [(3, 5)], 9, 4),
        (OffsetAndEpoch(9, 3), [], 9, 8),
    ],
)
def test_where_the_leaders_epoch_begins(
    start: OffsetAndEpoch, epochs: list[tuple[int, int]], end: int, expected: int
) -> None:
    """Goal: a leader in epoch 3 knows that its epoch has begun, also if that was trimmed away."""
    history = EpochHistory(start, [EpochStart(*each) for each in epochs], end)
    node = SimpleNamespace(
        epoch=3,
        log_start=start,
        end_offset_for_epoch=lambda epoch: history.end_offset_for_epoch(epoch, end),
    )
    facts = LogFacts(cast("Replica", SimpleNamespace(node=node)))
    assert facts.leader_epoch_start == expected
