"""Files of one disk whose content changes behind the node's back.

One bit flips, or a file of another node, or of an older time, lies there under the right name. A
node must notice, or be unharmed: what it cannot do without and cannot make again it refuses.
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
"""Kinds of file that are told by their suffix; all others have one name."""
_LOSING = ("log", "checkpoint", "part", LOG_START_NAME, QUARANTINED_NAME)
"""Kinds of file whose corruption may take records that were acknowledged. A checkpoint takes the
place of the log's start; where that one has rotted as well, the log is set aside as a whole. A
download is verified as it comes: a bit that flips behind that is found when the log has been
replaced by it."""
_LOSING_FOREIGN = (*_LOSING, "digest", *WATERMARK_NAMES)
"""With an intact checksum these contradict the log, and nobody can say which of them is wrong."""
_REFUSING = (QUORUM_STATE_NAME, META_PROPERTIES_NAME, PARTITION_METADATA_NAME)
"""Files without which a node must not start; they cannot be made again from others."""

_GRAVE_SHARE = 0.4
_PLACES_MAX = 1024
"""The same names come again and again; joining a path costs more than finding it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file that is not what its node wrote."""

    path: Path
    kind: str
    """The suffix of the file, or its whole name where that says what it is."""
    loses: bool
    """Whether records that were acknowledged may be gone with it."""


@dataclass(slots=True)
class _Kept:
    file: object
    """The very file that lies there; None where it was taken away."""
    intact: bytes
    corrupted: bytes | None
    """None where it was taken away."""


@lru_cache(maxsize=_PLACES_MAX)
def _place(name: str) -> Path:
    return _DIRECTORY / name


def _some_kind(rng: random.Random, found: Collection[str], losing: Collection[str]) -> str:
    """One of the kinds found; more often one that is not like the others, with records in it."""
    kinds = sorted(found)
    grave = [kind for kind in kinds if kind in losing]
    return rng.choice(grave if grave and rng.random() < _GRAVE_SHARE else kinds)


class DamagedFiles:
    """What lies on one disk and is not what its node wrote."""

    def __init__(self, node_id: NodeId, fs: Callable[[], MemoryFileSystem]) -> None:
        self._node_id = node_id
        self._fs = fs
        self._kept: dict[Path, _Kept] = {}
        self._has_damaged_tail = False
        """Whether the newest segment was harmed since the directory was last opened."""
        self.keeps_mark = False
        """Whether the file that says how far the log is durable is as the process left it."""
        self.is_latent = False
        """Whether a running node's records were harmed; nobody looks before the next start."""
        self._flipped: list[object] = []
        """Files a bit of which has flipped since the directory was last opened."""
        self._unreported = UnreportedDamage(node_id, DATA_DIR)
        self.is_damaged_widely = False
        """Whether several files at once were; then no other one is, until a node has started."""

    # ------------------------------------------------------------------ one bit

    def corruption(self, rng: random.Random, *, may_lose: bool, is_running: bool) -> Change | None:
        """Flip one bit of one file, of any kind; None where there is nothing to flip.

        Above the durable mark, corruption in the newest segment looks like a torn tail, to anybody.
        A power failure leaves the mark as it was last synced: then only what lies below it rots. Of
        a running node that may happen at any time, and any segment may become the newest.
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
        """Put a file of ``source`` in place of the one of the same name, if they differ.

        An election state that names this disk is put there only if the log contradicts it: the
        rest is a vote forgotten, which no single disk can tell. Its content decides, not where it
        is from: a swap may have left it on the disk of another node.
        """
        fs = self._fs()
        by_kind: dict[str, list[Path]] = {}
        for path, kind in self.files():
            is_spared = (kind in _LOSING_FOREIGN and not may_lose) or not source.exists(path)
            # A checkpoint's name stands for its content, bit by bit.
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
            # One of a later epoch than the election state contradicts that.
            self._kept[path] = _Kept(fs.identity(path), intact, fs.read_bytes(path))
        return self._changed(path, kind, intact, loses=kind in _LOSING_FOREIGN)

    def _forgets_a_vote(self, source: MemoryFileSystem) -> bool:
        return self.names_this_disk(source) and not self._is_contradicted(source)

    def names_this_disk(self, source: MemoryFileSystem) -> bool:
        """Whether the election state on ``source`` says that this disk wrote it, earlier or now.

        Also what the disk before it wrote, if this one was formatted by the same command.
        """
        try:
            owner = load_identity(self._as_written(), DATA_DIR).directory_id
            ElectionFile(source, _DIRECTORY, owner).load()
        except (IdentityError, ElectionStateError):
            return False  # it names another disk, or had rotted by then
        return True

    def _as_written(self) -> MemoryFileSystem:
        """Return a copy of the disk with the files that its node wrote."""
        clean = self._fs().clone()
        for path, kept in self._kept.items():
            clean.write_bytes(path, kept.intact)
        return clean

    def _is_contradicted(self, source: MemoryFileSystem) -> bool:
        marks = load_watermarks(self._fs(), _DIRECTORY)
        try:
            epoch = ElectionFile(source, _DIRECTORY).load().epoch
        except ElectionStateError:
            return False  # it had rotted by then
        return marks is not None and marks.durable_epoch > epoch

    # ------------------------------------------------------------------ which

    def files(self) -> Iterator[tuple[Path, str]]:
        """Every file that its node wrote and reads again, with its kind (``Change.kind``)."""
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
        # Names come sorted, and those of segments have a fixed width.
        segments = [path for path, kind in self.files() if kind == "log"]
        return segments[-1] if segments else None

    def _may_touch(self, path: Path, kind: str) -> bool:
        if self.is_damaged_widely:
            return False
        # Not both: only the mark tells a harmed tail from a torn one, and an older election state.
        if kind in WATERMARK_NAMES and (self._has_damaged_tail or _QUORUM_STATE in self._kept):
            return False
        return path not in self._kept

    def marked_bytes(self, path: Path) -> int:
        """How much of a segment lies below the durable mark that power loss would leave."""
        durable_offset = min(self._durable_mark(_DIRECTORY / name) for name in WATERMARK_NAMES)
        data, position = self._fs().read_bytes(path), 0
        try:
            while size := peek_size(data, position):
                if read_header(data[position : position + size]).end_offset > durable_offset:
                    break
                position += size
        except CorruptBatchError:
            pass  # a torn tail, or corruption of an earlier day
        return position

    def _durable_mark(self, path: Path) -> int:
        """The durable end that one of the two files alone would say after power loss."""
        if not self._fs().exists(path):
            return 0
        left = MemoryFileSystem()
        left.make_directory(_DIRECTORY)
        left.write_bytes(path, self._fs().durable_bytes(path))
        marks = load_watermarks(left, _DIRECTORY)
        return 0 if marks is None else marks.durable_offset

    # ------------------------------------------------------------------ any content, or none

    def put(self, path: Path, kind: str, content: bytes | None) -> Change:
        """Let a file have other content, or be gone; for a node that is down.

        What any file may hold of what was acknowledged counts as lost, side files included.
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
        """A process is about to open the directory, and will read all of it."""
        self._has_damaged_tail = self.is_latent = False
        self._flipped.clear()
        self._unreported.opening(self._fs())
        # A node writes its side files anew, so one that it has written since is another file; its
        # marks it writes in place.
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
        """A node has started; ``reported`` are the names of the files that it says it has repaired.

        ``is_log_whole``: none of its segments was set aside or replaced, and their files with them.

        Raises:
            Violation: It made a damaged side file anew without a word.
        """
        self.is_damaged_widely = False
        self._unreported.opened(self._fs(), reported, is_log_whole=is_log_whole)

    def is_flipped(self, path: Path) -> bool:
        """Whether this very file, whatever its name was, has rotted below the present process."""
        return any(self._fs().is_same_file(path, each) for each in self._flipped)

    @property
    def is_anything_flipped(self) -> bool:
        """Whether a segment or checkpoint has rotted below the present process, and is there."""
        if not self._flipped:
            return False
        return any(
            kind in ("log", "checkpoint") and self.is_flipped(path) for path, kind in self.files()
        )

    @property
    def is_touched(self) -> bool:
        """Whether anything was harmed since a node last started from the directory."""
        return bool(
            self._unreported.is_pending or self._kept or self._flipped or self._has_damaged_tail
        )

    @property
    def may_refuse(self) -> bool:
        """Whether a file is wrong that nothing else can stand in for."""
        return bool(self._kept)

    @property
    def are_intact(self) -> bool:
        """Whether nothing lies there that a start would stumble over."""
        return not self._kept and not self.is_latent

    def accepted(self, identity: MetaProperties, election: ElectionState) -> None:
        """A node has started although files are wrong: it must have read the right values.

        One bit of a comment or of a line's end says nothing; any other one does.

        Raises:
            Violation: It believed a file that is not its own.
        """
        clean = self._as_written()
        expected = ElectionFile(clean, _DIRECTORY).load()
        # A vote floor is stored by the start itself, for what else it has found.
        is_right = replace(election, vote_floor=None) == replace(expected, vote_floor=None)
        if not is_right or identity != load_identity(clean, DATA_DIR, node_id=self._node_id):
            raise Violation(
                "damage-detected",
                "it believed a wrong file",
                node=self._node_id,
                files=list(self._kept),
            )
        self._kept.clear()

    def put_back(self) -> None:
        """An operator puts refused files back as they were.

        Raises:
            Violation: A wrong file was changed by the node that refused it.
        """
        for path, kept in self._kept.items():
            if not self._lies_there(path, kept):
                raise Violation(
                    "damage-kept", "a refused file was changed", node=self._node_id, file=path
                )
            self._fs().write_bytes(path, kept.intact)
        self._kept.clear()
