"""The client's own batch reader against the encoder of the server."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.client.batches import crc32c, read_batches
from quorate.client.errors import ProtocolError
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from tests.support.compressed_batch import compressed as zstd_batch

HEADERS = (("principal", b"me"), ("empty", b""))


def batch(base=5, values=(b"one", b"two"), **fields) -> bytes:
    return encode_batch(list(values), base_offset=base, epoch=3, timestamp=99, **fields)


def test_records_come_with_offset_epoch_and_headers():
    found = read_batches(batch(headers=HEADERS) + batch(base=7, values=[b"three"]))
    assert [(b.base_offset, b.end_offset, b.leader_epoch) for b in found] == [(5, 7, 3), (7, 8, 3)]
    records = [record for each in found for record in each.records()]
    assert [(r.offset, r.leader_epoch, r.timestamp_ms, r.value) for r in records] == [
        (5, 3, 99, b"one"),
        (6, 3, 99, b"two"),
        (7, 3, 99, b"three"),
    ]
    assert records[0].headers == HEADERS
    assert records[1].headers == ()


def test_control_batches_have_positions_and_no_records():
    data = encode_control_batch([LeaderChange(1, (1,), (1,))], base_offset=0, epoch=1, timestamp=1)
    (found,) = read_batches(data)
    assert found.is_control
    assert (found.end_offset, found.records()) == (1, [])


def compressed(payload: bytes, codec: int):
    (plain,) = read_batches(batch())
    return replace(plain, payload=payload, codec=codec)


def test_gzip_can_be_read_and_other_compression_is_named():
    (plain,) = read_batches(batch())
    found = compressed(gzip.compress(plain.payload), 1)
    assert [r.value for r in found.records()] == [b"one", b"two"]
    (zstd,) = read_batches(zstd_batch(batch()))
    with pytest.raises(ProtocolError, match="compression 4 is not supported"):
        zstd.records()


def test_a_gap_is_refused():
    with pytest.raises(ProtocolError, match="offset 9 follows 7"):
        read_batches(batch() + batch(base=9))


def test_the_checksum_has_the_standard_check_value():
    assert crc32c(b"123456789") == 0xE3069283


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_noticed(position, change):
    """Offset and epoch lie outside the checksum; everything else must not pass."""
    data = bytearray(batch(headers=HEADERS))
    position = 16 + position % (len(data) - 16)
    data[position] ^= change
    with pytest.raises(ProtocolError):
        read_batches(bytes(data))


def test_garbage_never_escapes_as_another_error():
    """Noise, and noise behind an intact header: refused, or as many records as it claims."""
    outcomes = Counter()

    @given(st.binary(max_size=200))
    def evaluate(data):
        length = (len(data) + 49).to_bytes(4, "big")
        for candidate in (data, batch()[:8] + length + batch()[12:61] + data):
            try:
                found = read_batches(candidate, verify_checksums=False)
                records = [record for each in found for record in each.records()]
            except ProtocolError:
                outcomes["refused"] += 1
            else:
                assert len(records) == sum(each.record_count for each in found)
                outcomes["read"] += 1

    evaluate()
    assert outcomes["refused"] >= 50, outcomes


def test_a_compression_bomb_is_refused():
    with pytest.raises(ProtocolError, match="too large"):
        compressed(gzip.compress(bytes(64 << 20)), 1).records()
