"""The codecs of record batches: the only module that uses compression libraries.

It decompresses a batch's records within a given bound. Quorate writes none. Libraries are imported
on first use. gzip is in the standard library and zstandard is a dependency; lz4 and snappy
come with the extra ``codecs``. Uncompressed files (all that Quorate writes) need none of them.

Invariant: no call returns, or allocates for its result, more than the given maximum plus one
block.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType

from quorum.errors import QuorateError

DECOMPRESSED_BYTES_MAX = 8 << 20
"""Default bound of one batch's decompressed records: the largest batch of a metadata log, Kafka's
included. It prevents some kilobytes of input from filling the memory."""

_BLOCK_BYTES = 1 << 18
_ZSTD_WINDOW_BYTES_MAX = 8 << 20
"""Every decoder must support this (RFC 8878, 3.1.1.1.2); a frame's window is allocated at once."""
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class Codec(IntEnum):
    """Compression codec ids as in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(QuorateError):
    """Bytes that the codec rejects or that exceed the bound, or a codec that is not installed."""


def _library(name: str, codec: Codec) -> ModuleType:
    # Literal imports, not importlib, so that packagers and type checkers see the dependencies.
    try:
        if name == "zstandard":
            import zstandard

            return zstandard
        if name == "lz4.frame":
            import lz4.frame

            module: ModuleType = lz4.frame
            return module
        import cramjam

        return cramjam
    except ImportError as error:
        extra = "" if codec is Codec.ZSTD else ": install quorate with the extra `codecs`"
        raise CompressionError(
            f"records are compressed with {codec.name.lower()} and {name} is not installed{extra}"
        ) from error


def _too_large(codec: Codec, size_max: int) -> CompressionError:
    return CompressionError(f"{codec.name.lower()} data grows past {size_max} bytes")


def _gzip(data: bytes, size_max: int) -> bytes:
    parts: list[bytes] = []
    left = size_max
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(data, left + 1)
        except zlib.error as error:
            raise CompressionError(f"gzip data: {error}") from error
        if len(part) > left:
            raise _too_large(Codec.GZIP, size_max)
        if not member.eof:
            raise CompressionError("gzip data is cut off")
        left -= len(part)
        parts.append(part)
        data = member.unused_data
    return b"".join(parts)


def _zstd(data: bytes, size_max: int) -> bytes:
    zstandard = _library("zstandard", Codec.ZSTD)
    parts: list[bytes] = []
    left = size_max
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX).stream_reader(
            data, read_across_frames=True
        )
        # In blocks, since a frame header may claim any size.
        while part := reader.read(_BLOCK_BYTES):
            left -= len(part)
            if left < 0:
                raise _too_large(Codec.ZSTD, size_max)
            parts.append(part)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd data: {error}") from error
    return b"".join(parts)


def _lz4(data: bytes, size_max: int) -> bytes:
    frame = _library("lz4.frame", Codec.LZ4)
    try:
        decompressor = frame.LZ4FrameDecompressor()
        plain: bytes = decompressor.decompress(data, max_length=size_max + 1)
    except (RuntimeError, ValueError, EOFError) as error:
        raise CompressionError(f"lz4 data: {error}") from error
    if len(plain) > size_max:
        raise _too_large(Codec.LZ4, size_max)
    if not decompressor.eof:
        raise CompressionError("lz4 data is cut off")
    return plain


def _snappy_block(data: bytes, left: int, size_max: int) -> bytes:
    cramjam = _library("cramjam", Codec.SNAPPY)
    try:
        if cramjam.snappy.decompress_raw_len(data) > left:
            raise _too_large(Codec.SNAPPY, size_max)
        return bytes(cramjam.snappy.decompress_raw(data))
    except (cramjam.DecompressionError, ValueError, OverflowError) as error:
        raise CompressionError(f"snappy data: {error}") from error


def _snappy(data: bytes, size_max: int) -> bytes:
    """Decompress xerial's stream framing of snappy (as Java writes it), or one bare block."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, size_max, size_max)
    parts: list[bytes] = []
    left = size_max
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + size]
        position += 4 + size
        if position > len(data):
            raise CompressionError("snappy data is cut off")
        part = _snappy_block(block, left, size_max)
        left -= len(part)
        parts.append(part)
    return b"".join(parts)


_DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}


def decompress(codec: int, data: bytes, size_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Return the decompressed bytes of ``data``.

    Raises:
        CompressionError: Unknown codec, library missing, malformed or cut off, or more than
            ``size_max`` bytes.
    """
    if codec == Codec.NONE:
        if len(data) > size_max:
            raise _too_large(Codec.NONE, size_max)
        return data
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise CompressionError(f"unknown compression codec {codec}")
    return decompressor(data, size_max)
