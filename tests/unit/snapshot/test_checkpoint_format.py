"""The layout of a checkpoint: head, data cut at fixed sizes, footer; the same bytes always."""

from __future__ import annotations

import hashlib

import pytest

from quorum.batch import iterate_records, record_values, scan_batches
from quorum.control import SnapshotFooter, SnapshotHeader, decode_control
from quorum.control_records import KRaftVersion, Voters
from quorum.errors import QuorumUsageError
from quorum.types import Endpoint, ReplicaKey, SnapshotId, Voter
from snapshot.format import (
    DATA_BATCH_BYTES,
    DATA_BATCH_RECORDS,
    CheckpointHead,
    checkpoint_batches,
    cut_values,
)

VOTER = Voter(ReplicaKey(1, b"d" * 16), (Endpoint("CONTROLLER", "localhost", 9093),))
ID = SnapshotId(1000, 3)


def test_head_data_footer() -> None:
    values = [b"a" * 1000] * 600
    head = CheckpointHead(12345, b"L" * 16, 1, (VOTER,))
    batches = list(checkpoint_batches(ID, head, values, b"S" * 16))
    data = b"".join(batch for batch, _ in batches)
    headers = scan_batches(data)
    assert headers[0].base_offset == 0
    assert {header.epoch for header in headers} == {3}
    assert {header.base_timestamp for header in headers} == {12345}
    assert {header.max_timestamp for header in headers} == {12345}
    assert {header.codec for header in headers} == {0}
    assert [header.is_control for header in headers] == [True, False, False, False, True]
    assert [decode_control(r) for r in iterate_records(data, headers[0])] == [
        SnapshotHeader(12345, b"L" * 16, end=ID),
        KRaftVersion(1),
        Voters((VOTER,)),
    ]
    assert [decode_control(r) for r in iterate_records(data, headers[-1])] == [
        SnapshotFooter(b"S" * 16)
    ]
    read = [value for header in headers[1:-1] for value in record_values(data, header)]
    assert read == values
    assert [count for _, count in batches] == [0, 262, 262, 76, 0]


def test_static_voters_are_not_stored() -> None:
    (first, _), _ = checkpoint_batches(ID, CheckpointHead(1), [])
    assert [decode_control(r) for r in iterate_records(first, scan_batches(first)[0])] == [
        SnapshotHeader(1, end=ID)
    ]
    with pytest.raises(QuorumUsageError, match=r"kraft\.version 0"):
        list(checkpoint_batches(ID, CheckpointHead(1, voters=(VOTER,)), []))


def test_where_batches_are_cut() -> None:
    half = DATA_BATCH_BYTES // 2
    sizes = [
        [len(value) for value in group]
        for group in cut_values(
            [b"x" * half, b"x" * half, b"x", b"x" * (DATA_BATCH_BYTES + 5), b"x"]
        )
    ]
    assert sizes == [[half, half], [1], [DATA_BATCH_BYTES + 5], [1]]
    counts = [len(group) for group in cut_values([b"x"] * (DATA_BATCH_RECORDS + 1))]
    assert counts == [DATA_BATCH_RECORDS, 1]
    assert list(cut_values([])) == []


def test_bytes_are_pinned_across_releases() -> None:
    """Goal: replicas of two releases that write the same snapshot id write the same bytes."""
    head = CheckpointHead(1_700_000_000_000, b"L" * 16, 1, (VOTER,), ((5, b"t"),), ((6, b"u"),))
    values = (b"%d" % n * 20 for n in range(20_000))
    whole = b"".join(batch for batch, _ in checkpoint_batches(ID, head, values, b"S" * 16))
    assert len(whole) == 1976982
    assert hashlib.sha256(whole).hexdigest() == (
        "befc00b941733b6cb58a3630d439b02d3d1dc89fc4bb33db412da8e24d2956de"
    )


def test_state_digest_may_be_computed_while_the_values_pass() -> None:
    digest = hashlib.blake2b(digest_size=16)

    def values():
        for value in (b"one", b"two"):
            digest.update(value)
            yield value

    *_, (last, _) = checkpoint_batches(ID, CheckpointHead(1), values(), digest.digest)
    (record,) = iterate_records(last, scan_batches(last)[0])
    expected = hashlib.blake2b(b"onetwo", digest_size=16).digest()
    assert decode_control(record) == SnapshotFooter(expected)
