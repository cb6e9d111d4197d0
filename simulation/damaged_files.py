"""Change file content of one disk behind the node's back.

One bit flips, or a file of another node or of an earlier time takes the file's place. The node must
detect this or be unaffected. It must refuse a file that it needs and cannot rebuild.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from quorum.batch import peek_size, read_header
from quorum.errors import CorruptBatchError, ElectionStateError, IdentityError
from quorum.log.election_store import ElectionFile
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.identity import MetaProperties, load_identity
from quorum.log.layout import (
    LOG_START_NAME,
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    QUARANTINED_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAMES,
    partition_directory,
)
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, ElectionState, NodeId
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import MemoryFileSystem
from simulation.unreported_damage import UnreportedDamage
from snapshot.naming import file_name

DATA_DIR = Path("/data")
BOOTSTRAP_NAME = file_name(BOOTSTRAP_SNAPSHOT_ID)
_DIRECTORY = partition_directory(DATA_DIR)
_QUORUM_STATE = _DIRECTORY / QUORUM_STATE_NAME
_META_PROPERTIES = DATA_DIR / META_PROPERTIES_NAME
_WORKING = ("log", "checkpoint", "part", "digest", "index")
"""Kinds of file identified by their suffix; every other file has a name of its own."""
_LOSING = ("log", "checkpoint", "part", LOG_START_NAME, QUARANTINED_NAME)
"""Kinds of file whose corruption may lose acknowledged records.

A checkpoint replaces the start of the log: where both are corrupt, the whole log is quarantined. A
download is verified as it arrives. A bit that flips after that is found only when the download has
replaced the log.
"""
_LOSING_FOREIGN = (*_LOSING, "digest", *WATERMARK_NAMES)
"""With an intact checksum these contradict the log, and no check can tell which is wrong."""
_REFUSING = (QUORUM_STATE_NAME, META_PROPERTIES_NAME, PARTITION_METADATA_NAME)
"""Files without which a node must not start; they cannot be rebuilt from others."""

_GRAVE_SHARE = 0.4
_PLACES_MAX = 1024
"""The same names occur again and again; joining a path costs more than a lookup."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file whose content is not what its node wrote."""

    path: Path
    kind: str
    """The suffix of the file, or its whole name where that identifies it."""
    loses: bool
    """Whether acknowledged records may be lost with it."""


@dataclass(slots=True)
class _Kept:
    file: object
    """Identity of the present file; None where it was removed."""
    intact: bytes
    corrupted: bytes | None
    """None where it was removed."""


@lru_cache(maxsize=_PLACES_MAX)
def _place(name: str) -> Path:
    return _DIRECTORY / name


def _some_kind(rng: random.Random, found: Collection[str], losing: Collection[str]) -> str:
    """Choose one of the kinds found; prefer an unusual one that holds records."""
    kinds = sorted(found)
    grave = [kind for kind in kinds if kind in losing]
    return rng.choice(grave if grave and rng.random() < _GRAVE_SHARE else kinds)


