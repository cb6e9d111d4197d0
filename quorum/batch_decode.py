"""Decode the records inside a batch v2, safely for any bytes.

It decodes a batch's record section into ``Record`` values. ``batch_header`` finds batches and
checks their checksum first.

See: KIP-98 (record format), KIP-82 (record headers), docs/reference/batches.md#batch.
"""

from __future__ import annotations

from typing import NamedTuple

from quorum.batch_header import CODEC_MASK, HEADER_BYTES, BatchHeader
from quorum.compression import DECOMPRESSED_BYTES_MAX, CompressionError, decompress
from quorum.errors import CorruptBatchError
from quorum.record_prefix import NULL_KEY, PLAIN_PREFIXES
from quorum.varint import Buffer, read_bytes, read_varint, read_varlong

_PREFIX_COUNT = len(PLAIN_PREFIXES)
_TWO_BYTE_VARINT_END = 1 << 14
_HEADER_NAMES_MAX = 64
_NAME_BYTES_MAX = 64
COMPRESSED_RECORDS_MAX = 100_000
"""Bound of records in one compressed batch: ten times the most that a Kafka controller writes. A
record of one byte takes 140 bytes of memory and some microseconds, compressed almost nothing."""
_header_names: dict[bytes, str] = {}

RecordHeaders = tuple[tuple[str, bytes | None], ...]
_NO_HEADERS: RecordHeaders = ()


class Record(NamedTuple):
    """One record with its position in the log. A tuple for speed, like ``BatchHeader``."""

    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()


def _plain_records(
    data: Buffer, header: BatchHeader, path: object, base_position: int
) -> tuple[Buffer, int, int]:
    """Return the batch's record section, decompressed: buffer and half-open range within it."""
    start = header.position + HEADER_BYTES
    end = header.position + header.size
    if not header.attributes & CODEC_MASK:
        return data, start, end
    try:
        if header.record_count > COMPRESSED_RECORDS_MAX:
            raise CompressionError(
                f"{header.record_count} records in a compressed batch, more than "
                f"{COMPRESSED_RECORDS_MAX}"
            )
        plain = decompress(header.codec, bytes(data[start:end]), DECOMPRESSED_BYTES_MAX)
    except CompressionError as error:
        raise CorruptBatchError(
            str(error), path=path, position=base_position + header.position
        ) from error
    return plain, 0, len(plain)


def _nullable_bytes(data: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position, end)
    if size == -1:
        return None, position
    return read_bytes(data, position, end, size)


def _record_headers(data: Buffer, position: int, end: int) -> tuple[RecordHeaders, int]:
    count, position = read_varint(data, position, end)
    if count == 0:
        return (), position
    if not 0 < count <= end - position:
        raise ValueError(f"{count} record headers in {end - position} bytes")
    found = []
    for _ in range(count):
        size, position = read_varint(data, position, end)
        name, position = read_bytes(data, position, end, size)
        value, position = _nullable_bytes(data, position, end)
        found.append((name.decode(), value))
    return tuple(found), position


def _parse_record(
    data: Buffer, position: int, end: int, header: BatchHeader, index: int
) -> tuple[Record, int]:
    size, position = read_varint(data, position, end)
    after = position + size
    if size <= 0 or after > end:
        raise ValueError(f"length {size} where {end - position} bytes are left")
    position += 1  # record attributes: no bit has a meaning
    timestamp_delta, position = read_varlong(data, position, after)
    offset_delta, position = read_varint(data, position, after)
    if offset_delta != index:
        raise ValueError(f"offset delta {offset_delta}")
    key, position = _nullable_bytes(data, position, after)
    value, position = _nullable_bytes(data, position, after)
    headers, position = _record_headers(data, position, after)
    if position != after:
        raise ValueError(f"{after - position} bytes left over")
    return (
        Record(
            header.base_offset + index, header.base_timestamp + timestamp_delta, key, value, headers
        ),
        after,
    )


