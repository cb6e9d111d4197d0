"""Control records: round trips, foreign versions and types, tagged fields, malformed bytes."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from quorum.batch import Record, iterate_records, scan_batches
from quorum.control import (
    LOG_DIGEST_TAG,
    AbortMarker,
    CommitMarker,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    decode_control,
    encode_control_batch,
)
from quorum.control_origin import ORIGIN_TAG, origin_headers
from quorum.control_records import KRaftVersion, LeaderChange, Origin, Voters
from quorum.errors import CorruptBatchError, QuorumUsageError
from quorum.types import Endpoint, ReplicaKey, Voter
from quorum.varint import encode_tagged_fields

TAGS = ((3, b"three"), (500, b""))
VOTERS = (
    Voter(ReplicaKey(1, b"d" * 16), (Endpoint("CONTROLLER", "h", 1), Endpoint("B", "::1", 65535))),
    Voter(ReplicaKey(2), (), 0, 3, TAGS),
)


def control(control_type: int, value: bytes | None, *, key_version: int = 0) -> Record:
    return Record(7, 0, struct.pack(">hh", key_version, control_type), value)


@pytest.mark.parametrize(
    "record",
    [
        LeaderChange(3, (1, 2, 3), (3,), TAGS),
        LeaderChange(3, (1, 2, 3), (3,), TAGS, Origin("User:änn", "why")),
        Voters(VOTERS, TAGS, origin=Origin("", "self registration")),
        KRaftVersion(1, TAGS),
        Voters(VOTERS, TAGS),
        Voters(()),
        SnapshotHeader(123, b"d" * 16, TAGS),
        SnapshotHeader(-1),
        SnapshotFooter(b"s" * 16, TAGS),
    ],
)
def test_round_trip_with_tagged_fields(record) -> None:
    raw = encode_control_batch([record, record], base_offset=4, epoch=2, timestamp=5)
    (header,) = scan_batches(raw)
    assert header.is_control
    assert header.producer_id == -1
    assert [decode_control(found) for found in iterate_records(raw, header)] == [record] * 2


@pytest.mark.parametrize(
    "record", [LeaderChange(1, (1,), (1,)), Voters(VOTERS, removed=(ReplicaKey(9, b"r" * 16),))]
)
def test_without_an_origin_a_record_has_the_bytes_of_earlier_releases(
    record: LeaderChange | Voters,
) -> None:
    """Also with one, what is before the field is the same, as readers that skip it need."""
    plain, named = (
        iterate_records(raw, scan_batches(raw)[0])[0]
        for each in (record, replace(record, origin=Origin("User:ann", "why")))
        for raw in [encode_control_batch([each], base_offset=0, epoch=1, timestamp=1)]
    )
    assert b"ann" not in (plain.value or b"")
    assert b"ann" in (named.value or b"")
    assert not named.headers
    assert origin_headers(decode_control(plain)) == ()
    assert origin_headers(decode_control(named)) == (("principal", b"User:ann"), ("reason", b"why"))


def test_a_malformed_origin_is_damage() -> None:
    value = struct.pack(">hi", 0, 1) + b"\x01\x01" + encode_tagged_fields(((ORIGIN_TAG, b"\x09x"),))
    with pytest.raises(CorruptBatchError, match="offset 7"):
        decode_control(control(2, value))


def test_our_digest_rides_behind_foreign_tags() -> None:
    raw = encode_control_batch(
        [SnapshotHeader(1, b"D" * 16, ((9, b"x"),))], base_offset=0, epoch=1, timestamp=1
    )
    (record,) = iterate_records(raw, scan_batches(raw)[0])
    assert record.value is not None
    assert record.value[10:] == encode_tagged_fields(((9, b"x"), (LOG_DIGEST_TAG, b"D" * 16)))


def test_markers() -> None:
    assert decode_control(control(0, bytes.fromhex("000000000005"))) == AbortMarker(5)
    assert decode_control(control(1, bytes.fromhex("000000000006"))) == CommitMarker(6)


def test_leader_change_version_1_is_read() -> None:
    voter = bytes.fromhex("00000002") + b"d" * 16 + b"\x00"
    value = bytes.fromhex("0001 00000002 02") + voter + b"\x02" + voter + b"\x00"
    assert decode_control(control(2, value)) == LeaderChange(2, (2,), (2,))


def test_unknown_types_and_versions_are_tolerated() -> None:
    assert decode_control(control(99, b"abc")) == UnknownControl(99, -1, b"abc")
    assert decode_control(control(2, b"\x00\x02rest")) == UnknownControl(2, 2, b"\x00\x02rest")
    assert decode_control(control(3, b"\x00\x01rest")) == UnknownControl(3, 1, b"\x00\x01rest")


def test_longer_keys_higher_key_versions_and_trailing_bytes_are_accepted() -> None:
    record = Record(0, 0, struct.pack(">hh", 4, 5) + b"more", bytes.fromhex("0000000100ffff"))
    assert decode_control(record) == KRaftVersion(1)


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        (Record(7, 0, None, b"\0\0\0"), "no control key"),
        (Record(7, 0, b"\0\0\0", b"\0\0\0"), "no control key"),
        (control(4, None), "no value"),
        (control(4, b"\0\0\0", key_version=-1), "key version -1"),
        (control(4, b"\xff\xff\0"), "value version -1"),
        (control(4, b""), "bytes wanted"),
        (control(2, bytes.fromhex("0000 00000001 00")), "array"),
        (control(2, bytes.fromhex("0000 00000001 ff0f")), "array"),
        (control(2, bytes.fromhex("0000 00000001 02 000000")), "bytes wanted"),
        (control(3, b"\0\0\0\0"), "bytes wanted"),
        (control(6, bytes.fromhex("0000 02 00000001") + bytes(16) + b"\x02\x02\xff"), "utf-8"),
    ],
)
def test_malformed_records_name_offset_and_cause(record: Record, cause: str) -> None:
    with pytest.raises(CorruptBatchError, match="offset 7") as caught:
        decode_control(record, path="x.log", position=99)
    assert cause in str(caught.value)
    assert "x.log" in str(caught.value)
    assert caught.value.position == 99


@pytest.mark.parametrize(
    "record",
    [
        LeaderChange(2**31, (), ()),
        Voters((Voter(ReplicaKey(1, b"short")),)),
        Voters((Voter(ReplicaKey(1), (Endpoint("A", "h", 70_000),)),)),
        KRaftVersion(1, ((5, b""), (5, b""))),
    ],
)
def test_values_outside_their_field_are_our_callers_mistake(record) -> None:
    with pytest.raises(QuorumUsageError):
        encode_control_batch([record], base_offset=0, epoch=1, timestamp=0)
