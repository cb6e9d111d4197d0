"""Where the storage code changes the disk, and at which of these places power was lost.

The places are found in the source: calls of the methods of ``ports.File`` and ``ports.FileSystem``
that change something. A new one is found by itself, so a test can tell that no crash covers it.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from quorum.errors import StorageError
from simulation.memory_filesystem import MemoryFile, MemoryFileSystem, PowerLost

ROOT = Path(__file__).parents[2]
STORAGE = (
    "quorum/log",
    "snapshot",
    "quorate/adoption",
    "quorate/backup/restore.py",
    "quorate/backup/unpack.py",
    "quorate/formatting.py",
    "quorate/recovery",
    "quorate/replica",
)
"""The code of log, checkpoints, epoch, vote and identity."""
_BELOW = frozenset({"quorum/log/filesystem.py", "quorate/replica/paced_files.py"})
"""Implementations of the ports themselves."""
_PACKAGES = ("quorum", "quorate", "snapshot", "statemachine", "metrics")
_CHANGES = frozenset(
    {"append", "write_at", "truncate", "sync", "rename", "unlink", "sync_directory"}
)
_NO_FILES = frozenset({"part", "self._part"})
"""Part files: their own methods call those of a file."""
_FILES = ("file", "_file")
_SIMULATION = ROOT / "simulation"


class Site(NamedTuple):
    """One call that changes the disk."""

    file: str
    line: int
    call: str


@cache
def storage_code() -> dict[str, ast.Module]:
    """Return the storage code by file, without the implementations of the ports."""
    return {
        file: ast.parse(path.read_text())
        for name in STORAGE
        for path in ([ROOT / name] if name.endswith(".py") else sorted((ROOT / name).rglob("*.py")))
        if (file := path.relative_to(ROOT).as_posix()) not in _BELOW
    }


@cache
def sites() -> frozenset[Site]:
    """Return every place of the storage code that changes the disk."""
    return frozenset(site for each in storage_code().items() for site in sites_of(*each))


@cache
def changing_files() -> frozenset[str]:
    """Return every file of the product that changes a disk so, below the ports or beside them."""
    return frozenset(
        site.file
        for package in _PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if (file := path.relative_to(ROOT).as_posix()) not in _BELOW
        for site in sites_of(file, ast.parse(path.read_text()))
    )


def sites_of(file: str, tree: ast.Module) -> list[Site]:
    """Return the places in one parsed file."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method, target = node.func.attr, ast.unparse(node.func.value)
            creates = method in ("open", "make_directory") and (
                method == "make_directory" or any(each.arg == "create" for each in node.keywords)
            )
            is_change = method in _CHANGES and target not in _NO_FILES
            if method == "append":
                # Lists are appended to as well; a file is called a file here.
                is_change = is_change and target.rpartition(".")[2] in _FILES
            if creates or is_change:
                found.append(Site(file, node.lineno, f"{target}.{method}"))
    return found


_OS_CALLS = frozenset(
    {"copy_file_range", "fdatasync", "fdopen", "fsync", "ftruncate", "link", "makedirs", "mkdir",
     "posix_fallocate", "pwrite", "pwritev", "remove", "removedirs", "rename", "renames", "replace",
     "rmdir", "sendfile", "symlink", "truncate", "unlink", "write", "writev"}
)  # fmt: skip
_PATH_CALLS = frozenset(
    {"hardlink_to", "mkdir", "rmdir", "symlink_to", "touch", "write_bytes", "write_text"}
)


def changes_beside_the_ports(file: str, tree: ast.Module) -> list[Site]:
    """Return the places that change the disk by the standard library; no crash reaches them."""
    return [
        Site(file, node.lineno, ast.unparse(node.func))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _goes_around(node)
    ]


def _goes_around(call: ast.Call) -> bool:
    match call.func:
        case ast.Name("open"):
            return _is_for_writing(call, mode_at=1)
        case ast.Attribute(ast.Name("os"), "open"):
            return "O_RDONLY" not in ast.unparse(call)
        case ast.Attribute(ast.Name("os"), name):
            return name in _OS_CALLS
        case ast.Attribute(ast.Name("shutil" | "tempfile")):
            return True
        case ast.Attribute(_, "open"):
            return _is_for_writing(call, mode_at=0)
        case ast.Attribute(_, "replace"):
            # Of a path; that of a string takes two arguments.
            return len(call.args) == 1 and not call.keywords
        case ast.Attribute(_, name):
            return name in _PATH_CALLS
    return False


def _is_for_writing(call: ast.Call, *, mode_at: int) -> bool:
    given = call.args[mode_at : mode_at + 1] + [k.value for k in call.keywords if k.arg == "mode"]
    if mode_at == 0:
        # Of a path. The ports have no modes; their first argument is the path.
        given = [each for each in given if isinstance(each, ast.Constant)]
    return any(
        not isinstance(each, ast.Constant) or set("wax+") & set(each.value) for each in given
    )


class WatchedFileSystem(MemoryFileSystem):
    """A simulated disk that remembers which call power was lost behind."""

    def __init__(self) -> None:
        super().__init__()
        self.lost_at: tuple[str, int] | None = None
        """File and line of the storage code; None before power is lost."""
        self.not_to_open: str | None = None
        """A file of this name cannot be opened."""

    def count_down(self) -> None:
        try:
            super().count_down()
        except PowerLost:
            self.lost_at = _place()
            raise

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> MemoryFile:
        if path.name == self.not_to_open:
            raise StorageError("cannot open: simulated I/O error", path)
        return super().open(path, create=create, writable=writable)


def _place() -> tuple[str, int] | None:
    """Return file and line of the innermost caller that is no simulated disk."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path != Path(__file__) and _SIMULATION not in path.parents:
            is_ours = path.is_relative_to(ROOT)
            return (path.relative_to(ROOT).as_posix(), frame.f_lineno) if is_ours else None
        frame = frame.f_back
    return None