class DamagedFiles:
    """The files of one disk whose content is not what their node wrote."""

    def __init__(self, node_id: NodeId, fs: Callable[[], MemoryFileSystem]) -> None:
        self._node_id = node_id
        self._fs = fs
        self._kept: dict[Path, _Kept] = {}
        self._has_damaged_tail = False
        """Whether the newest segment was damaged since the directory was last opened."""
        self.keeps_mark = False
        """Whether the durable marks are as the process left them."""
        self.is_latent = False
        """Whether a running node's records were damaged; found at its next start at the latest."""
        self._flipped: list[object] = []
        """Files with a flipped bit since the directory was last opened."""
        self._unreported = UnreportedDamage(node_id, DATA_DIR)
        self.is_damaged_widely = False
        """Whether several files were damaged at once; then none is until the node has started."""

    # ------------------------------------------------------------------ one bit

    def corruption(self, rng: random.Random, *, may_lose: bool, is_running: bool) -> Change | None:
        """Flip one bit of one file, of any kind; return None where there is nothing to flip.

        Above the durable mark, corruption in the newest segment cannot be told from a torn tail. A
        power failure leaves the mark as it was last synced, so then only bytes below it are
        flipped. On a running node that may happen at any time, and any segment may become the
        newest.
        """
        by_kind: dict[str, list[tuple[Path, int]]] = {}
        newest = self.newest()
        for path, kind in self.files():
            if (kind in _LOSING and not may_lose) or not self._may_touch(path, kind):
                continue
            is_below_mark = kind == "log" and (
                is_running or (path == newest and not self.keeps_mark)
            )
            size = self.marked_bytes(path) if is_below_mark else len(self._fs().read_bytes(path))
            if size:
                by_kind.setdefault(kind, []).append((path, size))
        if not by_kind:
            return None
        kind = _some_kind(rng, by_kind, _LOSING)
        path, size = rng.choice(by_kind[kind])
        intact = self._fs().read_bytes(path)
        self._fs().flip_bit(path, rng.randrange(size), rng.randrange(8))
        self._flipped.append(self._fs().identity(path))
        return self._changed(path, kind, intact, loses=kind in _LOSING, is_running=is_running)

    # ------------------------------------------------------------------ another file

    def swap(
        self, rng: random.Random, source: MemoryFileSystem, *, may_lose: bool
    ) -> Change | None:
        """Replace a file by the file of ``source`` with the same name, if they differ.

        An earlier election state of this disk is used only if the log contradicts it: otherwise the
        disk has forgotten a vote, which no single disk can detect. The content decides, not the
        disk it comes from, because an earlier swap may have moved it.
        """
        fs = self._fs()
        by_kind: dict[str, list[Path]] = {}
        for path, kind in self.files():
            is_spared = (kind in _LOSING_FOREIGN and not may_lose) or not source.exists(path)
            # The name of a checkpoint determines its content, bit by bit.
            if is_spared or kind == "checkpoint" or not self._may_touch(path, kind):
                continue
            if kind == "log" and path == self.newest() and not self.keeps_mark:
                continue
            if kind == QUORUM_STATE_NAME and self._forgets_a_vote(source):
                continue
            if source.read_bytes(path) != fs.read_bytes(path):
                by_kind.setdefault(kind, []).append(path)
        if not by_kind:
            return None
        kind = _some_kind(rng, by_kind, _LOSING_FOREIGN)
        path = rng.choice(by_kind[kind])
        intact = fs.read_bytes(path)
        fs.write_bytes(path, source.read_bytes(path))
        if kind in WATERMARK_NAMES:
            # A checkpoint of a later epoch contradicts the election state.
            self._kept[path] = _Kept(fs.identity(path), intact, fs.read_bytes(path))
        return self._changed(path, kind, intact, loses=kind in _LOSING_FOREIGN)

    def _forgets_a_vote(self, source: MemoryFileSystem) -> bool:
        return self.names_this_disk(source) and not self._is_contradicted(source)

    def names_this_disk(self, source: MemoryFileSystem) -> bool:
        """Return whether this disk, or its predecessor, wrote the election state on ``source``.

        The predecessor counts if this disk was formatted by the same command.
        """
        try:
            owner = load_identity(self._as_written(), DATA_DIR).directory_id
            ElectionFile(source, _DIRECTORY, owner).load()
        except (IdentityError, ElectionStateError):
            return False  # another disk's, or already corrupt
        return True

    def _as_written(self) -> MemoryFileSystem:
        """Return a copy of the disk with the files as its node wrote them."""
        clean = self._fs().clone()
        for path, kept in self._kept.items():
            clean.write_bytes(path, kept.intact)
        return clean

    def _is_contradicted(self, source: MemoryFileSystem) -> bool:
        marks = load_watermarks(self._fs(), _DIRECTORY)
        try:
            epoch = ElectionFile(source, _DIRECTORY).load().epoch
        except ElectionStateError:
            return False  # already corrupt
        return marks is not None and marks.durable_epoch > epoch

    # ------------------------------------------------------------------ which

    def files(self) -> Iterator[tuple[Path, str]]:
        """Yield every file that its node wrote and reads again, with its kind (``Change.kind``)."""
        names = self._fs().list_directory(_DIRECTORY)
        for name in names:
            suffix = name.rpartition(".")[2]
            is_working = suffix in _WORKING or "." not in name or name in _REFUSING
            if is_working and name != BOOTSTRAP_NAME:
                yield _place(name), suffix if suffix in _WORKING else name
        if self._fs().exists(_META_PROPERTIES):
            yield _META_PROPERTIES, META_PROPERTIES_NAME

    def newest(self) -> Path | None:
        """The newest segment."""
        # Names are sorted, and segment names have a fixed width.
        segments = [path for path, kind in self.files() if kind == "log"]
        return segments[-1] if segments else None

    def _may_touch(self, path: Path, kind: str) -> bool:
        if self.is_damaged_widely:
            return False
        # Not both: only the mark distinguishes a damaged tail from a torn one.
        if kind in WATERMARK_NAMES and (self._has_damaged_tail or _QUORUM_STATE in self._kept):
            return False
        return path not in self._kept

    def marked_bytes(self, path: Path) -> int:
        """Return how many bytes of a segment lie below the mark that power loss would leave."""
        durable_offset = min(self._durable_mark(_DIRECTORY / name) for name in WATERMARK_NAMES)
        data, position = self._fs().read_bytes(path), 0
        try:
            while size := peek_size(data, position):
                if read_header(data[position : position + size]).end_offset > durable_offset:
                    break
                position += size
        except CorruptBatchError:
            pass  # a torn tail, or earlier corruption
        return position

    def _durable_mark(self, path: Path) -> int:
        """Return the durable end that one of the two files alone would give after power loss."""
        if not self._fs().exists(path):
            return 0
        left = MemoryFileSystem()
        left.make_directory(_DIRECTORY)
        left.write_bytes(path, self._fs().durable_bytes(path))
        marks = load_watermarks(left, _DIRECTORY)
        return 0 if marks is None else marks.durable_offset

    # ------------------------------------------------------------------ any content, or none

    def put(self, path: Path, kind: str, content: bytes | None) -> Change:
        """Replace or remove the content of a file of a stopped node.

        Acknowledged records that the file may hold count as lost, side files included.
        """
        fs = self._fs()
        intact = fs.read_bytes(path)
        if content is None:
            fs.take_away(path)
        else:
            fs.write_bytes(path, content)
        return self._changed(path, kind, intact, loses=kind in _LOSING_FOREIGN)

    def _changed(
        self, path: Path, kind: str, intact: bytes, *, loses: bool, is_running: bool = False
    ) -> Change:
        fs = self._fs()
        corrupted = fs.read_bytes(path) if fs.exists(path) else None
        self._unreported.changed(path, intact, corrupted, is_running=is_running)
        self._has_damaged_tail = self._has_damaged_tail or path == self.newest()
        self.is_latent = self.is_latent or (loses and is_running)
        if kind in WATERMARK_NAMES:
            self.keeps_mark = False
        if kind in _REFUSING:
            identity = None if corrupted is None else fs.identity(path)
            self._kept[path] = _Kept(identity, intact, corrupted)
        return Change(path, kind, loses)

    # ------------------------------------------------------------------ what a node makes of it

    def opening(self) -> None:
        """Note that a process is about to open the directory and will read all of it."""
        self._has_damaged_tail = self.is_latent = False
        self._flipped.clear()
        self._unreported.opening(self._fs())
        # A side file that the node has rewritten is another file; marks are rewritten in place.
        self._kept = {
            path: kept for path, kept in self._kept.items() if self._lies_there(path, kept)
        }

    def _lies_there(self, path: Path, kept: _Kept) -> bool:
        fs = self._fs()
        if kept.corrupted is None:
            return not fs.exists(path)
        is_same = fs.is_same_file(path, kept.file)
        return is_same and (
            path.name not in WATERMARK_NAMES or fs.read_bytes(path) == kept.corrupted
        )

    def opened(self, reported: Collection[str], *, is_log_whole: bool) -> None:
        """Evaluate a successful start.

        ``reported`` are the names of the files it reported as repaired.

        ``is_log_whole``: no segment was quarantined or replaced together with its side files.

        Raises:
            Violation: The node rebuilt a damaged side file without reporting it.
        """
        self.is_damaged_widely = False
        self._unreported.opened(self._fs(), reported, is_log_whole=is_log_whole)

    def is_flipped(self, path: Path) -> bool:
        """Return whether this file, under any name, was corrupted below the present process."""
        return any(self._fs().is_same_file(path, each) for each in self._flipped)

    @property
    def is_anything_flipped(self) -> bool:
        """Return whether a segment or checkpoint was corrupted below the present process."""
        if not self._flipped:
            return False
        return any(
            kind in ("log", "checkpoint") and self.is_flipped(path) for path, kind in self.files()
        )

    @property
    def is_touched(self) -> bool:
        """Return whether anything was damaged since the node last started from the directory."""
        return bool(
            self.is_damaged_widely
            or self._unreported.is_pending
            or self._kept
            or self._flipped
            or self._has_damaged_tail
        )

    @property
    def may_refuse(self) -> bool:
        """Return whether a damaged file cannot be rebuilt from others."""
        return bool(self._kept)

    @property
    def are_intact(self) -> bool:
        """Return whether no damaged file is present that would affect a start."""
        return not self._kept and not self.is_latent

    def accepted(self, identity: MetaProperties, election: ElectionState) -> None:
        """Check the values that a node read although files are wrong.

        A flipped bit in a comment or line ending has no meaning; any other one has.

        Raises:
            Violation: The node accepted a file that is not its own.
        """
        clean = self._as_written()
        expected = ElectionFile(clean, _DIRECTORY).load()
        # The start itself stores a vote floor when other files require one.
        is_right = replace(election, vote_floor=None) == replace(expected, vote_floor=None)
        if not is_right or identity != load_identity(clean, DATA_DIR, node_id=self._node_id):
            raise Violation(
                "damage-detected",
                "the node accepted a wrong file",
                node=self._node_id,
                files=list(self._kept),
            )
        self._kept.clear()

    def put_back(self) -> None:
        """Restore the refused files, as an operator does.

        Raises:
            Violation: The node that refused a file has changed it.
        """
        for path, kept in self._kept.items():
            if not self._lies_there(path, kept):
                raise Violation(
                    "damage-kept", "a refused file was changed", node=self._node_id, file=path
                )
            self._fs().write_bytes(path, kept.intact)
        self._kept.clear()
