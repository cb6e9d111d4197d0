"""A log that was trimmed to its end continues in the same epoch."""

from __future__ import annotations

from quorum.core.positions.fetch_classification import SERVE, classify_fetch
from quorum.core.positions.log_view import LogView
from quorum.types import EpochStart, OffsetAndEpoch


def test_an_epoch_that_goes_on_behind_the_log_start_keeps_its_end() -> None:
    """Trim a leader's log to its end, let it append in its epoch, then a later epoch begin.

    A follower that holds the records in between has a prefix of that log.
    """
    log = LogView(OffsetAndEpoch(0, 0), OffsetAndEpoch(10, 2), (EpochStart(2, 0),))
    log.advance_start(OffsetAndEpoch(10, 2))

    log.append(15, (), ticket=1)
    log.append(16, (EpochStart(4, 15),), ticket=2)

    assert log.epochs.entries == (EpochStart(2, 10), EpochStart(4, 15))
    assert log.end_offset_for_epoch(2) == OffsetAndEpoch(15, 2)
    assert classify_fetch(log, OffsetAndEpoch(10, 2), 13, 2) == SERVE
