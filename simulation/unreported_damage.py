"""Which damaged side files a start has to report, of the disk of one node.

A start makes side files anew from others where they are damaged, and says so. What the operators of
a cluster never hear of they cannot look into, so a repair without a word is a violation.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from quorum.log.high_watermark_file import load_watermarks
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
"""How the names of files end that a start makes anew where they are damaged."""


class _Damage(NamedTuple):
    """A file behind its node's back. None is the content of a file that is not there."""

    before: bytes | None
    """What its node wrote last."""
    since: bytes | None
    """What lies there."""


class UnreportedDamage:
    """Files that changed behind the back of a node, until a start has looked at them."""

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
        self._wrong_marks: frozenset[str] = frozenset()
        """The marks that this attempt finds changed, also before an attempt that was refused."""

    @property
    def is_pending(self) -> bool:
        """Whether anything changed that no attempt to open the directory has found."""
        return bool(self._silent)

    def changed(
        self, path: Path, intact: bytes, corrupted: bytes | None, *, is_running: bool
    ) -> None:
        """A file had the content ``intact`` and has ``corrupted`` now; None where it is gone.

        A file that comes to have what its node wrote last is intact again: after corruption, an
        earlier version may be put back that is the latest one, because nothing was written in
        between.
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
        """A process is about to open the directory, and will read all of it."""
        self._looked_at, self._silent = self._silent, {}
        self._wrong_marks = frozenset(
            path.name
            for path, damage in self._damage.items()
            if path.name in WATERMARK_NAMES
            and damage.since != damage.before
            and damage.since == (fs.read_bytes(path) if fs.exists(path) else None)
        )

    def opened(
        self, fs: MemoryFileSystem, reported: Collection[str], *, is_log_whole: bool
    ) -> None:
        """A node has started; ``reported`` are the names of the files that it says it has repaired.

        ``is_log_whole``: none of its segments was set aside or replaced, and their files with them.

        Raises:
            Violation: It made a damaged side file anew without a word.
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
                    "a side file was repaired without a word",
                    node=self._node_id,
                    file=path.name,
                    reported=sorted(reported),
                )

    def _is_older_mark(self, fs: MemoryFileSystem, path: Path, content: bytes | None) -> bool:
        """Whether it is an intact mark of this disk, and the other file was wrong as well.

        Nothing tells then that it is an earlier version which was put back.
        """
        if path.name not in WATERMARK_NAMES or content is None:
            return False
        if not self._wrong_marks >= {*WATERMARK_NAMES}:
            return False
        alone, directory = MemoryFileSystem(), partition_directory(self._data_dir)
        alone.make_directory(directory)
        alone.write_bytes(directory / path.name, content)
        owner = load_identity(fs, self._data_dir).directory_id
        return load_watermarks(alone, directory, owner) is not None