def _quick_record(
    data: bytes, position: int, end: int, header: BatchHeader, index: int
) -> tuple[Record, int] | None:
    """Parse a record in our own form in a third of the time of ``_parse_record``; else None.

    Our form has the batch's timestamp, a short key or none, and lengths of one or two bytes. All
    other records, damaged ones included, are left to ``_parse_record``, which handles all forms and
    names the error.
    """
    try:
        size, at = data[position], position + 1
        if size >= 0x80:
            size, at = (size & 0x7F) | data[at] << 7, at + 1
        after = at + (size >> 1)
        if size & 1 or size >= _TWO_BYTE_VARINT_END or after > end:
            return None
        prefix = PLAIN_PREFIXES[index]
        key = None
        if data.startswith(prefix, at):
            at += len(prefix)
        else:
            prefix = prefix[: -len(NULL_KEY)]
            at += len(prefix)
            size = data[at]
            if size & 0x81 or not data.startswith(prefix, at - len(prefix)):
                return None
            key = data[at + 1 : at + 1 + (size >> 1)]
            at += 1 + (size >> 1)
        size, at = data[at], at + 1
        if size >= 0x80:
            size, at = (size & 0x7F) | data[at] << 7, at + 1
        if size & 1 or size >= _TWO_BYTE_VARINT_END:
            return None
        value = data[at : at + (size >> 1)]
        at += size >> 1
        headers, at = _quick_headers(data, at)
    except IndexError:
        return None
    if at != after:
        return None
    return Record(header.base_offset + index, header.base_timestamp, key, value, headers), after


def _quick_headers(data: bytes, at: int) -> tuple[RecordHeaders, int]:
    """Return record headers with short names and values below 8 KiB, and the position behind them.

    Raises:
        IndexError: They have another form, or are cut off.
    """
    count = data[at]
    at += 1
    if count == 0:
        return (), at
    if count & 0x81:
        raise IndexError
    found = []
    for _ in range(count >> 1):
        size, at = data[at], at + 1
        stop = at + (size >> 1)
        raw = data[at:stop]
        name = _header_names.get(raw) or _learn_name(raw)
        length, at = data[stop], stop + 1
        if length >= 0x80:
            length, at = (length & 0x7F) | data[at] << 7, at + 1
        if size & 0x81 or length & 1 or length >= _TWO_BYTE_VARINT_END:
            raise IndexError
        stop = at + (length >> 1)
        found.append((name, data[at:stop]))
        at = stop
    return tuple(found), at


def _headers_at(data: bytes, at: int) -> tuple[RecordHeaders, int]:
    """As ``_quick_headers``, but position -1 if they have another form, or are cut off."""
    try:
        return _quick_headers(data, at)
    except IndexError:
        return _NO_HEADERS, -1


def _learn_name(raw: bytes) -> str:
    """Return the text of a header name; the first names are cached, because writers use few."""
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise IndexError from None
    if len(_header_names) < _HEADER_NAMES_MAX and len(raw) < _NAME_BYTES_MAX:
        _header_names[raw] = name
    return name


def _bad_record(
    header: BatchHeader, index: int, cause: Exception, path: object, base_position: int
) -> CorruptBatchError:
    where = f"record {index} of {header.record_count} (offset {header.base_offset + index})"
    return _corrupt(header, f"{where}: {cause}", path, base_position)


def _corrupt(
    header: BatchHeader, problem: str, path: object, base_position: int
) -> CorruptBatchError:
    return CorruptBatchError(problem, path=path, position=base_position + header.position)


def iterate_records(
    data: Buffer, header: BatchHeader, *, path: object = None, base_position: int = 0
) -> list[Record]:
    """Return every record of a batch that ``read_header`` or ``scan_batches`` found in ``data``.

    ``base_position`` is the file position of ``data[0]``, for errors only.

    Raises:
        CorruptBatchError: Records that are malformed, too few, too many, or not at
            consecutive offsets; compressed data that is damaged, grows beyond
            ``DECOMPRESSED_BYTES_MAX`` or holds more than ``COMPRESSED_RECORDS_MAX`` records; a
            codec whose library is not installed.
    """
    buffer, position = data, header.position + HEADER_BYTES
    end = header.position + header.size
    if header.attributes & CODEC_MASK:
        buffer, position, end = _plain_records(data, header, path, base_position)
    if type(buffer) is not bytes:
        buffer, position, end = bytes(buffer[position:end]), 0, end - position
    records: list[Record] = []
    try:
        for index in range(header.record_count):
            record, position = _quick_record(buffer, position, end, header, index) or _parse_record(
                buffer, position, end, header, index
            )
            records.append(record)
    except ValueError as error:
        raise _bad_record(header, len(records), error, path, base_position) from error
    if position != end:
        raise _corrupt(
            header,
            f"{end - position} bytes behind the last of {header.record_count} records",
            path,
            base_position,
        )
    return records


