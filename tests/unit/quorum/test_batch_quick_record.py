"""The fast path for Quorate's own records gives exactly the result of the full parser."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.batch import (
    Record,
    encode_batch,
    iterate_records,
    read_header,
    record_values,
    values_and_headers,
    values_at_once,
    with_position,
)
from quorum.batch_decode import _parse_record, _quick_record
from quorum.batch_header import HEADER_BYTES
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.control_records import KRaftVersion
from quorum.errors import CorruptBatchError

HEADERS = (
    ("principal", b"User:writer"),
    ("reason", b""),
    ("nothing", None),
    ("open", b"1234"),
)
MUTATIONS = 3000


def one_record(value: bytes, headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    return encode_batch(
        [value], base_offset=7, epoch=3, timestamp=1_700_000_000_000,
        producer_id=4, producer_epoch=0, base_sequence=9, headers=headers,
    )  # fmt: skip


def control_records() -> bytes:
    return encode_control_batch(
        [SnapshotHeader(1_700_000_000_000, b"d" * 16), KRaftVersion(1), SnapshotFooter(b"e" * 16)],
        base_offset=7, epoch=3, timestamp=1_700_000_000_000,
    )  # fmt: skip


def carefully(data: bytes) -> list[Record] | None:
    header, position = read_header(data), HEADER_BYTES
    records = []
    try:
        for index in range(header.record_count):
            record, position = _parse_record(data, position, len(data), header, index)
            records.append(record)
    except ValueError:
        return None
    return records if position == len(data) else None


def either(data: bytes) -> list[Record] | None:
    try:
        return iterate_records(data, read_header(data))
    except CorruptBatchError:
        return None


@pytest.mark.parametrize("size", [1, 50, 63, 64, 100, 8000, 8191, 8192, 20_000])
@pytest.mark.parametrize(
    "headers",
    [
        (),
        HEADERS,
        (("long", b"x" * 64),),
        (("n" * 70, b"x"),),
        (("answer", b"x" * 8191), ("open", b"1")),
        (("a", b"y" * 8192),),
    ],
)
def test_every_length_reads_alike(size: int, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    """Goal: no form is misread. Method: lengths around each varint's limits, both parsers."""
    data = one_record(b"v" * size, headers)
    assert either(data) == carefully(data)
    assert either(data) == [Record(7, 1_700_000_000_000, None, b"v" * size, headers)]
    assert values_and_headers(data, read_header(data)) == ([b"v" * size], headers)


@pytest.mark.parametrize(
    "data",
    [
        one_record(b"v" * 90, (HEADERS[0], HEADERS[1], HEADERS[3])),
        encode_batch([b"one", b"v" * 70, b"three"], base_offset=7, epoch=3, timestamp=5),
        control_records(),
        one_record(b"v", (("result", b"x" * 66), *HEADERS)),
    ],
    ids=["one", "several", "control", "long-header"],
)
def test_damaged_records_are_evaluated_alike(data: bytes) -> None:
    """Goal: damage is never read as something else. Method: change bytes, compare the parsers."""
    rng = random.Random(20)
    seen_damage = 0
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        changed[rng.randrange(HEADER_BYTES, len(data))] = rng.randrange(256)
        expected = carefully(bytes(changed))
        seen_damage += expected is None
        assert either(bytes(changed)) == expected
        assert for_replay(bytes(changed)) == parts_of(expected)
        at_once = all_at_once(bytes(changed))
        if at_once is not None:
            assert at_once == parts_of(expected)
            base = read_header(bytes(changed)).base_timestamp
            assert all(each.timestamp == base for each in expected or ())
    assert seen_damage > MUTATIONS // 10


