"""Track which damaged side files of one disk the next start has to report.

A start rebuilds damaged side files from other files and reports it. Operators cannot investigate
damage that was not reported, so a silent repair is a violation.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from quorum.log.high_watermark_file import damaged_watermark_files, load_watermarks
from quorum.log.identity import load_identity
from quorum.log.layout import (
    EPOCH_FILE_NAME,
    PARTITION_METADATA_NAME,
    WATERMARK_NAMES,
    partition_directory,
)
from quorum.types import NodeId
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import MemoryFileSystem

_REPAIRED = (".digest", ".index", EPOCH_FILE_NAME, PARTITION_METADATA_NAME, *WATERMARK_NAMES)
"""Suffixes of file names that a start rebuilds if they are damaged."""


class _Damage(NamedTuple):
    """A file changed behind its node's back. None is the content of a missing file."""

    before: bytes | None
    """What its node wrote last."""
    since: bytes | None
    """The present content."""


class UnreportedDamage:
    """Files changed behind a node's back that no start has read yet."""

    def __init__(self, node_id: NodeId, data_dir: Path) -> None:
        self._node_id = node_id
        self._data_dir = data_dir
        self._damage: dict[Path, _Damage] = {}
        """Of every file that was ever changed, the last change and all that led to it without a
        write by its node in between."""
        self._silent: dict[Path, bytes | None] = {}
        """Files that changed since the directory was last opened, and what has lain there since.
        Nobody has reported any of them yet."""
        self._looked_at: dict[Path, bytes | None] = {}
        """The same, of those that the present attempt to open the directory finds."""
        self._marks: dict[str, bytes] = {}
        """Both marks as this attempt finds them, by name."""

    @property
    def is_pending(self) -> bool:
        """Return whether a change exists that no attempt to open the directory has read."""
        return bool(self._silent)

    def changed(
        self, path: Path, intact: bytes, corrupted: bytes | None, *, is_running: bool
    ) -> None:
        """Record that a file's content changed from ``intact`` to ``corrupted``.

        None where it is gone.

        A file is intact again when it gets what its node wrote last: an earlier version that is put
        back after corruption may be the latest one, because nothing was written in between.
        """
        known = self._damage.get(path)
        before = known.before if known is not None and known.since == intact else intact
        self._damage[path] = _Damage(before, corrupted)
        if is_running:
            return
        if corrupted == before:
            self._silent.pop(path, None)
        else:
            self._silent[path] = corrupted

    def opening(self, fs: MemoryFileSystem) -> None:
        """Note that a process is about to open the directory and will read all of it."""
        self._looked_at, self._silent = self._silent, {}
        directory = partition_directory(self._data_dir)
        self._marks = {
            name: fs.read_bytes(directory / name)
            for name in WATERMARK_NAMES
            if fs.exists(directory / name)
        }

    def opened(
        self, fs: MemoryFileSystem, reported: Collection[str], *, is_log_whole: bool
    ) -> None:
        """Evaluate a successful start.

        ``reported`` are the names of the files it reported as repaired.

        ``is_log_whole``: no segment was quarantined or replaced together with its side files.

        Raises:
            Violation: The node rebuilt a damaged side file without reporting it.
        """
        for path, corrupted in self._looked_at.items():
            if path.suffix in (".digest", ".index") and not is_log_whole:
                continue
            if (
                not path.name.endswith(_REPAIRED)
                or not fs.exists(path)
                or fs.read_bytes(path) == corrupted
                or self._is_older_mark(fs, path, corrupted)
            ):
                continue
            if path.name not in reported:
                raise Violation(
                    "damage-reported",
                    "a side file was repaired without a report",
                    node=self._node_id,
                    file=path.name,
                    reported=sorted(reported),
                )

    def _is_older_mark(self, fs: MemoryFileSystem, path: Path, content: bytes | None) -> bool:
        """Return whether it is an intact mark of this disk, and the other one is not newer.

        The other one may have been changed as well, or have lost its last writes in a crash. Then
        nothing shows that an earlier version was put back.
        """
        if path.name not in WATERMARK_NAMES or content is None:
            return False
        owner = load_identity(fs, self._data_dir).directory_id
        directory = partition_directory(self._data_dir)
        alone, both = MemoryFileSystem(), MemoryFileSystem()
        for target, contents in ((alone, {path.name: content}), (both, self._marks)):
            target.make_directory(directory)
            for name, each in contents.items():
                target.write_bytes(directory / name, each)
        if damaged_watermark_files(alone, directory, owner):
            return False
        marks = load_watermarks(alone, directory, owner)
        return marks is not None and marks == load_watermarks(both, directory, owner)
