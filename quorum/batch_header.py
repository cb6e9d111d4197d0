"""Record batch v2: the 61-byte header, its validity rules and the checksum.

It finds whole batches in bytes and verifies them. ``batch_decode`` reads the records inside,
``batch_encode`` writes batches, and ``quorum.batch`` gathers the public names.

Base offset, length and leader epoch are outside the checksum. ``scan_batches`` checks them: offsets
must be contiguous, epochs must not fall, lengths must match.

See: KIP-98 (message format v2), docs/reference/batches.md#batch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from quorum.errors import CorruptBatchError
from quorum.varint import Buffer

HEADER_BYTES = 61
"""Smallest batch: a header and nothing else (which is already refused as empty)."""
PEEK_BYTES = 17
"""Bytes of a batch that ``peek_size`` needs: up to the magic."""
LENGTH_OVERHEAD_BYTES = 12
"""Bytes of a batch that its Length field does not count."""
CRC_START = 21
"""First byte under the checksum, counted from the batch's first byte."""
BATCH_BYTES_MAX = 256 << 20
"""A longer batch counts as damaged before its bytes are read or allocated."""
MAGIC = 2

CODEC_MASK = 0x07
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
CODEC_HIGHEST = 4

HEADER = struct.Struct(">qiibIhiqqqhii")
_OFFSET_END = (1 << 63) - 1


