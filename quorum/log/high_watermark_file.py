"""``high-watermark`` and its copy: how far the log was committed, how far it was surely on disk.

Two lower bounds that are written after the fact and synced only now and then:

- the high watermark, so that readers of the directory know what is committed;
- the durable end with the log digest there. Recovery may cut a torn tail above it; anything
  bad below it is damage (ADR 7).

A bound may be too low after a crash, never too high: it is written only after what it says
has become true, and lowered durably before the log is cut. Two slots in different sectors
are written in turn, so that a torn write leaves the older one. What ``secure`` has synced lies
in two further slots, so that no later write can tear it.

Nothing else says what this replica may have acknowledged, so everything is written to two files,
one after the other, and the newest slot of both counts. A slot names the disk that it is of:
another disk's marks are no marks. Where no slot of either file is intact the bounds are not known,
which is not the same as zero (ADR 39).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from quorum.log.layout import WATERMARK_NAMES
from quorum.ports import File, FileSystem
from quorum.types import ZERO_UUID, Uuid
from quorum.values import value

_SLOT = struct.Struct(">4sQqqiB16s16s")
_SLOT_1 = struct.Struct(">4sQqqiB16s")
"""Of releases that kept one file and named no disk in it."""
_CHECKSUM = struct.Struct(">I")
_MAGIC = b"QHW2"
_MAGIC_1 = b"QHW1"
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


class _Slot(NamedTuple):
    """Slots compare by age: whatever this release wrote is newer than what an earlier one did."""

    version: int
    sequence: int
    marks: Watermarks = Watermarks()


_NO_SLOT = _Slot(0, 0)


def _encode(sequence: int, marks: Watermarks, owner: Uuid) -> bytes:
    body = _SLOT.pack(
        _MAGIC,
        sequence,
        marks.high_watermark,
        marks.durable_offset,
        marks.durable_epoch,
        bool(marks.digest),
        marks.digest,
        owner,
    )
    return body + _CHECKSUM.pack(crc32c(body))


def _decode(data: bytes, owner: Uuid) -> _Slot | None:
    """What a slot says; None where it is not intact, or another disk's."""
    layout, version = (_SLOT_1, 1) if data.startswith(_MAGIC_1) else (_SLOT, 2)
    body, checksum = data[: layout.size], data[layout.size : layout.size + _CHECKSUM.size]
    if checksum != _CHECKSUM.pack(crc32c(body)):
        return None
    magic, sequence, high_watermark, offset, epoch, has_digest, digest, *named = layout.unpack(body)
    if magic not in (_MAGIC, _MAGIC_1) or min(high_watermark, offset, epoch) < 0:
        return None
    if named and owner != ZERO_UUID and named[0] not in (owner, ZERO_UUID):
        return None
    marks = Watermarks(high_watermark, offset, epoch, digest if has_digest else b"")
    return _Slot(version, sequence, marks)


class _Found(NamedTuple):
    """One of the two files as it lies there."""

    newest: _Slot
    is_intact: bool
    """Whether every byte is one that this release may have written."""


def _read(file: File, owner: Uuid) -> _Found:
    size = file.size()
    content = file.read_at(0, min(size, _FILE_BYTES))
    slots = [_decode(content[at : at + _SLOT_BYTES], owner) for at in _ALL_POSITIONS]
    ends = (*_ALL_POSITIONS[1:], _FILE_BYTES)
    gaps = (content[at + _SLOT_BYTES : end] for at, end in zip(_ALL_POSITIONS, ends, strict=True))
    is_intact = size == _FILE_BYTES and all(slots) and not any(map(any, gaps))
    return _Found(_newest(slots), is_intact)


def _newest(slots: Iterable[_Slot | None]) -> _Slot:
    return max((slot for slot in slots if slot), key=lambda slot: slot[:2], default=_NO_SLOT)


