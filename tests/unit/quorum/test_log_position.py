"""Positions of readers of the log: stored and read again, and compared by digest."""

from __future__ import annotations

import pytest

from quorum.log_position import (
    LINEAGE_EPOCHS_MAX,
    Divergence,
    EpochEntry,
    Lineage,
    LogPosition,
)

FULL = LogPosition(
    40, 7, (EpochEntry(3, 0, b"a" * 16), EpochEntry(7, 21)), b"d" * 16, bytes(15) + b"\x01"
)


def fields(position: LogPosition) -> tuple[object, ...]:
    """All fields; positions compare by offset and epoch only."""
    return (
        position.offset,
        position.epoch,
        position.epochs,
        position.log_digest,
        position.log_incarnation,
    )


@pytest.mark.parametrize("position", [LogPosition(0), LogPosition(5, 2), FULL])
def test_a_position_survives_being_stored(position: LogPosition) -> None:
    assert fields(LogPosition.from_json(position.to_json())) == fields(position)


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"offset": "x"}', '{"offset": 1, "epochs": [1]}', '{"offset": 1, "digest": 5}'],
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        LogPosition.from_json(text)


def test_positions_of_the_former_stream_are_read() -> None:
    found = LogPosition.from_dict({"offset": 9, "epoch": 2, "epochs": [[1, 0], [2, 4]]})
    assert (found, found.epochs) == (LogPosition(9, 2), (EpochEntry(1, 0), EpochEntry(2, 4)))


def test_a_lineage_is_bounded_and_knows_each_records_epoch() -> None:
    lineage = Lineage((epoch, 2 * epoch) for epoch in range(LINEAGE_EPOCHS_MAX + 5))
    assert len(lineage.epochs) == LINEAGE_EPOCHS_MAX
    assert [lineage.epoch_at(offset) for offset in (3, 10, 11, 12)] == [-1, 5, 5, 6]


def confirmed(
    lineage: Lineage, found: Divergence, same_below: int | None
) -> tuple[Divergence, int]:
    """Check against a log that equals what was read below an offset; and how many questions."""
    check, asked = lineage.check_digests(found), 0
    try:
        offset, digest = next(check)
        while True:
            asked += 1
            assert digest == b"%d" % offset
            answer = None if same_below is None else offset <= same_below
            offset, digest = check.send(answer)
    except StopIteration as done:
        return done.value, asked


MARKED = Lineage([(epoch, epoch * 10, b"%d" % (epoch * 10)) for epoch in range(1, 65)])
LOCATED = Divergence(645, 64, is_exact=True)


def test_digests_confirm_a_divergence_with_one_question() -> None:
    assert confirmed(MARKED, LOCATED, 640) == (LOCATED, 1)


def test_a_log_that_cannot_answer_contradicts_nothing() -> None:
    assert confirmed(MARKED, LOCATED, None) == (LOCATED, 1)
    assert confirmed(Lineage([(1, 0), (2, 10)]), LOCATED, 0) == (LOCATED, 0)


@pytest.mark.parametrize("same_below", [0, 10, 15, 330, 629])
def test_digests_that_differ_give_the_lowest_known_bound(same_below: int) -> None:
    found, asked = confirmed(MARKED, LOCATED, same_below)
    assert (found.offset, found.is_exact) == (same_below // 10 * 10 + 10, False)
    assert asked <= 8