def first_headers(
    data: Buffer, header: BatchHeader, *, path: object = None, base_position: int = 0
) -> RecordHeaders:
    """Return the record headers of the first record, which apply to the whole batch.

    Raises:
        CorruptBatchError: The first record is malformed, or the batch's compressed data.
    """
    buffer, position, end = _plain_records(data, header, path, base_position)
    try:
        return _parse_record(buffer, position, end, header, 0)[0].headers
    except ValueError as error:
        raise _bad_record(header, 0, error, path, base_position) from error


def record_values(
    data: Buffer, header: BatchHeader, *, path: object = None, base_position: int = 0
) -> list[bytes]:
    """Return the values alone, in a third of the time of ``iterate_records``.

    Raises:
        CorruptBatchError: As ``iterate_records``, and for a record without a value. Keys and
            record headers are skipped.
    """
    found, _ = values_and_headers(data, header, path=path, base_position=base_position)
    values: list[bytes] = []
    for value in found:
        if value is None:
            raise _bad_record(header, len(values), ValueError("no value"), path, base_position)
        values.append(value)
    return values


def values_and_headers(
    data: Buffer, header: BatchHeader, *, path: object = None, base_position: int = 0
) -> tuple[list[bytes | None], RecordHeaders]:
    """Return the values, and the first record's headers, for replay.

    Every record is checked as by ``iterate_records``, whose values and headers these are.

    Raises:
        CorruptBatchError: As ``iterate_records``.
    """
    values, headers, _ = _values(data, header, path, base_position)
    return values, headers


def values_at_once(
    data: Buffer, header: BatchHeader, *, path: object = None, base_position: int = 0
) -> tuple[list[bytes | None], RecordHeaders] | None:
    """Do what ``values_and_headers`` does; None unless every record has the batch's timestamp.

    Also None if a record has a key: only records in our own form are known to have it.

    Raises:
        CorruptBatchError: As ``iterate_records``.
    """
    values, headers, are_plain = _values(data, header, path, base_position)
    return (values, headers) if are_plain else None


def _values(
    data: Buffer, header: BatchHeader, path: object, base_position: int
) -> tuple[list[bytes | None], RecordHeaders, bool]:
    """Return values, the first record's headers, and whether all records are in our own form."""
    buffer, position, end = _plain_records(data, header, path, base_position)
    region = bytes(memoryview(buffer)[position:end])
    position, end = 0, len(region)
    values: list[bytes | None] = []
    headers = _NO_HEADERS
    are_plain = True
    prefixes = PLAIN_PREFIXES
    try:
        for index in range(header.record_count):
            start, size = position + 1, region[position]
            if size >= 0x80:
                size = (size & 0x7F) | region[start] << 7
                start += 1
            after = start + (size >> 1)
            if (
                index < _PREFIX_COUNT
                and size & 1 == 0
                and size < _TWO_BYTE_VARINT_END
                and region.startswith(prefixes[index], start)
            ):
                at = start + len(prefixes[index])
                length = region[at]
                at += 1
                if length >= 0x80:
                    length = (length & 0x7F) | region[at] << 7
                    at += 1
                stop = at + (length >> 1)
                if length & 1 == 0 and stop < after <= end:
                    found, ended = _NO_HEADERS, after
                    if stop + 1 != after or region[stop]:
                        found, ended = _headers_at(region, stop)
                    if ended == after:
                        values.append(region[at:stop])
                        if index == 0:
                            headers = found
                        position = after
                        continue
            record, position = _parse_record(region, position, end, header, index)
            are_plain = False
            values.append(record.value)
            if index == 0:
                headers = record.headers
    except (ValueError, IndexError) as error:
        raise _bad_record(header, len(values), error, path, base_position) from error
    if position != end:
        raise _corrupt(
            header,
            f"{end - position} bytes behind the last of {header.record_count} records",
            path,
            base_position,
        )
    return values, headers, are_plain
