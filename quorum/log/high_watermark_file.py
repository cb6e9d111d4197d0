"""``high-watermark``: how far the log was committed, and how far it was surely on disk.

Two lower bounds that are written after the fact and synced only now and then:

- the high watermark, so that readers of the directory know what is committed;
- the durable end with the log digest there. Recovery may cut a torn tail above it; anything
  bad below it is damage (ADR 7).

A bound may be too low after a crash, never too high: it is written only after what it says
has become true, and lowered durably before the log is cut. Two slots in different sectors
are written in turn, so that a torn write leaves the older one. What ``secure`` has synced lies
in two further slots, so that no later write can tear it.
"""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c

from quorum.log.layout import WATERMARK_NAME
from quorum.ports import FileSystem
from quorum.values import value

_SLOT = struct.Struct(">4sQqqiB16s")
_CHECKSUM = struct.Struct(">I")
_MAGIC = b"QHW1"
_SLOT_BYTES = _SLOT.size + _CHECKSUM.size
_SLOT_POSITIONS = (0, 512)
_SECURE_POSITIONS = (1024, 1536)
_ALL_POSITIONS = (*_SLOT_POSITIONS, *_SECURE_POSITIONS)
_FILE_BYTES = _ALL_POSITIONS[-1] + _SLOT_BYTES


@value
class Watermarks:
    """Lower bounds: committed below ``high_watermark``, on disk below ``durable_offset``."""

    high_watermark: int = 0
    durable_offset: int = 0
    durable_epoch: int = 0
    """Epoch of the record before ``durable_offset``."""
    digest: bytes = b""
    """Log digest at ``durable_offset``; empty when not known."""


def _encode(sequence: int, marks: Watermarks) -> bytes:
    body = _SLOT.pack(
        _MAGIC,
        sequence,
        marks.high_watermark,
        marks.durable_offset,
        marks.durable_epoch,
        bool(marks.digest),
        marks.digest,
    )
    return body + _CHECKSUM.pack(crc32c(body))


def _decode(data: bytes) -> tuple[int, Watermarks] | None:
    if len(data) != _SLOT_BYTES:
        return None
    body = data[: _SLOT.size]
    if _CHECKSUM.unpack(data[_SLOT.size :])[0] != crc32c(body):
        return None
    magic, sequence, high_watermark, offset, epoch, has_digest, digest = _SLOT.unpack(body)
    if magic != _MAGIC or min(high_watermark, offset, epoch) < 0:
        return None
    return sequence, Watermarks(high_watermark, offset, epoch, digest if has_digest else b"")


class HighWatermarkFile:
    """The open file of one partition directory. Owned by the writer thread.

    ``marks`` is what was last stored; on opening, the newest slot that is intact, or zeros.
    """

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        path = directory / WATERMARK_NAME
        self._file = fs.open(path, create=True, writable=True)
        found = [
            slot
            for position in _ALL_POSITIONS
            if (slot := _decode(self._file.read_at(position, _SLOT_BYTES)))
        ]
        self._secured: Watermarks | None = None
        self._sequence, self.marks = max(found, key=lambda slot: slot[0], default=(0, Watermarks()))
        if self._file.size() < _FILE_BYTES:
            # Full length from the start: a later store then needs no space on a full disk.
            self.store_durably(self.marks)
            fs.sync_directory(directory)

    def store(self, marks: Watermarks) -> None:
        """Write the bounds; they may be lost, never mixed, in a crash."""
        self._sequence += 1
        self._file.write_at(_SLOT_POSITIONS[self._sequence % 2], _encode(self._sequence, marks))
        self.marks = marks

    def secure(self, marks: Watermarks) -> None:
        """Write the bounds and sync them; nothing happens if they are synced already.

        Raises:
            StorageError: These or older bounds are on disk; the caller must stop.
        """
        if marks == self._secured:
            return
        self._sequence += 1
        self._file.write_at(_SECURE_POSITIONS[self._sequence % 2], _encode(self._sequence, marks))
        self._file.sync()
        self.marks = self._secured = marks

    def store_durably(self, marks: Watermarks) -> None:
        """Write the bounds to every slot and sync: no older bound can come back.

        Raises:
            StorageError: Old or new bounds are on disk; the caller must stop.
        """
        self._sequence += 1
        for position in _ALL_POSITIONS:
            self._file.write_at(position, _encode(self._sequence, marks))
        self._file.sync()
        self.marks = self._secured = marks

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def load_watermarks(fs: FileSystem, directory: Path) -> Watermarks | None:
    """The stored bounds for a reader that writes nothing; None when there are none."""
    path = directory / WATERMARK_NAME
    if not fs.exists(path):
        return None
    file = fs.open(path)
    try:
        slots = [_decode(file.read_at(position, _SLOT_BYTES)) for position in _ALL_POSITIONS]
    finally:
        file.close()
    return max((slot for slot in slots if slot), default=(0, None), key=lambda slot: slot[0])[1]
