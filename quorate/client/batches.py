"""Record batches v2 for readers of the log: positions, checksum, records.

The client depends on nothing of the server, so it has its own small reader. The checksum is
CRC-32C by table; records compressed with anything but gzip cannot be read here.

See: docs/reference/batches.md#batch.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from quorate.client.errors import ProtocolError
from quorate.client.limits import MESSAGE_BYTES_MAX
from quorate.client.results.records import TypedRecord

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_START = 21
_LENGTH_OVERHEAD = 12
_MAGIC = 2
_CODEC_MASK = 0x07
_CONTROL_BIT = 0x20
_GZIP = 1


class LogRecord(NamedTuple):
    """One record of the metadata log, with the epoch of the leader that wrote it (320.6)."""

    offset: int
    leader_epoch: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    is_state: bool = False
    """It is part of a state (``LogConsumer.state``), which replaces everything read before."""
    typed: TypedRecord | None = None
    """In place of ``value``, of a consumer of typed records. Then the time is that of the batch."""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """One batch: offsets [base_offset, end_offset) of one epoch, checksum verified."""

    base_offset: int
    end_offset: int
    leader_epoch: int
    base_timestamp_ms: int
    is_control: bool
    codec: int
    record_count: int
    payload: bytes
    data: bytes
    """The whole batch, which the log digest covers."""

    def records(self) -> list[LogRecord]:
        """The records inside; none for a control batch.

        Raises:
            ProtocolError: Unreadable compression, or not the records that were promised.
        """
        if self.is_control:
            return []
        try:
            return list(self._parse(self._plain()))
        except (IndexError, UnicodeDecodeError, zlib.error) as error:
            raise ProtocolError(f"batch at offset {self.base_offset}: {error}") from error

    def _plain(self) -> bytes:
        if self.codec == 0:
            return self.payload
        if self.codec != _GZIP:
            raise ProtocolError(
                f"batch at offset {self.base_offset}: compression {self.codec} is not supported"
            )
        inflater = zlib.decompressobj(wbits=31)
        data = inflater.decompress(self.payload, MESSAGE_BYTES_MAX)
        if inflater.unconsumed_tail:
            raise ProtocolError(f"batch at offset {self.base_offset}: too large when unpacked")
        return data

    def _parse(self, data: bytes) -> Iterator[LogRecord]:
        reader = _Reader(data)
        for _ in range(self.record_count):
            end = reader.varint() + reader.position
            reader.position += 1
            timestamp = self.base_timestamp_ms + reader.varint()
            offset = self.base_offset + reader.varint()
            key, value = reader.nullable(), reader.nullable()
            headers = []
            for _ in range(reader.varint()):
                name = reader.nullable() or b""
                headers.append((name.decode(), reader.nullable()))
            if reader.position != end or end > len(data):
                raise ProtocolError(f"batch at offset {self.base_offset}: a record's size is wrong")
            yield LogRecord(offset, self.leader_epoch, timestamp, key, value, tuple(headers))


class _Reader:
    """A position in some bytes. Raises IndexError beyond the end."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise IndexError("a number is too long")

    def nullable(self) -> bytes | None:
        size = self.varint()
        if size < 0:
            return None
        start = self.position
        self.position = start + size
        if self.position > len(self.data):
            raise IndexError("a field ends beyond the batch")
        return self.data[start : self.position]


def read_batches(data: bytes, *, verify_checksums: bool = True) -> list[LogBatch]:
    """Whole, contiguous batches.

    Raises:
        ProtocolError: The bytes are anything else, or a checksum is wrong.
    """
    batches: list[LogBatch] = []
    position = 0
    while position < len(data):
        if len(data) - position < _HEADER.size:
            raise ProtocolError(f"{len(data) - position} bytes are left over at {position}")
        fields = _HEADER.unpack_from(data, position)
        base, length, epoch, magic, crc, attributes, last_delta, base_timestamp = fields[:8]
        end = position + _LENGTH_OVERHEAD + length
        if magic != _MAGIC or length < _HEADER.size - _LENGTH_OVERHEAD or end > len(data):
            raise ProtocolError(f"no whole record batch at position {position}")
        if batches and batches[-1].end_offset != base:
            raise ProtocolError(f"offset {base} follows {batches[-1].end_offset}")
        if verify_checksums and crc32c(data[position + _CRC_START : end]) != crc:
            raise ProtocolError(f"the checksum of the batch at offset {base} is wrong")
        if last_delta < 0 or fields[12] < 0:
            raise ProtocolError(f"the batch at offset {base} has negative counts")
        batches.append(
            LogBatch(
                base_offset=base,
                end_offset=base + last_delta + 1,
                leader_epoch=epoch,
                base_timestamp_ms=base_timestamp,
                is_control=attributes & _CONTROL_BIT != 0,
                codec=attributes & _CODEC_MASK,
                record_count=fields[12],
                payload=data[position + _HEADER.size : end],
                data=data[position:end],
            )
        )
        position = end
    return batches


def _make_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), about 10 MB/s."""
    table = _TABLE
    value = 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF
