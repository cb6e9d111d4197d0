"""A file system that records the order of durable steps and can fail at a chosen one."""

from __future__ import annotations

from pathlib import Path

from quorum.errors import StorageError
from quorum.ports import File, FileSystem


class RecordingFileSystem:
    """Wraps another file system. ``steps`` lists its calls as ``verb name``.

    A step that ``fail_at`` names, or whose verb it names, raises ``StorageError`` instead.
    """

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner
        self.steps: list[str] = []
        self.fail_at: str | None = None
        self.open_files = 0

    def note(self, verb: str, path: Path) -> None:
        step = f"{verb} {path.name}"
        if self.fail_at in (verb, step):
            raise StorageError(f"a seeded failure at {step}", path)
        self.steps.append(step)

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> File:
        self.note("create" if create else "open", path)
        file = self._inner.open(path, create=create, writable=writable)
        self.open_files += 1
        return _RecordingFile(self, path, file)

    def exists(self, path: Path) -> bool:
        return self._inner.exists(path)

    def list_directory(self, path: Path) -> list[str]:
        return self._inner.list_directory(path)

    def make_directory(self, path: Path) -> None:
        self._inner.make_directory(path)

    def rename(self, old: Path, new: Path) -> None:
        self.note("rename", new)
        self._inner.rename(old, new)

    def unlink(self, path: Path) -> None:
        self.note("unlink", path)
        self._inner.unlink(path)

    def sync_directory(self, path: Path) -> None:
        self.note("sync-directory", path)
        self._inner.sync_directory(path)

    def free_bytes(self, path: Path) -> int | None:
        return self._inner.free_bytes(path)

    def modified_ms(self, path: Path) -> int | None:
        return self._inner.modified_ms(path)


class _RecordingFile:
    def __init__(self, owner: RecordingFileSystem, path: Path, inner: File) -> None:
        self._owner = owner
        self._path = path
        self._inner = inner

    def read_at(self, position: int, size: int) -> bytes:
        self._owner.note("read", self._path)
        return self._inner.read_at(position, size)

    def append(self, data: bytes) -> int:
        self._owner.note("append", self._path)
        return self._inner.append(data)

    def write_at(self, position: int, data: bytes) -> None:
        self._inner.write_at(position, data)

    def truncate(self, size: int) -> None:
        self._inner.truncate(size)

    def sync(self) -> None:
        self._owner.note("sync", self._path)
        self._inner.sync()

    def size(self) -> int:
        return self._inner.size()

    def close(self) -> None:
        self._owner.open_files -= 1
        self._inner.close()
