"""``high-watermark`` and its copy: how far the log is committed, and how far it is durable.

Both values are lower bounds, written after the fact and synced at intervals:

- the high watermark: readers of the directory see what is committed;
- the durable end with the log digest there. Recovery may cut a torn tail above it; invalid
  bytes below it are damage (ADR 7).

A bound may be too low after a crash, never too high: it is written only after it has become
true, and lowered durably before the log is cut. Two slots in different sectors are written in
turn, so that a torn write leaves the older one. ``secure`` syncs two further slots, so that no
later write can tear them.

No other file records what this replica may have acknowledged. So every bound goes to two files,
one after the other, and the newest slot of both counts. A slot names its disk; slots of another
disk do not count. If no slot of either file is intact, the bounds are unknown, which is not the
same as zero (ADR 39).
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
"""Slot of older releases, which kept one file and named no disk in it."""
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
    """Lower bounds: committed below ``high_watermark``, durable below ``durable_offset``."""

    high_watermark: int = 0
    durable_offset: int = 0
    durable_epoch: int = 0
    """Epoch of the record before ``durable_offset``."""
    digest: bytes = b""
    """Log digest at ``durable_offset``; empty if unknown."""


class _Slot(NamedTuple):
    """Slots sort by age; those of this release are newer than those of earlier ones."""

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
    """Decode a slot; None if it is not intact, or names another disk."""
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
    """State of one of the two files on disk."""

    newest: _Slot
    is_intact: bool
    """Whether this release may have written every byte."""


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

    ``marks`` are the bounds stored last; after opening, the newest intact slot, or zeros if there
    is none. ``repaired`` names the files that were rewritten: missing, not intact, or behind the
    other one. A crash between two writes can leave one file behind.
    """

    def __init__(self, fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID) -> None:
        """Open both files and update them to the newest bounds; ``owner`` is the directory id.

        Raises:
            StorageError: The files could not be read or written; the newest bounds are unchanged.
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
        # The older file first: until it is rewritten, only the other one has the newest bounds.
        for place in sorted(wrong, key=lambda place: found[place].newest[:2]):
            self._write_whole(self._files[place])
        if wrong:
            fs.sync_directory(directory)
        self.repaired = tuple(WATERMARK_NAMES[place] for place in wrong if newest.version != 1)

    def _write_whole(self, file: File) -> None:
        """Write the full length at once: later stores then need no space on a full disk."""
        slot = _encode(self._sequence, self.marks, self._owner)
        content = bytearray(_FILE_BYTES)
        for position in _ALL_POSITIONS:
            content[position : position + _SLOT_BYTES] = slot
        if file.size() > _FILE_BYTES:
            file.truncate(_FILE_BYTES)
        file.write_at(0, bytes(content))
        file.sync()

    def store(self, marks: Watermarks) -> None:
        """Write the bounds; a crash may lose them, but never mixes two of them.

        Raises:
            StorageError: Older bounds may be on disk. ``marks`` are the new ones nevertheless.
        """
        self._sequence += 1
        slot = _encode(self._sequence, marks, self._owner)
        # Before the writes: if there is no space for the second one, a restart finds the first,
        # so a cut must lower these bounds.
        self.marks = marks
        for file in self._files:
            file.write_at(_SLOT_POSITIONS[self._sequence % 2], slot)

    def secure(self, marks: Watermarks) -> None:
        """Write the bounds and sync them; no effect if they are synced already.

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
        # Sync the first file before writing the second: one of them is always whole.
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
    """Return the stored bounds without writing; None if there are none.

    None also if no slot of either file is intact. ``owner``: as for ``HighWatermarkFile``.

    Raises:
        StorageError: A file could not be read.
    """
    newest = _newest(each.newest for _, each in _load(fs, directory, owner))
    return newest.marks if newest.version else None


def damaged_watermark_files(
    fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID
) -> tuple[str, ...]:
    """Return the names of those of the two files that exist and are not intact; write nothing.

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
