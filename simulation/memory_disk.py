"""The content of a simulated disk: file bytes and names, durable and not yet durable.

``memory_filesystem`` implements the ``FileSystem`` port on top. Each file is one bytearray. A sync
drops the list of changes since the last one, so it costs nothing. Only a crash processes the list,
newest first, to restore the durable content.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class CrashMode:
    """What may happen to changes that were not synced.

    The default keeps none of them, the worst case for data that a disk never promised to keep.
    """

    keep_writes: float = 0.0
    """Chance that the unsynced changes of a file survive up to some point in their order."""
    torn: bool = False
    """The write at that point may survive in part, as a prefix."""
    reordered: bool = False
    """Each unsynced change survives independently of earlier ones; holes read as zeros."""
    keep_names: float = 0.0
    """Chance that creations, renames and removals survive up to some point in their order."""


LOSE_ALL = CrashMode()
TORN_TAIL = CrashMode(keep_writes=1.0, torn=True, keep_names=0.5)
REORDERED = CrashMode(keep_writes=0.5, reordered=True, keep_names=0.5)
KEEP_ALL = CrashMode(keep_writes=2.0, keep_names=2.0)
"""A process that died on a machine that kept running.

Nothing is lost, and nothing unsynced becomes durable by that. Chances above 1 keep everything.
"""


class Change(NamedTuple):
    """One unsynced change of a file, with what is needed to undo it."""

    position: int
    size: int
    """Bytes written; 0 for a cut."""
    before: bytes
    """The previous bytes: those overwritten, or those that a cut removed."""
    length: int
    """Length of the file before."""


class Inode:
    """Content of a file, with the changes that lead back to the durable content."""

    __slots__ = ("data", "last_pass", "pending", "synced")

    def __init__(self, data: bytes | bytearray = b"") -> None:
        self.data = bytearray(data)
        self.pending: list[Change] = []
        self.last_pass = 0
        """How many of ``pending`` a failed sync dropped: they never reach the disk."""
        self.synced = 0
        """How many of ``pending`` are durable; only counted once a sync has failed."""

    def copy(self) -> Inode:
        other = Inode(self.data)
        other.pending, other.last_pass, other.synced = self.pending[:], self.last_pass, self.synced
        return other

    def write(self, position: int, data: bytes) -> None:
        content = self.data
        length, size = len(content), len(data)
        if position == length:
            self.pending.append(tuple.__new__(Change, (length, size, b"", length)))
            content += data
            return
        if position > length:
            self.write(length, bytes(position - length))
            length = position
        before = b"" if position == length else bytes(content[position : position + size])
        self.pending.append(tuple.__new__(Change, (position, size, before, length)))
        content[position : position + size] = data

    def cut(self, size: int) -> None:
        length = len(self.data)
        if size >= length:
            self.write(length, bytes(size - length))
            return
        self.pending.append(Change(size, 0, bytes(self.data[size:]), length))
        del self.data[size:]

    def sync(self) -> None:
        if self.last_pass:
            self.synced = len(self.pending)
        else:
            self.pending.clear()

    def fail_sync(self) -> None:
        self.last_pass = self.synced = len(self.pending)

    def crash(self, rng: random.Random, mode: CrashMode) -> None:
        """Turn ``data`` into the content found after power returns."""
        if mode.keep_writes > 1:
            return
        changes, last_pass, synced = self.pending, self.last_pass, self.synced
        self.pending, self.last_pass, self.synced = [], 0, 0
        if not changes:
            return
        redo = self._undo(changes)
        for change in redo[last_pass:synced]:
            self._redo(change)
        self._survive(redo[max(last_pass, synced) :], rng, mode)

    def _undo(self, changes: list[Change]) -> list[tuple[int, bytes, bool]]:
        data = self.data
        redo = []
        for position, size, before, length in reversed(changes):
            redo.append((position, bytes(data[position : position + size]), size == 0))
            data[position : position + size] = before
            del data[length:]
        redo.reverse()
        return redo

    def _survive(
        self, redo: list[tuple[int, bytes, bool]], rng: random.Random, mode: CrashMode
    ) -> None:
        if mode.reordered:
            for change in redo:
                if rng.random() < mode.keep_writes:
                    self._redo(change)
            return
        kept = _kept(rng, mode.keep_writes, len(redo))
        for change in redo[:kept]:
            self._redo(change)
        if mode.torn and kept < len(redo):
            position, written, is_cut = redo[kept]
            if not is_cut:
                self._redo((position, written[: rng.randint(0, len(written))], False))

    def _redo(self, change: tuple[int, bytes, bool]) -> None:
        position, written, is_cut = change
        data = self.data
        if is_cut:
            del data[position:]
            return
        if written and len(data) < position:
            data.extend(bytes(position - len(data)))
        data[position : position + len(written)] = written


def _kept(rng: random.Random, chance: float, count: int) -> int:
    """Return how many changes, in their order, survive."""
    return rng.randint(0, count) if rng.random() < chance else 0


class Directory:
    """Names in one directory; changes of names are pending until it is synced."""

    __slots__ = ("durable", "folders", "names", "pending")

    def __init__(self) -> None:
        self.folders: set[str] = set()
        self.names: dict[str, Inode] = {}
        self.durable: dict[str, Inode] = {}
        self.pending: list[tuple[str, str, Inode | None]] = []

    def change(self, old: str, new: str, inode: Inode | None) -> None:
        """Remove the name ``old`` if given, and let ``new`` name ``inode`` if one is given."""
        self.pending.append((old, new, inode))
        self._apply(self.names, old, new, inode)

    @staticmethod
    def _apply(names: dict[str, Inode], old: str, new: str, inode: Inode | None) -> None:
        if old and (inode is None or names.get(old) is inode):
            names.pop(old, None)
        elif old:
            return
        if inode is not None:
            names[new] = inode

    def sync(self) -> None:
        if self.pending:
            for change in self.pending:
                self._apply(self.durable, *change)
            self.pending.clear()

    def crash(self, rng: random.Random, mode: CrashMode) -> None:
        if mode.keep_names > 1:
            return
        if mode.reordered:
            kept = [change for change in self.pending if rng.random() < mode.keep_names]
        else:
            kept = self.pending[: _kept(rng, mode.keep_names, len(self.pending))]
        for change in kept:
            self._apply(self.durable, *change)
        self.pending = []
        self.names = dict(self.durable)
