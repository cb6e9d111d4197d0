"""No bytes whatever make the readers of batches raise anything but CorruptBatchError."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.batch import encode_batch, iterate_records, record_values, scan_batches
from quorum.control import (
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
    encode_control_batch,
)
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.errors import CorruptBatchError
from quorum.types import Endpoint, ReplicaKey, Voter
from tests.support.compressed_batch import compressed

VOTER = Voter(ReplicaKey(1, b"d" * 16), (Endpoint("CONTROLLER", "localhost", 9093),))


FILE = "segment.log"
"""What the errors have to name."""


@dataclass
class Reading:
    """What came through whole, and what was refused."""

    whole: int = 0
    refused: list[CorruptBatchError] = field(default_factory=list)

    def refuse(self, error: CorruptBatchError, data: bytes) -> None:
        """The error names the problem, the file and the position."""
        assert error.cause
        assert 0 <= error.position <= len(data)
        assert f"position {error.position}: {error.cause}" in str(error)
        assert FILE in str(error)
        self.refused.append(error)


def read_everything(data: bytes) -> Reading:
    """Read ``data`` as a log reader would."""
    reading = Reading()
    try:
        headers = scan_batches(data, path=FILE)
    except CorruptBatchError as error:
        reading.refuse(error, data)
        headers = []
    for header in headers:
        try:
            records = iterate_records(data, header, path=FILE)
        except CorruptBatchError as error:
            reading.refuse(error, data)
            records = []
        try:
            values = record_values(data, header, path=FILE)
        except CorruptBatchError as error:
            reading.refuse(error, data)
        else:
            # The fast path must never read what the careful path refuses, or read it differently.
            assert values == [record.value for record in records]
            reading.whole += 1
        causes = []
        for record in records:
            try:
                decode_control(record)
            except CorruptBatchError as error:
                causes.append(error.cause)
        assert all(causes)
    return reading


def reseal(raw: bytearray) -> bytes:
    if len(raw) < 61:
        return bytes(raw)
    raw[8:12] = struct.pack(">i", len(raw) - 12)
    raw[16] = 2
    raw[17:21] = struct.pack(">I", crc32c.crc32c(bytes(raw[21:])))
    return bytes(raw)


BATCHES = [
    encode_batch(
        [b"one", b"two" * 60, b"three"],
        base_offset=0,
        epoch=1,
        timestamp=5,
        headers=(("a", b"b"), ("c", None)),
    ),
    compressed(encode_batch([b"value"] * 20, base_offset=0, epoch=1, timestamp=5)),
    encode_control_batch(
        [LeaderChange(1, (1, 2), (1,), ((9, b"x"),))], base_offset=0, epoch=1, timestamp=5
    ),
    encode_control_batch(
        [SnapshotHeader(5, b"d" * 16), KRaftVersion(1), Voters((VOTER,)), SnapshotFooter()],
        base_offset=0,
        epoch=1,
        timestamp=5,
    ),
]


def assert_read_or_refused(data: bytes) -> Reading:
    """A single batch is taken whole, or refused with where and why; never neither, never both."""
    reading = read_everything(data)
    assert reading.whole == (0 if reading.refused else 1)
    return reading


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    """No part of it is taken for a batch, and only empty input gives no error."""
    reading = read_everything(data)
    assert reading.whole == 0
    assert len(reading.refused) == (1 if data else 0)


@given(st.binary(min_size=49, max_size=300))
def test_random_bytes_behind_a_intact_frame(tail: bytes) -> None:
    assert_read_or_refused(reseal(bytearray(21) + bytearray(tail)))


@given(st.binary(min_size=1, max_size=300), st.integers(0, 4), st.integers(1, 5))
def test_random_records_behind_a_intact_header(records: bytes, codec: int, count: int) -> None:
    header = bytearray(encode_batch([b"v"], base_offset=0, epoch=1, timestamp=5)[:61])
    header[21:23] = struct.pack(">h", codec)
    header[23:27] = struct.pack(">i", count - 1)
    header[57:61] = struct.pack(">i", count)
    assert_read_or_refused(reseal(header + bytearray(records)))


@settings(max_examples=400)
@given(
    st.sampled_from(BATCHES),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, 400),
    st.booleans(),
)
def test_mutated_batches(
    batch: bytes, changes: list[tuple[int, int]], cut: int, sealed: bool
) -> None:
    """Method: change some bytes, perhaps cut the end off, perhaps make the checksum right again
    so that the damage reaches the parsers behind it."""
    raw = bytearray(batch)
    for position, value in changes:
        raw[position % len(raw)] = value
    del raw[max(1, len(raw) - cut % 40) :]
    data = reseal(raw) if sealed else bytes(raw)
    reading = assert_read_or_refused(data)
    if reading.whole and not sealed:
        # Only what lies outside of the checksum may be another than it was.
        assert data[21:] == batch[21:]


@given(st.integers(0, 5), st.binary(max_size=120), st.binary(max_size=8))
def test_random_control_values(control_type: int, value: bytes, key_end: bytes) -> None:
    raw = encode_batch(
        [value or b"\0"],
        base_offset=0,
        epoch=1,
        timestamp=1,
        control_keys=[struct.pack(">hh", 0, control_type + 1) + key_end],
    )
    assert read_everything(raw).whole == 1


def test_the_reader_under_test_does_read() -> None:
    """Goal: these tests prove nothing if intact batches do not come through either."""
    assert [read_everything(batch) for batch in BATCHES] == [Reading(whole=1)] * 4


@given(
    st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=20),
    st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=50)), max_size=5),
    st.integers(0, 2**50),
    st.booleans(),
)
def test_round_trip(
    values: list[bytes],
    headers: list[tuple[str, bytes | None]],
    base_offset: int,
    is_compressed: bool,
) -> None:
    raw = encode_batch(values, base_offset=base_offset, epoch=3, timestamp=7, headers=headers)
    raw = compressed(raw) if is_compressed else raw
    (header,) = scan_batches(raw)
    records = iterate_records(raw, header)
    assert [record.value for record in records] == values == record_values(raw, header)
    assert [record.offset for record in records] == [base_offset + n for n in range(len(values))]
    assert records[0].headers == tuple(headers)
    assert not any(record.headers for record in records[1:])
