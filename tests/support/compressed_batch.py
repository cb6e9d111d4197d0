"""Batches with compressed records, as Kafka's brokers write them; Quorate only reads them."""

from __future__ import annotations

import struct

import zstandard
from crc32c import crc32c

from quorum.batch_header import HEADER_BYTES
from quorum.compression import Codec

_ATTRIBUTES = slice(21, 23)


def compressed(batch: bytes) -> bytes:
    """Return an uncompressed batch with its records compressed with zstd."""
    head, records = bytearray(batch[:HEADER_BYTES]), batch[HEADER_BYTES:]
    attributes = int.from_bytes(head[_ATTRIBUTES], "big") | Codec.ZSTD
    head[_ATTRIBUTES] = attributes.to_bytes(2, "big")
    return sealed(head + zstandard.ZstdCompressor().compress(records))


def sealed(batch: bytearray) -> bytes:
    """Return changed bytes with the correct length and checksum: only their content is wrong."""
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    batch[17:21] = struct.pack(">I", crc32c(bytes(batch[21:])))
    return bytes(batch)
