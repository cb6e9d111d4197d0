"""Batches that were verified before are applied as if they were read again."""

from __future__ import annotations

import pytest

from quorum.batch import VerifiedBatches, encode_batch, scan_batches
from quorum.control import LeaderChange, encode_control_batch
from quorum.errors import QuorumUsageError
from statemachine.codec import encode_record
from statemachine.machine import StateMachine
from statemachine.records import ConfigRecord, MetadataRecord, TopicRecord


def batch(base: int, record: MetadataRecord) -> bytes:
    return encode_batch([encode_record(record)], base_offset=base, epoch=1, timestamp=base)


FIRST = batch(0, TopicRecord("a", b"a" * 16)) + batch(1, TopicRecord("b", b"b" * 16))
SECOND = batch(2, ConfigRecord(2, "a", "k", "v")) + encode_control_batch(
    [LeaderChange(1, (1,), (1,))], base_offset=3, epoch=1, timestamp=3
)
THIRD = batch(4, TopicRecord("c", b"c" * 16))
UNREADABLE = b"?"


def test_verified_batches_are_applied_without_reading_the_data_again() -> None:
    """Goal: the same image, by less work. Method: a part of a buffer, then two that overlap it."""
    plain, machine = StateMachine(), StateMachine()
    plain.apply(FIRST + SECOND + THIRD)
    headers = scan_batches(FIRST)
    machine.apply(UNREADABLE, [VerifiedBatches(FIRST, headers[:1])])
    assert machine.end_offset == 1
    both = [VerifiedBatches(FIRST, headers), VerifiedBatches(SECOND, scan_batches(SECOND))]
    machine.apply(UNREADABLE, both)
    assert machine.end_offset == 4
    machine.apply(UNREADABLE, both)
    machine.apply(UNREADABLE, [VerifiedBatches(THIRD, scan_batches(THIRD))])
    assert machine.image == plain.image


def test_verified_batches_may_leave_no_gap() -> None:
    """Goal: the check of positions stays. Method: the second batch without the first."""
    with pytest.raises(QuorumUsageError, match="begins at 1, applied up to 0"):
        StateMachine().apply(UNREADABLE, [VerifiedBatches(FIRST, scan_batches(FIRST)[1:])])


def test_exact_bytes_are_those_of_the_batches() -> None:
    """Goal: readers of the image get what was applied, no more. Method: a part of a buffer."""
    first, second = scan_batches(FIRST)
    assert VerifiedBatches(FIRST, [first, second]).exact_bytes is FIRST
    assert VerifiedBatches(FIRST, [second]).exact_bytes == batch(1, TopicRecord("b", b"b" * 16))