class HighWatermarkFile:
    """The two open files of one partition directory. Owned by the writer thread.

    ``marks`` is what was last stored; on opening, the newest slot that is intact, or zeros where
    there is none. ``repaired`` names the files that had to be written anew: they were missing, not
    intact, or behind the other one. A crash between two writes explains the last of these.
    """

    def __init__(self, fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID) -> None:
        """Open, and bring both files to the newest bounds. ``owner`` is the disk's directory id.

        Raises:
            StorageError: The files could not be read or written; the newest bounds still stand.
        """
        self._owner = owner
        self._files = [
            fs.open(directory / name, create=True, writable=True) for name in WATERMARK_NAMES
        ]
        found = [_read(file, owner) for file in self._files]
        newest = _newest(each.newest for each in found)
        self._sequence, self.marks = newest.sequence, newest.marks
        self._secured: Watermarks | None = None
        wrong = [
            place
            for place, each in enumerate(found)
            if not each.is_intact or each.newest != newest or newest.version == 1
        ]
        # One without the newest bounds first: until it has them the other one keeps them.
        for place in sorted(wrong, key=lambda place: found[place].newest[:2]):
            self._write_whole(self._files[place])
        if wrong:
            fs.sync_directory(directory)
        self.repaired = tuple(WATERMARK_NAMES[place] for place in wrong if newest.version != 1)

    def _write_whole(self, file: File) -> None:
        """Full length from the start: a later store then needs no space on a full disk."""
        slot = _encode(self._sequence, self.marks, self._owner)
        content = bytearray(_FILE_BYTES)
        for position in _ALL_POSITIONS:
            content[position : position + _SLOT_BYTES] = slot
        if file.size() > _FILE_BYTES:
            file.truncate(_FILE_BYTES)
        file.write_at(0, bytes(content))
        file.sync()

    def store(self, marks: Watermarks) -> None:
        """Write the bounds; they may be lost, never mixed, in a crash."""
        self._sequence += 1
        slot = _encode(self._sequence, marks, self._owner)
        for file in self._files:
            file.write_at(_SLOT_POSITIONS[self._sequence % 2], slot)
        self.marks = marks

    def secure(self, marks: Watermarks) -> None:
        """Write the bounds and sync them; nothing happens if they are synced already.

        Raises:
            StorageError: These or older bounds are on disk; the caller must stop.
        """
        if marks == self._secured:
            return
        self._write_synced((_SECURE_POSITIONS[(self._sequence + 1) % 2],), marks)

    def store_durably(self, marks: Watermarks) -> None:
        """Write the bounds to every slot and sync: no older bound can come back.

        Raises:
            StorageError: Old or new bounds are on disk; the caller must stop.
        """
        self._write_synced(_ALL_POSITIONS, marks)

    def _write_synced(self, positions: Iterable[int], marks: Watermarks) -> None:
        self._sequence += 1
        slot = _encode(self._sequence, marks, self._owner)
        # The second file is written when the first one is safe: one of them is always whole.
        for file in self._files:
            for position in positions:
                file.write_at(position, slot)
            file.sync()
        self.marks = self._secured = marks

    def close(self) -> None:
        """Release the files."""
        for file in self._files:
            file.close()


def load_watermarks(fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID) -> Watermarks | None:
    """The stored bounds for a reader that writes nothing; None when there are none.

    Also where no slot of either file is intact. ``owner``: as for ``HighWatermarkFile``.

    Raises:
        StorageError: A file could not be read.
    """
    newest = _newest(each.newest for _, each in _load(fs, directory, owner))
    return newest.marks if newest.version else None


def damaged_watermark_files(
    fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID
) -> tuple[str, ...]:
    """Names of those of the two files that are there and are not intact. Writes nothing.

    Raises:
        StorageError: A file could not be read.
    """
    return tuple(
        name
        for name, each in _load(fs, directory, owner)
        if not each.is_intact and each.newest.version != 1
    )


def _load(fs: FileSystem, directory: Path, owner: Uuid) -> list[tuple[str, _Found]]:
    found = []
    for name in WATERMARK_NAMES:
        if fs.exists(directory / name):
            file = fs.open(directory / name)
            try:
                found.append((name, _read(file, owner)))
            finally:
                file.close()
    return found
