"""Varints: the byte-exact table, the bounds, and what a reader must refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.varint import (
    encode_compact_string,
    encode_tagged_fields,
    encode_uvarint,
    encode_varint,
    read_bytes,
    read_compact_string,
    read_tagged_fields,
    read_uvarint,
    read_varint,
    read_varlong,
)


@pytest.mark.parametrize(
    ("value", "hex_bytes"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (2, "04"),
        (63, "7e"),
        (64, "8001"),
        (65, "8201"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_varint_table(value: int, hex_bytes: str) -> None:
    raw = bytes.fromhex(hex_bytes)
    assert encode_varint(value) == raw
    assert read_varint(raw, 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize(
    ("value", "hex_bytes"),
    [
        (0, "00"),
        (-1, "01"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (2**31, "8080808010"),
        (-(2**31) - 1, "8180808010"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varlong_table(value: int, hex_bytes: str) -> None:
    raw = bytes.fromhex(hex_bytes)
    assert read_varlong(b"\xff" + raw + b"\xff", 1, 1 + len(raw)) == (value, 1 + len(raw))


@given(st.integers(0, 2**32 - 1))
def test_uvarint_round_trip(value: int) -> None:
    raw = encode_uvarint(value)
    assert len(raw) <= 5
    assert read_uvarint(raw, 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (read_uvarint, b"\x80\x80\x80\x80\x80\x00"),  # six bytes
        (read_uvarint, b"\xff\xff\xff\xff\x1f"),  # 33 bits
        (read_varint, b"\x80\x80\x80\x80\x80\x01"),
        (read_varint, b"\xff\xff\xff\xff\x1f"),
        (read_varlong, b"\x80" * 10 + b"\x01"),  # eleven bytes
        (read_varlong, b"\xff" * 9 + b"\x03"),  # 65 bits
        (read_uvarint, b""),
        (read_uvarint, b"\x80"),
        (read_varlong, b"\x80\x80"),
    ],
)
def test_reader_refuses(read, raw: bytes) -> None:
    with pytest.raises(ValueError, match="var"):
        read(raw, 0, len(raw))


@pytest.mark.parametrize(
    ("encode", "value"),
    [
        (encode_uvarint, -1),
        (encode_uvarint, 2**32),
        (encode_varint, 2**31),
        (encode_varint, -(2**31) - 1),
    ],
)
def test_encoder_refuses_what_does_not_fit(encode, value: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode(value)


def test_reader_stops_at_its_end_even_when_more_bytes_follow() -> None:
    with pytest.raises(ValueError, match="cut off"):
        read_uvarint(b"\x80\x01", 0, 1)
    with pytest.raises(ValueError, match="left"):
        read_bytes(b"abcdef", 0, 3, 4)


@given(st.text(max_size=200))
def test_compact_string_round_trip(text: str) -> None:
    raw = encode_compact_string(text)
    assert read_compact_string(raw, 0, len(raw)) == (text, len(raw))


def test_null_and_malformed_strings_are_refused() -> None:
    with pytest.raises(ValueError, match="null"):
        read_compact_string(b"\x00", 0, 1)
    with pytest.raises(ValueError, match="utf-8"):
        read_compact_string(b"\x02\xff", 0, 2)


def test_tagged_fields_keep_unknown_tags_and_their_order() -> None:
    fields = ((0, b"a"), (7, b""), (20_001, b"x" * 300))
    raw = encode_tagged_fields(fields)
    assert read_tagged_fields(raw, 0, len(raw)) == (fields, len(raw))
    assert encode_tagged_fields() == b"\x00"


@pytest.mark.parametrize(
    "raw",
    [b"\x02\x01\x00\x01\x00", b"\x02\x05\x00\x03\x00", b"\x01\x01\x05ab", b"\x81\x08"],
    ids=["repeated", "descending", "payload cut off", "too many"],
)
def test_malformed_tagged_fields_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"tag|left"):
        read_tagged_fields(raw, 0, len(raw))
