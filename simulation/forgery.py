"""Give the log of a stopped node a history of its own, which no check of one disk can detect.

One batch gets other bytes with valid checksums, and every digest stored beside the log matches. The
records stay the same, so images do not differ. For tests of divergences, on simulated and on real
disks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crc32c import crc32c

from quorum.batch import scan_batches
from quorum.batch_header import CRC_START, BatchHeader
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.errors import CorruptBatchError
from quorum.log.digest_file import read_digest_file, write_digest_file
from quorum.log.high_watermark_file import HighWatermarkFile
from quorum.log.layout import segment_bases, segment_path
from quorum.ports import FileSystem

_CRC_AT = 17
_SEQUENCE_AT = 53


def forge_batch(fs: FileSystem, directory: Path, offset: int) -> tuple[bytes, bytes] | None:
    """Change the batch that contains ``offset``, and every digest from there on.

    Returns:
        The forged and the original batch; None when the log does not contain that offset.
    """
    watermarks = HighWatermarkFile(fs, directory)
    forged: tuple[bytes, bytes] | None = None
    digest = b""
    for base in segment_bases(fs.list_directory(directory)):
        stored = EMPTY_LOG_DIGEST if base == 0 else read_digest_file(fs, directory, base) or b""
        digest = digest or stored
        if forged:
            write_digest_file(fs, directory, base, digest)
        path = segment_path(directory, base)
        file = fs.open(path, writable=True)
        data = bytearray(file.read_at(0, file.size()))
        for header in _whole_batches(bytes(data)):
            if header.base_offset <= offset < header.end_offset:
                forged = _change(data, header)
            digest = fold(digest, data[header.position : header.end_position])
            if header.end_offset == watermarks.marks.durable_offset:
                watermarks.store_durably(replace(watermarks.marks, digest=digest))
        if forged:
            file.write_at(0, bytes(data))
            file.sync()
        file.close()
    watermarks.close()
    return forged


def _whole_batches(data: bytes) -> list[BatchHeader]:
    """Return the batches before a torn tail, which the next start cuts off."""
    try:
        return scan_batches(data)
    except CorruptBatchError as torn:
        return scan_batches(data[: torn.position])


def _change(data: bytearray, header: BatchHeader) -> tuple[bytes, bytes]:
    start, end = header.position, header.end_position
    original = bytes(data[start:end])
    # Nothing reads the sequence number of a batch without a producer.
    data[start + _SEQUENCE_AT] ^= 1
    crc = crc32c(bytes(data[start + CRC_START : end]))
    data[start + _CRC_AT : start + _CRC_AT + 4] = crc.to_bytes(4, "big")
    return bytes(data[start:end]), original
