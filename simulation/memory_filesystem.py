"""A file system in memory that can lose power: ``ports.FileSystem`` for the simulator.

A ``random.Random`` and a ``CrashMode`` decide at the crash what remains of unsynced data, so the
same seed gives the same disk. Directories are durable when made, as ``OsFileSystem`` makes them.
Files, their names and their bytes are durable only after ``sync`` and ``sync_directory``.

``memory_disk`` holds the content and decides what survives.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorum.errors import DiskFullError, StorageError
from simulation.memory_disk import (
    KEEP_ALL,
    LOSE_ALL,
    REORDERED,
    TORN_TAIL,
    CrashMode,
    Directory,
    Inode,
)

__all__ = [
    "KEEP_ALL",
    "LOSE_ALL",
    "REORDERED",
    "TORN_TAIL",
    "CrashMode",
    "Faults",
    "MemoryFile",
    "MemoryFileSystem",
    "PowerLost",
]


class PowerLost(BaseException):
    """The simulated machine stopped in the middle of a call. No caller may handle it."""


_CLOSED = -1
"""No era of any disk has this number."""


def _ignore(_kind: str) -> None:
    """Nobody counts."""


@dataclass(slots=True)
class Faults:
    """Planned faults of a disk. Counts are calls from now on, starting at 0; -1 is never."""

    full_at_write: int = -1
    """This write and all later ones fail for lack of space."""
    full_writes: int = -1
    """So many writes fail, beginning with ``full_at_write``; -1: all later ones."""
    capacity_bytes: int = -1
    """Writes that would let all files together exceed this fail for lack of space."""
    error_at_sync: int = -1
    """This ``sync`` or ``sync_directory`` fails and drops the changes it should have kept."""
    unreadable: Callable[[str], bool] | None = None
    """Reads of files for whose name this returns True fail with an I/O error."""
    stop_after_call: int = -1
    """Power is lost right after this changing call (any but opening and reading)."""


class MemoryFile:
    """An open file of a ``MemoryFileSystem``; unusable after a crash."""

    __slots__ = ("_era", "_fs", "_inode", "_path")

    def __init__(self, fs: MemoryFileSystem, inode: Inode, path: str) -> None:
        self._fs = fs
        self._inode = inode
        self._path = path
        self._era = fs.era
        """The era of ``fs`` in which it is open; ``_CLOSED`` once closed."""

    # Each method checks inline whether the file is open and the disk has faults: everything a
    # simulated node does goes through here.

    def _not_open(self) -> StorageError:
        return StorageError("the file is not open", self._path)

    def read_at(self, position: int, size: int) -> bytes:
        fs = self._fs
        if self._era != fs.era:
            raise self._not_open()
        if fs.is_watched:
            fs.before_read(self._path)
        return bytes(self._inode.data[position : position + size])

    def append(self, data: bytes) -> int:
        position = len(self._inode.data)
        self.write_at(position, data)
        return position

    def write_at(self, position: int, data: bytes) -> None:
        fs = self._fs
        if self._era != fs.era:
            raise self._not_open()
        if fs.is_watched:
            growth = max(0, position + len(data) - len(self._inode.data))
            fs.before_write(self._path, growth)
        self._inode.write(position, data)
        fs.change_count += 1
        if fs.is_watched:
            fs.count_down()

    def truncate(self, size: int) -> None:
        fs = self._fs
        if self._era != fs.era:
            raise self._not_open()
        if fs.is_watched:
            fs.before_change()
        self._inode.cut(size)
        fs.after_change()

    def sync(self) -> None:
        fs = self._fs
        if self._era != fs.era:
            raise self._not_open()
        if fs.is_watched and fs.is_sync_failing():
            self._inode.fail_sync()
            raise StorageError("cannot sync: simulated I/O error", self._path)
        self._inode.sync()
        fs.change_count += 1
        if fs.is_watched:
            fs.count_down()

    def size(self) -> int:
        if self._era != self._fs.era:
            raise self._not_open()
        return len(self._inode.data)

    def close(self) -> None:
        self._era = _CLOSED


class MemoryFileSystem:
    """``ports.FileSystem`` whose unsynced state a ``crash`` may lose. Used by one thread."""

    def __init__(self) -> None:
        self._directories: dict[str, Directory] = {"/": Directory(), ".": Directory()}
        self._faults = Faults()
        self._is_off = False
        self.is_watched = False
        """Whether calls must check ``faults``; a flag because nearly none have to."""
        self.era = 0
        self.change_count = 0
        """Number of calls so far that changed or synced something."""
        self.on_bite: Callable[[str], None] = _ignore
        """Called whenever a fault makes a call fail: with ``sync``, ``write`` or ``read``."""

    # ------------------------------------------------------------------ faults

    @property
    def faults(self) -> Faults:
        """What goes wrong from now on; assign a new ``Faults`` to change it."""
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._faults = faults
        self.is_watched = faults != Faults() or self._is_off

    def before_change(self) -> None:
        if self._is_off:
            raise PowerLost

    def after_change(self) -> None:
        self.change_count += 1
        if self.is_watched:
            self.count_down()

    def count_down(self) -> None:
        """Count a changing call that is done; power may be lost now."""
        if self._faults.stop_after_call >= 0:
            self._faults.stop_after_call -= 1
            if self._faults.stop_after_call < 0:
                self._is_off = True
                raise PowerLost

    def before_read(self, path: str) -> None:
        self.before_change()
        unreadable = self._faults.unreadable
        if unreadable is not None and unreadable(path.rpartition("/")[2]):
            self.on_bite("read")
            raise StorageError("cannot read: simulated I/O error", path)

    def before_write(self, path: str, growth: int) -> None:
        self.before_change()
        faults = self._faults
        if faults.full_at_write >= 0:
            if faults.full_at_write:
                faults.full_at_write -= 1
            elif faults.full_writes:
                faults.full_writes -= 1
                self.on_bite("write")
                raise DiskFullError("cannot write: simulated full disk", path)
        if 0 <= faults.capacity_bytes < self.used_bytes() + growth:
            self.on_bite("write")
            raise DiskFullError("cannot write: simulated full disk", path)

    def is_sync_failing(self) -> bool:
        self.before_change()
        faults = self._faults
        if faults.error_at_sync < 0:
            return False
        faults.error_at_sync -= 1
        if faults.error_at_sync >= 0:
            return False
        self.on_bite("sync")
        return True

    def crash(self, rng: random.Random, mode: CrashMode = LOSE_ALL) -> None:
        """Lose power and return.

        Open files become unusable, unsynced changes survive as ``mode`` says.

        All faults are removed.
        """
        inodes: dict[int, Inode] = {}
        for _, directory in sorted(self._directories.items()):
            directory.crash(rng, mode)
            for _, inode in sorted(directory.names.items()):
                inodes[id(inode)] = inode
        for inode in inodes.values():
            inode.crash(rng, mode)
        self.era += 1
        self._is_off = False
        self.faults = Faults()

    # ------------------------------------------------------------------ ports.FileSystem

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> MemoryFile:
        directory, name = self._locate(path)
        inode = directory.names.get(name)
        if inode is None:
            if not create:
                raise StorageError("cannot open: no such file", path)
            self.before_change()
            inode = Inode()
            directory.change("", name, inode)
            self.after_change()
        return MemoryFile(self, inode, str(path))

    def exists(self, path: Path) -> bool:
        text = str(path)
        if text in self._directories:
            return True
        parent, slash, name = text.rpartition("/")
        directory = self._directories.get(parent or slash or ".")
        return directory is not None and name in directory.names

    def list_directory(self, path: Path) -> list[str]:
        directory = self._directories.get(str(path))
        return [] if directory is None else sorted({*directory.names, *directory.folders})

    def make_directory(self, path: Path) -> None:
        self.before_change()
        if str(path) not in self._directories:
            self._make_directory(path)
        self.after_change()

    def _make_directory(self, path: Path) -> None:
        if self.exists(path):
            raise StorageError("cannot create directory: a file has that name", path)
        for folder in (path, *path.parents):
            if str(folder) in self._directories:
                break
            self._directories[str(folder)] = Directory()
        for folder in (path, *path.parents):
            if folder.name:
                self._directories[str(folder.parent)].folders.add(folder.name)

    def rename(self, old: Path, new: Path) -> None:
        self.before_change()
        directory, old_name = self._locate(old)
        target, new_name = self._locate(new)
        inode = directory.names.get(old_name)
        if inode is None:
            raise StorageError(f"cannot rename to {new_name}: no such file", old)
        if target is not directory:
            raise StorageError("the simulated disk renames within a directory only", old)
        directory.change(old_name, new_name, inode)
        self.after_change()

    def unlink(self, path: Path) -> None:
        self.before_change()
        directory, name = self._locate(path)
        if name in directory.names:
            directory.change(name, "", None)
            self.after_change()

    def sync_directory(self, path: Path) -> None:
        self.before_change()
        directory = self._directories.get(str(path))
        if directory is None:
            raise StorageError("cannot sync: no such directory", path)
        if self.is_watched and self.is_sync_failing():
            raise StorageError("cannot sync: simulated I/O error", path)
        directory.sync()
        self.after_change()

    def _locate(self, path: Path) -> tuple[Directory, str]:
        text = str(path)
        parent, slash, name = text.rpartition("/")
        directory = self._directories.get(parent or slash or ".")
        if directory is None:
            raise StorageError("no such directory", path)
        return directory, name

    def free_bytes(self, path: Path) -> int | None:
        """Return what is left of ``capacity_bytes``. With ``full_at_write`` it is unknown."""
        del path
        capacity = self._faults.capacity_bytes
        return None if capacity < 0 else max(0, capacity - self.used_bytes())

    def modified_ms(self, path: Path) -> int | None:
        """Return None: this disk has no clock."""
        del path
        return None

    # ------------------------------------------------------------------ for tests

    def used_bytes(self) -> int:
        """Return the size of all files that have a name, in bytes."""
        return sum(
            len(inode.data)
            for directory in self._directories.values()
            for inode in directory.names.values()
        )

    def read_bytes(self, path: Path) -> bytes:
        """Return a file's present content."""
        return bytes(self._inode(path).data)

    def durable_bytes(self, path: Path) -> bytes:
        """Return what a power failure now would leave of a file in the worst case."""
        inode = self._inode(path).copy()
        inode.crash(random.Random(0), LOSE_ALL)
        return bytes(inode.data)

    def is_same_file(self, path: Path, other: object) -> bool:
        """Return whether the file of that name is still the one that ``identity`` returned."""
        return self.exists(path) and self._inode(path) is other

    def identity(self, path: Path) -> object:
        """Return a token for this file that stays the same when its content changes."""
        return self._inode(path)

    def write_bytes(self, path: Path, data: bytes) -> None:
        """Put a durable file there, as if it had always existed."""
        directory, name = self._locate(path)
        inode = directory.names.get(name)
        if inode is None:
            inode = Inode()
            directory.change("", name, inode)
            directory.sync()
        inode.pending.clear()
        inode.data[:] = data

    def take_away(self, path: Path) -> None:
        """Remove a file, as if it had never existed."""
        directory, name = self._locate(path)
        directory.change(name, "", None)
        directory.sync()

    def flip_bit(self, path: Path, position: int, bit: int = 0) -> None:
        """Flip one bit on the disk."""
        self._inode(path).data[position] ^= 1 << bit

    def write_back(self) -> None:
        """Write everything to the disk, as the kernel does by itself after a while."""
        for directory in self._directories.values():
            directory.sync()
            for inode in directory.names.values():
                inode.sync()

    def clone(self) -> MemoryFileSystem:
        """Return a disk with the present content, all of it durable: a stale copy to restore."""
        copy = MemoryFileSystem()
        for path, directory in self._directories.items():
            other = copy._directories.setdefault(path, Directory())
            other.folders = set(directory.folders)
            other.names = {name: Inode(inode.data) for name, inode in directory.names.items()}
            other.durable = dict(other.names)
        return copy

    def _inode(self, path: Path) -> Inode:
        directory, name = self._locate(path)
        return directory.names[name]
