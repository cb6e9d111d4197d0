"""The incarnation of a log: its place in voters records and checkpoints, and what may follow it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control, encode_control_batch
from quorum.control_incarnation import (
    LOG_INCARNATION_TAG,
    decode_incarnation,
    encode_incarnation,
)
from quorum.control_records import Voters
from quorum.errors import CorruptBatchError, QuorumUsageError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation, can_follow
from quorum.types import ZERO_UUID, OffsetAndEpoch, ReplicaKey, SnapshotId, Voter
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.verifier import CheckpointVerifier

VOTER = Voter(ReplicaKey(1, b"d" * 16))
SECOND = LogIncarnation(1, b"i" * 16, ZERO_UUID, OffsetAndEpoch(147, 9), b"r" * 32)
THIRD = LogIncarnation(2, b"j" * 16, SECOND.id, OffsetAndEpoch(200, 1009), b"s" * 32)
OTHER_THIRD = replace(THIRD, id=b"k" * 16)


def written_and_read(record: Voters) -> object:
    data = encode_control_batch([record], base_offset=5, epoch=1, timestamp=0)
    (found,) = iterate_records(data, scan_batches(data)[0])
    return decode_control(found)


@pytest.mark.parametrize("incarnation", [FIRST_INCARNATION, SECOND, THIRD])
def test_a_voters_record_carries_it_beside_foreign_tags(incarnation: LogIncarnation) -> None:
    record = Voters((VOTER,), tagged=((7, b"x"), (30_000, b"y")), incarnation=incarnation)
    assert written_and_read(record) == record


def test_a_checkpoint_repeats_it() -> None:
    snapshot_id = SnapshotId(7, 2)
    head = CheckpointHead(5, kraft_version=1, voters=(VOTER,), incarnation=THIRD)
    verifier = CheckpointVerifier(snapshot_id=snapshot_id, path="c")
    for data, _ in checkpoint_batches(snapshot_id, head, [b"v"]):
        verifier.feed(data)
    assert verifier.finish().head.incarnation == THIRD


def test_the_first_one_adds_no_byte() -> None:
    plain = encode_control_batch([Voters((VOTER,))], base_offset=5, epoch=1, timestamp=0)
    assert encode_incarnation(FIRST_INCARNATION) == b""
    assert LOG_INCARNATION_TAG.to_bytes(2, "little") not in plain


def test_fields_of_a_later_release_are_skipped() -> None:
    data = encode_incarnation(SECOND)[:-1] + b"\x01\x07\x01x"
    assert decode_incarnation(data) == SECOND


@pytest.mark.parametrize(
    "data",
    [
        b"short",
        encode_incarnation(SECOND)[:-1],
        encode_incarnation(SECOND)[:-1] + b"\x05",
        b"\0\0\0\0" + encode_incarnation(SECOND)[4:],
        encode_incarnation(SECOND)[:4] + bytes(16) + encode_incarnation(SECOND)[20:],
        encode_incarnation(THIRD)[:4] + THIRD.previous_id + encode_incarnation(THIRD)[20:],
        encode_incarnation(SECOND)[:36] + b"\xff" * 8 + encode_incarnation(SECOND)[44:],
    ],
)
def test_a_malformed_one_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        written_and_read(Voters((VOTER,), tagged=((LOG_INCARNATION_TAG, data),)))


@pytest.mark.parametrize(
    "incarnation",
    [
        replace(SECOND, number=0),
        replace(SECOND, number=1 << 31),
        replace(SECOND, id=b"short"),
        replace(SECOND, report_digest=b""),
    ],
)
def test_what_no_reader_would_accept_is_not_written(incarnation: LogIncarnation) -> None:
    with pytest.raises(QuorumUsageError):
        written_and_read(Voters((VOTER,), incarnation=incarnation))


@pytest.mark.parametrize(
    ("before", "after", "is_possible"),
    [
        (FIRST_INCARNATION, FIRST_INCARNATION, True),
        (FIRST_INCARNATION, SECOND, True),
        (SECOND, THIRD, True),
        (SECOND, SECOND, True),
        (FIRST_INCARNATION, THIRD, False),
        (SECOND, FIRST_INCARNATION, False),
        (THIRD, SECOND, False),
        (THIRD, OTHER_THIRD, False),
        (SECOND, replace(SECOND, report_digest=b"t" * 32), False),
        (SECOND, replace(THIRD, number=3), False),
    ],
)
def test_an_incarnation_follows_the_one_that_it_names(
    before: LogIncarnation, after: LogIncarnation, is_possible: bool
) -> None:
    assert can_follow(before, after) is is_possible
