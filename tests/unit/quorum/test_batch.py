"""Batches: what is written is read back, and damage is named with file, position and cause."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

from quorum import batch_decode, batch_header
from quorum.batch import (
    HEADER_BYTES,
    encode_batch,
    iterate_records,
    peek_size,
    read_header,
    record_values,
    scan_batches,
    with_position,
)
from quorum.batch_header import TRANSACTIONAL_BIT
from quorum.errors import CorruptBatchError, QuorumUsageError
from tests.support.compressed_batch import compressed, sealed

PATH = Path("folder/00000000000000000000.log")


def batch(*values: bytes, base_offset: int = 0, epoch: int = 1, **fields) -> bytes:
    return encode_batch(
        values or (b"value",), base_offset=base_offset, epoch=epoch, timestamp=1000, **fields
    )


def read_all(data: bytes, **kwargs) -> None:
    for header in scan_batches(data, path=PATH, **kwargs):
        iterate_records(data, header, path=PATH)


def corrupt(data: bytes, **kwargs) -> CorruptBatchError:
    with pytest.raises(CorruptBatchError) as caught:
        read_all(data, **kwargs)
    assert str(PATH) in str(caught.value)
    assert f"position {caught.value.position}" in str(caught.value)
    return caught.value


def test_headers_and_producer_fields_come_back() -> None:
    headers = (("principal", b"User:ann"), ("reason", None), ("täg", b""))
    raw = batch(
        b"one",
        b"two",
        producer_id=2**40,
        producer_epoch=7,
        base_sequence=12,
        headers=headers,
    )
    (header,) = scan_batches(raw)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 7, 12)
    assert not header.is_transactional
    assert header._replace(attributes=TRANSACTIONAL_BIT).is_transactional
    first, second = iterate_records(raw, header)
    assert (first.value, first.headers) == (b"one", headers)
    assert (second.value, second.headers) == (b"two", ())
    assert record_values(raw, header) == [b"one", b"two"]


@pytest.mark.parametrize("size", [1, 50, 63, 64, 120, 8000, 8191, 8192, 70_000])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_values_of_every_length_class(size: int, is_compressed: bool) -> None:
    values = [bytes([index % 251 + 1]) * size for index in range(3)]
    raw = batch(*values, base_offset=9)
    raw = compressed(raw) if is_compressed else raw
    (header,) = scan_batches(raw)
    assert record_values(raw, header) == values
    assert [r.value for r in iterate_records(raw, header)] == values


def test_many_records_cross_the_varint_widths_of_the_offset_delta() -> None:
    values = [b"%d" % index for index in range(8300)]
    raw = batch(*values)
    (header,) = scan_batches(raw)
    assert record_values(raw, header) == values
    assert [record.offset for record in iterate_records(raw, header)] == list(range(8300))


def test_scan_finds_contiguous_batches_in_any_buffer() -> None:
    parts = [batch(b"a", b"b", base_offset=5)]
    parts += [batch(base_offset=7, epoch=2), batch(base_offset=8, epoch=2)]
    data = b"".join(parts)
    for buffer in (data, bytearray(data), memoryview(data)):
        headers = scan_batches(buffer)
        assert [(h.base_offset, h.end_offset, h.epoch) for h in headers] == [
            (5, 7, 1),
            (7, 8, 2),
            (8, 9, 2),
        ]
        assert [data[h.position : h.end_position] for h in headers] == parts
        assert iterate_records(buffer, headers[1])[0].value == b"value"
    assert scan_batches(b"") == []


def test_with_position_moves_a_batch_without_touching_its_checksum() -> None:
    raw = batch(b"x", b"y", headers=(("h", b"v"),))
    moved = with_position(raw, 77, 12)
    assert moved == batch(b"x", b"y", base_offset=77, epoch=12, headers=(("h", b"v"),))
    with pytest.raises(QuorumUsageError):
        with_position(raw[:HEADER_BYTES], 0, 0)
    with pytest.raises(QuorumUsageError):
        with_position(raw, 0, 2**31)


@pytest.mark.parametrize("cut", [1, 17, HEADER_BYTES - 1, HEADER_BYTES, -1])
def test_cut_off(cut: int) -> None:
    good = batch()
    error = corrupt(good + batch(base_offset=1)[:cut])
    assert "cut off" in error.cause
    assert error.position == len(good)


def test_every_flipped_bit_is_found() -> None:
    """Goal: nothing in a batch that follows another may change unseen, checksum or not."""
    first, second, third = batch(epoch=1), batch(base_offset=1, epoch=1), batch(base_offset=2)
    for bit in range(len(second) * 8):
        damaged = bytearray(second)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptBatchError):
            scan_batches(first + bytes(damaged) + third)


def test_wrong_magic_zero_length_and_oversized() -> None:
    raw = bytearray(batch())
    raw[16] = 1
    assert "magic 1" in corrupt(bytes(raw)).cause
    raw = bytearray(batch())
    raw[8:12] = bytes(4)
    assert "size 12" in corrupt(bytes(raw)).cause
    raw[8:12] = struct.pack(">i", batch_header.BATCH_BYTES_MAX)
    assert "above the maximum" in corrupt(bytes(raw)).cause
    raw[8:12] = struct.pack(">i", -1)
    assert "size 11" in corrupt(bytes(raw)).cause
    assert "magic 0" in corrupt(bytes(100)).cause


def test_a_batch_above_the_maximum_is_damage_even_when_all_of_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = batch(b"x" * 100)
    monkeypatch.setattr(batch_header, "BATCH_BYTES_MAX", len(raw) - 1)
    assert "above the maximum" in corrupt(raw).cause


def test_a_header_alone_and_impossible_counts() -> None:
    raw = bytearray(batch(b"a", b"b"))
    assert "no room" in corrupt(sealed(raw[:HEADER_BYTES])).cause
    for count, delta in ((0, -1), (2, 2), (3, 1), (-1, -2)):
        changed = bytearray(raw)
        changed[23:27] = struct.pack(">i", delta)
        changed[57:61] = struct.pack(">i", count)
        assert "offset delta" in corrupt(sealed(changed)).cause


def test_gap_overlap_and_falling_epoch() -> None:
    first = batch(b"a", b"b", epoch=3)
    assert "base offset 3 where 2" in corrupt(first + batch(base_offset=3, epoch=3)).cause
    assert "base offset 1 where 2" in corrupt(first + batch(base_offset=1, epoch=3)).cause
    assert "epoch 2 after epoch 3" in corrupt(first + batch(base_offset=2, epoch=2)).cause


def test_checksum_can_be_left_out() -> None:
    raw = bytearray(batch())
    raw[-2] ^= 1
    assert "checksum" in corrupt(bytes(raw)).cause
    assert len(scan_batches(bytes(raw), verify_crc=False)) == 1


@pytest.mark.parametrize(
    ("records", "cause"),
    [
        ("00", "length 0"),
        ("0600000001", "cut off"),
        ("0e 00 00 00 01 02 61 00 ff", "behind the last"),
        ("10 00 00 00 01 02 61 00 00", "left over"),
        ("0e 00 00 02 01 02 61 00", "offset delta 1"),
        ("0e 00 00 00 01 08 61 00", "4 bytes wanted where 2 are left"),
        ("0e 00 00 00 01 03 61 00", "bytes wanted"),
        ("0e 00 00 00 01 02 61 02", "record headers"),
        ("14 00 00 00 01 02 61 00", "length 10 where 7"),
        ("14 00 00 00 01 02 61 02 02 ff 01", "utf-8"),
        ("8080808080800e", "varint"),
    ],
)
def test_malformed_records_under_a_right_checksum(records: str, cause: str) -> None:
    raw = sealed(bytearray(batch())[:HEADER_BYTES] + bytearray.fromhex(records))
    assert cause in corrupt(raw).cause
    with pytest.raises(CorruptBatchError):
        record_values(raw, read_header(raw), path=PATH)


def test_record_values_agrees_with_the_careful_path_or_refuses() -> None:
    keyed = batch(b"a", control_keys=[b"\0\0\0\x02"])
    assert record_values(keyed, read_header(keyed)) == [b"a"]
    null_value = sealed(
        bytearray(batch())[:HEADER_BYTES] + bytearray.fromhex("0c 00 00 00 01 01 00")
    )
    (header,) = scan_batches(null_value)
    assert iterate_records(null_value, header)[0].value is None
    with pytest.raises(CorruptBatchError, match="no value"):
        record_values(null_value, header)


def test_errors_name_the_record_and_its_offset() -> None:
    raw = bytearray(batch(b"a", b"b", base_offset=40))
    raw[HEADER_BYTES + 8 + 3] = 0x0A  # the second record's offset delta
    with pytest.raises(CorruptBatchError, match=r"record 1 of 2 \(offset 41\)"):
        iterate_records(bytes(raw), read_header(bytes(raw)))


def test_peek_size_returns_the_batch_size() -> None:
    raw = batch(b"x" * 500)
    assert peek_size(raw[:16]) is None
    assert peek_size(raw[:17]) == len(raw)
    assert peek_size(b"zz" + raw, 2) == len(raw)
    with pytest.raises(CorruptBatchError, match="position 102"):
        peek_size(bytes(60), 2, path=PATH, base_position=100)


def test_decompression_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_decode, "DECOMPRESSED_BYTES_MAX", 10_000)
    raw = compressed(batch(bytes(20_000)))
    (header,) = scan_batches(raw)
    for read in (iterate_records, record_values):
        with pytest.raises(CorruptBatchError, match="grows past 10000"):
            read(raw, header)


@pytest.mark.long
def test_a_compressed_batch_takes_no_more_memory_than_an_honest_one() -> None:
    """A peer's or a file's: the largest values, and the most records, that some kilobytes can hold.

    Before there were bounds, 2.4 MB of three million records took 423 MB and four seconds.
    """
    records_max = batch_decode.COMPRESSED_RECORDS_MAX
    for values in ([b"x"] * records_max, [bytes((8 << 20) - 100)]):
        raw = compressed(batch(*values))
        (header,) = scan_batches(raw)
        for read in (iterate_records, record_values):
            tracemalloc.start()
            assert len(read(raw, header)) == len(values)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert most < 32 << 20, (len(values), most)
    raw = compressed(batch(*[b"x"] * (records_max + 1)))
    (header,) = scan_batches(raw)
    for read in (iterate_records, record_values):
        with pytest.raises(CorruptBatchError, match="100001 records in a compressed batch"):
            read(raw, header)


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_epoch": 2**15},
        {"epoch": 2**31},
        {"control_keys": []},
        {"base_offset": 2**63},
    ],
)
def test_what_cannot_be_written_is_our_callers_mistake(fields: dict) -> None:
    with pytest.raises(QuorumUsageError):
        batch(**fields)


def test_empty_batches_and_values_are_refused() -> None:
    for values in ([], [b""], [b"a", b""]):
        with pytest.raises(QuorumUsageError):
            encode_batch(values, base_offset=0, epoch=1, timestamp=0)
