"""Codecs: foreign libraries' output is read, nothing grows past its bound, gaps are named."""

from __future__ import annotations

import builtins
import gzip
import struct

import cramjam
import lz4.frame
import pytest
import zstandard

from quorum.compression import Codec, CompressionError, decompress

PLAIN = b"metadata " * 5000


def xerial(data: bytes, block: int = 32_768) -> bytes:
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block):
        part = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        out += struct.pack(">i", len(part)) + part
    return out


def zstd_stream(data: bytes) -> bytes:
    """As Java streams it: without a content size in the frame header."""
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return compressor.compress(data) + compressor.flush()


COMPRESSED = {
    "gzip": (Codec.GZIP, gzip.compress(PLAIN)),
    "snappy": (Codec.SNAPPY, xerial(PLAIN)),
    "snappy block": (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(PLAIN))),
    "lz4": (Codec.LZ4, lz4.frame.compress(PLAIN, block_linked=False)),
    "zstd": (Codec.ZSTD, zstandard.compress(PLAIN)),
    "zstd stream": (Codec.ZSTD, zstd_stream(PLAIN)),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_reads_what_others_write(name: str) -> None:
    codec, data = COMPRESSED[name]
    assert decompress(codec, data) == PLAIN
    assert decompress(codec, data, len(PLAIN)) == PLAIN


@pytest.mark.parametrize("name", COMPRESSED)
def test_nothing_grows_past_its_bound(name: str) -> None:
    codec, data = COMPRESSED[name]
    with pytest.raises(CompressionError, match="grows past"):
        decompress(codec, data, len(PLAIN) - 1)


@pytest.mark.parametrize("name", COMPRESSED)
def test_damage_is_one_error(name: str) -> None:
    """Goal: whatever a library raises, callers see CompressionError or other bytes."""
    codec, data = COMPRESSED[name]
    for index in range(0, len(data), max(1, len(data) // 60)):
        damaged = bytearray(data)
        damaged[index] ^= 0xFF
        for bad in (bytes(damaged), data[:index]):
            try:
                assert len(decompress(codec, bad, 1 << 20)) <= 1 << 20
            except CompressionError:
                continue


def test_a_lying_content_size_allocates_nothing() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(b"a" * 300))
    huge = struct.pack("<Q", 1 << 60)
    # Frame header with an eight-byte content size that claims an exabyte.
    lying = frame[:4] + bytes([0xE0]) + huge + frame[7:]
    with pytest.raises(CompressionError):
        decompress(Codec.ZSTD, bytes(lying), 1 << 20)
    with pytest.raises(CompressionError, match="grows past"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"a" * 10, 1 << 20)


def test_codecs_are_those_of_the_format() -> None:
    assert decompress(Codec.NONE, PLAIN) == PLAIN
    with pytest.raises(CompressionError, match="unknown"):
        decompress(7, PLAIN)


@pytest.mark.parametrize(("name", "library"), [("lz4", "lz4"), ("snappy", "cramjam")])
@pytest.mark.interpreted
def test_a_missing_library_names_the_extra(
    name: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without(module: str, *args, **kwargs):
        if module.split(".")[0] == library:
            raise ImportError(module)
        return real_import(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    codec, data = COMPRESSED[name]
    with pytest.raises(CompressionError, match="extra `codecs`"):
        decompress(codec, data)


def test_a_few_kilobytes_do_not_fill_the_memory() -> None:
    """64 MiB in some kilobytes: by its content, and by the window its frame asks for."""
    bomb = zstandard.compress(bytes(64 << 20))
    assert len(bomb) < 8 << 10
    with pytest.raises(CompressionError, match="grows past 8388608 bytes"):
        decompress(Codec.ZSTD, bomb)
    wide = zstandard.ZstdCompressionParameters(
        window_log=27, compression_level=3, write_content_size=False
    )
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    with pytest.raises(CompressionError, match="zstd data"):
        decompress(Codec.ZSTD, stream.compress(PLAIN) + stream.flush())
