"""Which records of an answer can follow the log: each refusal, and what lies just beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.following.record_checks import problem_with_records
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.voters.voter_set import VoterSet
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import ZERO_UUID, EpochStart, OffsetAndEpoch
from tests.support.bare_core import EPOCH, LOG_END, core_of, follower
from tests.support.core_disk import voter

BEFORE = EPOCH - 1
"""Epoch of the last record of the log."""
END = LOG_END + 10
VOTERS = (voter(1), voter(2))
GOOD = ReceivedRecords(LOG_END, END, (EpochStart(BEFORE, LOG_END),), (), b"records")


def epochs(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"epochs": tuple(EpochStart(epoch, LOG_END + start) for epoch, start in pairs)}


def voters_at(*offsets: int) -> dict[str, Any]:
    return {"voters": tuple(VotersAt(LOG_END + offset, VOTERS) for offset in offsets)}


SECOND = LogIncarnation(1, b"i" * 16, ZERO_UUID, OffsetAndEpoch(3, 2), b"r" * 32)
STRANGE = LogIncarnation(2, b"j" * 16, b"k" * 16, OffsetAndEpoch(3, 2), b"r" * 32)


def incarnations(*found: LogIncarnation) -> dict[str, Any]:
    records = (VotersAt(LOG_END + at, VOTERS, incarnation=each) for at, each in enumerate(found))
    return {"voters": tuple(records)}


def problem(fields: dict[str, Any], *, known_at: int = 3) -> str:
    core = core_of(follower(), log_epoch=BEFORE)
    core.voters.add(known_at, VoterSet(VOTERS))
    return problem_with_records(core, replace(GOOD, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"end_offset": LOG_END + 1},
        epochs((EPOCH, 0)),
        epochs((BEFORE, 0), (EPOCH, 1)),
        epochs((BEFORE, 0), (EPOCH, 9)),
        voters_at(0),
        voters_at(9),
        voters_at(3, 4),
        incarnations(FIRST_INCARNATION, SECOND, SECOND),
    ],
)
def test_records_that_follow_the_log(fields: dict[str, Any]) -> None:
    assert problem(fields) == ""


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"base_offset": LOG_END - 1}, "do not follow log end 40"),
        ({"base_offset": LOG_END + 1}, "do not follow log end 40"),
        ({"end_offset": LOG_END}, "do not follow log end 40"),
        ({"end_offset": LOG_END - 1}, "do not follow log end 40"),
        ({"epochs": ()}, "without the epoch of their first batch"),
        (epochs((BEFORE, 1)), "without the epoch of their first batch"),
        (epochs((BEFORE, -1)), "without the epoch of their first batch"),
        (epochs((BEFORE - 1, 0)), "epoch 2 after epoch 3"),
        (epochs((BEFORE - 1, 0), (EPOCH, 1)), "epoch 2 after epoch 3"),
        (epochs((BEFORE, 0), (BEFORE, 1)), "epoch 3 at 41 after epoch 3 at 40"),
        (epochs((EPOCH, 0), (BEFORE, 1)), "epoch 3 at 41 after epoch 4 at 40"),
        (epochs((BEFORE, 0), (EPOCH, 0)), "epoch 4 at 40 after epoch 3 at 40"),
        (epochs((BEFORE, 0), (EPOCH, 10)), "epoch 4 at 50 after epoch 3 at 40"),
        (epochs((EPOCH + 1, 0)), "epoch 5 in an answer of epoch 4"),
        (epochs((BEFORE, 0), (EPOCH + 1, 1)), "epoch 5 in an answer of epoch 4"),
        (incarnations(STRANGE), "40 of another incarnation of the log"),
        (incarnations(SECOND, FIRST_INCARNATION), "41 of another incarnation of the log"),
        (voters_at(-1), "a voters record at 39"),
        (voters_at(10), "a voters record at 50"),
        (voters_at(4, 4), "a voters record at 44"),
        (voters_at(4, 3), "a voters record at 43"),
        ({"voters": (VotersAt(LOG_END, ()),)}, "a voters record at 40"),
        ({"voters": (VotersAt(LOG_END, (*VOTERS, voter(1))),)}, "40: a voter id appears twice"),
    ],
)
def test_records_that_do_not(fields: dict[str, Any], text: str) -> None:
    assert problem(fields).endswith(text)


def test_a_voters_record_lies_behind_the_one_in_force() -> None:
    """Method: one that came with a snapshot beyond the log end."""
    assert problem(voters_at(4), known_at=LOG_END + 3) == ""
    assert problem(voters_at(3), known_at=LOG_END + 3) == "a voters record at 43"
