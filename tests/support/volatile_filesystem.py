"""A file system for real processes that keeps everything un-synced in the process's memory.

The kernel keeps written pages when a process is killed, so a SIGKILL alone never loses unsynced
bytes. Here writes, cuts, creations, renames and removals reach the operating system only in
``sync`` and ``sync_directory``. So killing the process has the effect of a power failure. Reads see
the pending state. A server selects it with
``--filesystem tests.support.volatile_filesystem:VolatileFileSystem``.

``NoSyncFileSystem`` stands for a build with fsync disabled: no write ever reaches the disk, and
every test that kills processes must find that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from quorum.errors import StorageError
from quorum.log.filesystem import OsFile, OsFileSystem

_PART_SUFFIX = ".volatile"


class _Base(Protocol):
    """The durable content of a file: on disk, or in memory while its name is not durable."""

    def read_at(self, position: int, size: int) -> bytes: ...
    def append(self, data: bytes) -> int: ...
    def write_at(self, position: int, data: bytes) -> None: ...
    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def size(self) -> int: ...
    def close(self) -> None: ...


class _Unnamed:
    """Drop the synced content of files whose names were never synced, as a power loss does."""

    def __init__(self) -> None:
        self.data = bytearray()

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self.data[position : position + size])

    def append(self, data: bytes) -> int:
        self.data += data
        return len(self.data) - len(data)

    def write_at(self, position: int, data: bytes) -> None:
        self.data[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        del self.data[size:]

    def sync(self) -> None:
        """Do nothing: the content is durable as soon as the name is."""

    def size(self) -> int:
        return len(self.data)

    def close(self) -> None:
        """Nothing to release."""


class _Node:
    """A file: its durable base, and its changes since the last sync.

    The content is ``base[:kept]`` with ``patches`` laid over it in order, then ``tail``.
    """

    def __init__(self, base: _Base) -> None:
        self.base = base
        self.kept = base.size()
        self.patches: list[tuple[int, bytes]] = []
        self.tail = bytearray()

    def size(self) -> int:
        return self.kept + len(self.tail)

    def read_at(self, position: int, size: int) -> bytes:
        end = min(position + size, self.size())
        if end <= position:
            return b""
        base = (
            self.base.read_at(position, min(end, self.kept) - position)
            if (position < self.kept)
            else b""
        )
        content = bytearray(base)
        for at, data in self.patches:
            low, high = max(at, position), min(at + len(data), position + len(base))
            if low < high:
                content[low - position : high - position] = data[low - at : high - at]
        if end > self.kept:
            content += self.tail[max(position - self.kept, 0) : end - self.kept]
        return bytes(content)

    def write_at(self, position: int, data: bytes) -> None:
        if position < self.kept:
            inside = data[: self.kept - position]
            self.patches.append((position, inside))
            data = data[len(inside) :]
            position = self.kept
        at = position - self.kept
        if at > len(self.tail):
            self.tail += bytes(at - len(self.tail))
        self.tail[at : at + len(data)] = data

    def truncate(self, size: int) -> None:
        if size >= self.kept:
            grown = size - self.kept - len(self.tail)
            self.tail += bytes(max(grown, 0))
            del self.tail[size - self.kept :]
            return
        self.tail.clear()
        self.kept = size
        self.patches = [(at, data[: size - at]) for at, data in self.patches if at < size]

    def push(self) -> None:
        """Write all changes to the base; they are durable when the base is synced."""
        if self.kept < self.base.size():
            self.base.truncate(self.kept)
        for position, data in self.patches:
            self.base.write_at(position, data)
        if self.tail:
            self.base.append(bytes(self.tail))
        self.patches.clear()
        self.tail.clear()
        self.kept = self.base.size()

    def adopt(self, base: _Base) -> None:
        """Continue on another base with the same durable content."""
        self.base.close()
        self.base = base

    def __del__(self) -> None:
        # A replaced file has neither name nor handle left; its descriptor is closed.
        self.base.close()


class VolatileFile:
    """An open file of a ``VolatileFileSystem``."""

    def __init__(self, fs: VolatileFileSystem, node: _Node, path: Path) -> None:
        self._fs = fs
        self._node: _Node | None = node
        self._path = path

    def _open_node(self) -> _Node:
        if self._node is None:
            raise StorageError("the file is not open", self._path)
        return self._node

    def read_at(self, position: int, size: int) -> bytes:
        with self._fs.lock:
            return self._open_node().read_at(position, size)

    def append(self, data: bytes) -> int:
        with self._fs.lock:
            position = self._open_node().size()
            self._open_node().write_at(position, data)
            return position

    def write_at(self, position: int, data: bytes) -> None:
        with self._fs.lock:
            self._open_node().write_at(position, data)

    def truncate(self, size: int) -> None:
        with self._fs.lock:
            self._open_node().truncate(size)

    def sync(self) -> None:
        self._fs.sync_node(self._open_node())

    def size(self) -> int:
        with self._fs.lock:
            return self._open_node().size()

    def close(self) -> None:
        """Close the handle without a sync; the file system keeps the content."""
        self._node = None


class VolatileFileSystem:
    """``ports.FileSystem`` that keeps changes since the last sync in memory.

    One per process; usable from any thread.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._os = OsFileSystem()
        self._nodes: dict[Path, _Node | None] = {}
        """Files used so far, by present name; None for a removed name."""
        self._pending: dict[Path, list[Callable[[], None]]] = {}
        """Pending changes of names per directory, made when the directory is synced."""

    # ------------------------------------------------------------------ ports.FileSystem

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> VolatileFile:
        with self.lock:
            node = self._lookup(path)
            if node is None:
                if not create:
                    raise StorageError("cannot open: No such file or directory", path)
                if not self._os.exists(path.parent):
                    raise StorageError("cannot open: no such directory", path)
                node = _Node(_Unnamed())
                self._nodes[path] = node
                self._later(path.parent, lambda: self._create(path, node))
            return VolatileFile(self, node, path)

    def exists(self, path: Path) -> bool:
        with self.lock:
            if path in self._nodes:
                return self._nodes[path] is not None
            return self._os.exists(path)

    def list_directory(self, path: Path) -> list[str]:
        with self.lock:
            names = {
                name for name in self._os.list_directory(path) if not name.endswith(_PART_SUFFIX)
            }
            for known, node in self._nodes.items():
                if known.parent == path:
                    (names.discard if node is None else names.add)(known.name)
            return sorted(names)

    def make_directory(self, path: Path) -> None:
        with self.lock:
            if self._nodes.get(path) is not None:
                raise StorageError("cannot create directory: a file has that name", path)
            self._os.make_directory(path)

    def rename(self, old: Path, new: Path) -> None:
        with self.lock:
            node = self._lookup(old)
            if node is None:
                raise StorageError(f"cannot rename to {new.name}: no such file", old)
            if old.parent != new.parent:
                raise StorageError("renames are kept within one directory here", old)
            self._nodes[old] = None
            self._nodes[new] = node
            self._later(old.parent, lambda: self._os.rename(old, new))

    def unlink(self, path: Path) -> None:
        with self.lock:
            if self._lookup(path) is not None:
                self._nodes[path] = None
                self._later(path.parent, lambda: self._os.unlink(path))

    def sync_directory(self, path: Path) -> None:
        with self.lock:
            for change in self._pending.pop(path, []):
                change()
            self._os.sync_directory(path)

    def free_bytes(self, path: Path) -> int | None:
        return self._os.free_bytes(path)

    def modified_ms(self, path: Path) -> int | None:
        return self._os.modified_ms(path)

    # ------------------------------------------------------------------ inside

    def sync_node(self, node: _Node) -> None:
        """Make a file's content durable; it survives a crash only if its name is durable too."""
        with self.lock:
            node.push()
            base = node.base
        # Outside the lock: a slow disk must not delay readers.
        base.sync()

    def _later(self, directory: Path, change: Callable[[], None]) -> None:
        self._pending.setdefault(directory, []).append(change)

    def _lookup(self, path: Path) -> _Node | None:
        if path in self._nodes:
            return self._nodes[path]
        if not self._os.exists(path):
            return None
        try:
            base = self._os.open(path, writable=True)
        except StorageError:
            # Frozen checkpoints may be write-protected.
            base = self._os.open(path)
        node = _Node(base)
        self._nodes[path] = node
        return node

    def _create(self, path: Path, node: _Node) -> None:
        """Give a new file its name on the disk, with the content of its last sync."""
        part = path.with_name(path.name + _PART_SUFFIX)
        file: OsFile = self._os.open(part, create=True, writable=True)
        file.truncate(0)
        file.append(node.base.read_at(0, node.base.size()))
        file.sync()
        self._os.rename(part, path)
        node.adopt(file)


class NoSyncFileSystem(VolatileFileSystem):
    """A build with fsync disabled: all its writes are lost with the process."""

    def sync_node(self, node: _Node) -> None:
        """Claim success and do nothing."""

    def sync_directory(self, path: Path) -> None:
        """Claim success and do nothing."""