class BatchHeader(NamedTuple):
    """One batch found at ``position`` of some bytes; its records are not parsed.

    A tuple rather than a dataclass: followers build one per small batch, and a frozen
    dataclass of this width costs as much as the checksum and all checks together.
    """

    position: int
    """Position of the batch's first byte in the buffer."""
    size: int
    """Bytes of the whole batch, header included."""
    base_offset: int
    end_offset: int
    """Exclusive: base offset of the batch that follows."""
    epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    """Milliseconds since 1970; in a metadata log equal to ``base_timestamp``."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def is_control(self) -> bool:
        """Whether this is a control batch."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the transactional bit is set."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def codec(self) -> int:
        """Compression codec id: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & CODEC_MASK

    @property
    def end_position(self) -> int:
        """Position behind the batch, where the next one starts."""
        return self.position + self.size


class VerifiedBatches(NamedTuple):
    """Contiguous batches that were read and verified before, with the bytes that hold them."""

    data: bytes
    """May begin before the first of them, and end behind the last."""
    headers: Sequence[BatchHeader]
    """As ``scan_batches`` returned them for ``data``: all of them, or some that follow each other.
    At least one."""

    @property
    def exact_bytes(self) -> bytes:
        """The bytes of these batches alone."""
        start, stop = self.headers[0].position, self.headers[-1].end_position
        data = self.data
        return data if stop - start == len(data) else data[start:stop]


def peek_size(
    data: Buffer, position: int = 0, *, path: object = None, base_position: int = 0
) -> int | None:
    """Return the size of the batch at ``position``, which may reach past the end of ``data``.

    For readers that see a file through a window and must know how much more to read.

    Returns:
        The size in bytes, or None if there are too few bytes to tell.

    Raises:
        CorruptBatchError: The bytes cannot start a batch.
    """
    if len(data) - position < PEEK_BYTES:
        return None
    length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
    magic = data[position + 16]
    cause = _size_problem(length + LENGTH_OVERHEAD_BYTES, magic)
    if cause:
        raise CorruptBatchError(cause, path=path, position=base_position + position)
    return length + LENGTH_OVERHEAD_BYTES


def read_header(
    data: Buffer, position: int = 0, *, path: object = None, base_position: int = 0
) -> BatchHeader:
    """Return the whole batch at ``position``; sizes and numbers are checked, the checksum is not.

    ``path`` and ``base_position`` (file position of ``data[0]``) are for errors only.

    Raises:
        CorruptBatchError: Cut off, too large, of another format, or with impossible numbers.
    """
    available = len(data) - position
    if available < HEADER_BYTES:
        raise CorruptBatchError(
            f"cut off: {max(available, 0)} bytes where a header takes {HEADER_BYTES}",
            path=path,
            position=base_position + position,
        )
    (
        base_offset,
        length,
        epoch,
        magic,
        crc,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = HEADER.unpack_from(data, position)
    size = length + LENGTH_OVERHEAD_BYTES
    if (
        magic != MAGIC
        or not HEADER_BYTES < size <= available
        or size > BATCH_BYTES_MAX
        or count != last_delta + 1
        or count < 1
        or base_offset < 0
        or base_offset + count > _OFFSET_END
        or epoch < -1
        or attributes & CODEC_MASK > CODEC_HIGHEST
    ):
        cause = (
            _size_problem(size, magic)
            or (f"cut off: {size} bytes long, {available} left" if size > available else "")
            or _number_problem(base_offset, epoch, last_delta, count, attributes)
        )
        raise CorruptBatchError(cause, path=path, position=base_position + position)
    # Create the tuple directly: the class's own constructor costs one more call per batch.
    return tuple.__new__(
        BatchHeader,
        (
            position,
            size,
            base_offset,
            base_offset + count,
            epoch,
            crc,
            attributes,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ),
    )


def _size_problem(size: int, magic: int) -> str:
    if magic != MAGIC:
        return f"magic {magic} where {MAGIC} is expected"
    if size <= HEADER_BYTES:
        return f"size {size}: no room for a record behind the {HEADER_BYTES} bytes of header"
    if size > BATCH_BYTES_MAX:
        return f"size {size} above the maximum of {BATCH_BYTES_MAX}"
    return ""


def _number_problem(
    base_offset: int, epoch: int, last_delta: int, count: int, attributes: int
) -> str:
    if count < 1 or count != last_delta + 1:
        return f"{count} records with last offset delta {last_delta}"
    if base_offset < 0 or base_offset + count > _OFFSET_END:
        return f"base offset {base_offset} with {count} records"
    if epoch < -1:
        return f"leader epoch {epoch}"
    return f"unknown compression codec {attributes & CODEC_MASK}"


def check_crc(
    data: Buffer, header: BatchHeader, *, path: object = None, base_position: int = 0
) -> None:
    """Verify the checksum of a batch.

    Raises:
        CorruptBatchError: It does not match.
    """
    position = header.position
    seen = crc32c(memoryview(data)[position + CRC_START : position + header.size])
    if seen != header.crc:
        raise CorruptBatchError(
            f"checksum {seen:#010x} where the header says {header.crc:#010x} "
            f"(offsets {header.base_offset} to {header.end_offset})",
            path=path,
            position=base_position + position,
        )


def scan_batches(
    data: Buffer, *, path: object = None, verify_crc: bool = True
) -> list[BatchHeader]:
    """Return every batch of ``data``, which must be whole batches at contiguous offsets.

    ``position`` of the returned headers counts from the start of ``data``. ``path`` is for errors
    only.

    Raises:
        CorruptBatchError: A batch is damaged or cut off, leaves a gap in the offsets, or is
            of an older epoch than the one before it. Empty ``data`` is valid.
    """
    found: list[BatchHeader] = []
    add = found.append
    view = memoryview(data)
    position = 0
    total = len(data)
    next_offset = epoch = -1
    while position < total:
        header = read_header(data, position, path=path)
        after = position + header.size
        if verify_crc and crc32c(view[position + CRC_START : after]) != header.crc:
            check_crc(data, header, path=path)
        if header.base_offset != next_offset and found:
            raise CorruptBatchError(
                f"base offset {header.base_offset} where {next_offset} follows",
                path=path,
                position=position,
            )
        if header.epoch < epoch:
            raise CorruptBatchError(
                f"leader epoch {header.epoch} after epoch {epoch}",
                path=path,
                position=position,
            )
        add(header)
        next_offset = header.end_offset
        epoch = header.epoch
        position = after
    return found
