"""Tombstones ride in tagged fields of the voters record and survive readers that skip them."""

from __future__ import annotations

import pytest

from quorum.batch import iterate_records, scan_batches
from quorum.control import REMOVED_VOTERS_TAG, decode_control, encode_control_batch
from quorum.control_records import Voters
from quorum.errors import CorruptBatchError
from quorum.types import ReplicaKey, Voter

VOTER = Voter(ReplicaKey(1, b"d" * 16))
GONE = ReplicaKey(2, b"e" * 16)
BACK = ReplicaKey(3, b"f" * 16)


def written_and_read(record: Voters) -> object:
    data = encode_control_batch([record], base_offset=5, epoch=1, timestamp=0)
    (header,) = scan_batches(data)
    (found,) = iterate_records(data, header)
    return decode_control(found)


@pytest.mark.parametrize(
    "record",
    [
        Voters((VOTER,), removed=(GONE,)),
        Voters((VOTER,), removed=(GONE, BACK), readmitted=(ReplicaKey(4, b"g" * 16),)),
        Voters((VOTER,), tagged=((7, b"x"), (30_000, b"y")), removed=(GONE,)),
    ],
)
def test_tombstones_come_back_beside_foreign_tags(record: Voters) -> None:
    assert written_and_read(record) == record


def test_without_tombstones_nothing_is_added() -> None:
    plain = encode_control_batch([Voters((VOTER,))], base_offset=5, epoch=1, timestamp=0)
    assert REMOVED_VOTERS_TAG.to_bytes(2, "little") not in plain
    assert written_and_read(Voters((VOTER,))) == Voters((VOTER,))


def test_a_malformed_tombstone_is_damage() -> None:
    with pytest.raises(CorruptBatchError):
        written_and_read(Voters((VOTER,), tagged=((REMOVED_VOTERS_TAG, b"\x09short"),)))