@pytest.mark.parametrize("headers", [(), HEADERS, (("long", b"x" * 64),), (("n" * 70, b"x"),)])
@pytest.mark.parametrize("values", [[b"one"], [b"one", b"v" * 70, b"w" * 9000]])
def test_values_and_headers_are_those_of_the_records(
    values: list[bytes], headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    """Goal: one reading finds what two would. Method: all forms of headers, one value or more."""
    data = encode_batch(values, base_offset=7, epoch=3, timestamp=5, headers=headers)
    found = iterate_records(data, read_header(data))
    assert values_and_headers(data, read_header(data)) == (values, found[0].headers)
    at_once = values_at_once(data, read_header(data))
    are_quick = max(map(len, values)) < 8192 and headers in ((), (("long", b"x" * 64),))
    assert at_once == ((values, headers) if are_quick else None)
    assert found[0].headers == headers


@pytest.mark.parametrize("wrapped", [bytes, bytearray, memoryview])
def test_records_with_keys_read_alike_from_any_buffer(
    wrapped: Callable[[bytes], bytes | bytearray | memoryview],
) -> None:
    """Goal: control records take the shortcut too. Method: three of them, behind another batch."""
    front, data = one_record(b"v", ()), control_records()
    expected = carefully(data)
    assert expected is not None
    header = read_header(wrapped(front + data), len(front))
    assert iterate_records(wrapped(front + data), header) == expected
    for index, record in enumerate(expected):
        assert record.key is not None
        assert len(record.key) == 4
        end = len(data)
        quick = _quick_record(data, _start(data, index), end, read_header(data), index)
        assert quick is not None
        assert quick[0] == record


def _start(data: bytes, index: int) -> int:
    header, position = read_header(data), HEADER_BYTES
    for before in range(index):
        _, position = _parse_record(data, position, len(data), header, before)
    return position


def test_a_batch_in_its_place_is_not_copied() -> None:
    """Goal: proposing what was evaluated costs no copy. Method: identity, then another place."""
    data = one_record(b"v", ())
    assert with_position(data, 7, 3) is data
    assert read_header(with_position(data, 7, 4)).epoch == 4
    assert read_header(with_position(data, 8, 3)).base_offset == 8


def for_replay(data: bytes) -> tuple[list[bytes | None], object] | None:
    try:
        return values_and_headers(data, read_header(data))
    except CorruptBatchError:
        return None


def all_at_once(data: bytes) -> tuple[list[bytes | None], object] | None:
    try:
        return values_at_once(data, read_header(data))
    except CorruptBatchError:
        return None


def parts_of(records: list[Record] | None) -> tuple[list[bytes | None], object] | None:
    return None if records is None else ([each.value for each in records], records[0].headers)


NAMED = st.tuples(
    st.text(max_size=4) | st.sampled_from(["open", "answer", "n" * 70]),
    st.none() | st.binary(max_size=4) | st.sampled_from([b"x" * n for n in (63, 64, 8191, 8192)]),
)


@settings(deadline=None)
@given(
    values=st.lists(
        st.binary(min_size=1, max_size=4)
        | st.sampled_from([b"v" * n for n in (57, 58, 8180, 8192)]),
        min_size=1,
        max_size=4,
    ),
    headers=st.lists(NAMED, max_size=4).map(tuple),
    changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=2),
)
def test_replay_reads_what_the_full_parser_reads(
    values: list[bytes],
    headers: tuple[tuple[str, bytes | None], ...],
    changes: list[tuple[int, int]],
) -> None:
    """Goal: values and first headers, or a refusal, for any bytes. Method: change some of them."""
    data = bytearray(encode_batch(values, base_offset=7, epoch=3, timestamp=5, headers=headers))
    for place, value in changes:
        data[HEADER_BYTES + place % (len(data) - HEADER_BYTES)] = value
    whole = bytes(data)
    expected = carefully(whole)
    if expected is None:
        assert for_replay(whole) is None
        return
    assert for_replay(whole) == parts_of(expected)
    wanted = [record.value for record in expected]
    if None in wanted:
        with pytest.raises(CorruptBatchError, match="no value"):
            record_values(whole, read_header(whole))
    else:
        assert record_values(whole, read_header(whole)) == wanted
