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

from quorate.sim.invariants.violation import Violation
from quorate.sim.memory_filesystem import MemoryFileSystem
from quorum.batch import peek_size, read_header
from quorum.errors import CorruptBatchError, ElectionStateError
from quorum.log.election_store import ElectionFile
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.identity import MetaProperties, load_identity
from quorum.log.layout import (
    CONDEMNED_NAME,
    LOG_START_NAME,
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAME,
    partition_directory,
)
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, ElectionState, NodeId
from snapshot.naming import file_name

DATA_DIR = Path("/data")
BOOTSTRAP_NAME = file_name(BOOTSTRAP_SNAPSHOT_ID)
_DIRECTORY = partition_directory(DATA_DIR)
_QUORUM_STATE = _DIRECTORY / QUORUM_STATE_NAME
_META_PROPERTIES = DATA_DIR / META_PROPERTIES_NAME
_WORKING = ("log", "checkpoint", "part", "digest", "index")
"""Kinds of file that are told by their suffix; all others have one name."""
_LOSING = ("log", "checkpoint", "part", LOG_START_NAME, CONDEMNED_NAME)
"""Kinds of file whose rot may take records that were acknowledged. A checkpoint takes the place of
the log's start; where that one has rotted as well, the log is set aside as a whole. A download is
verified as it comes: a bit that flips behind that is found when the log has been replaced by it."""
_LOSING_FOREIGN = (*_LOSING, "digest", WATERMARK_NAME)
"""With a sound checksum these contradict the log, and nobody can say which of them is wrong."""
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
    sound: bytes
    harmed: bytes


@lru_cache(maxsize=_PLACES_MAX)
def _place(name: str) -> Path:
    return _DIRECTORY / name


def _some_kind(rng: random.Random, found: Collection[str], losing: Collection[str]) -> str:
    """One of the kinds found; more often one that is not like the others, with records in it."""
    kinds = sorted(found)
    grave = [kind for kind in kinds if kind in losing]
    return rng.choice(grave if grave and rng.random() < _GRAVE_SHARE else kinds)


class HarmedFiles:
    """What lies on one disk and is not what its node wrote."""

    def __init__(self, node_id: NodeId, fs: Callable[[], MemoryFileSystem]) -> None:
        self._node_id = node_id
        self._fs = fs
        self._kept: dict[Path, _Kept] = {}
        self._has_harmed_tail = False
        """Whether the newest segment was harmed since the directory was last opened."""
        self.keeps_mark = False
        """Whether the file that says how far the log is durable is as the process left it."""
        self.is_latent = False
        """Whether a running node's records were harmed; nobody looks before the next start."""
        self._flipped: list[object] = []
        """Files a bit of which has flipped since the directory was last opened."""

    # ------------------------------------------------------------------ one bit

    def rot(self, rng: random.Random, *, may_lose: bool, is_running: bool) -> Change | None:
        """Flip one bit of one file, of any kind; None where there is nothing to flip.

        Above the durable mark, rot in the newest segment looks like a torn tail, to anybody. A
        power failure leaves the mark as it was last synced: then only what lies below it rots. Of
        a running node that may happen at any time, and any segment may become the newest.
        """
        by_kind: dict[str, list[tuple[Path, int]]] = {}
        newest = self._newest()
        for path, kind in self._files():
            if (kind in _LOSING and not may_lose) or not self._may_touch(path, kind):
                continue
            is_below_mark = kind == "log" and (
                is_running or (path == newest and not self.keeps_mark)
            )
            size = self._marked_bytes(path) if is_below_mark else len(self._fs().read_bytes(path))
            if size:
                by_kind.setdefault(kind, []).append((path, size))
        if not by_kind:
            return None
        kind = _some_kind(rng, by_kind, _LOSING)
        path, size = rng.choice(by_kind[kind])
        sound = self._fs().read_bytes(path)
        self._fs().flip_bit(path, rng.randrange(size), rng.randrange(8))
        self._flipped.append(self._fs().identity(path))
        loses = kind in _LOSING
        return self._changed(path, kind, sound, loses=loses, is_latent=loses and is_running)

    # ------------------------------------------------------------------ another file

    def swap(
        self, rng: random.Random, source: MemoryFileSystem, *, may_lose: bool, is_own: bool
    ) -> Change | None:
        """Put a file of ``source`` in place of the one of the same name, if they differ.

        ``is_own``: it is this disk as it was earlier. Of its election state only what its log
        contradicts is put back: the rest is a vote forgotten, which no single disk can tell.
        """
        fs = self._fs()
        by_kind: dict[str, list[Path]] = {}
        for path, kind in self._files():
            is_spared = (kind in _LOSING_FOREIGN and not may_lose) or not source.exists(path)
            # A checkpoint's name stands for its content, bit by bit.
            if is_spared or kind == "checkpoint" or not self._may_touch(path, kind):
                continue
            if kind == "log" and path == self._newest() and not self.keeps_mark:
                continue
            if kind == QUORUM_STATE_NAME and is_own and not self._is_contradicted(source):
                continue
            if source.read_bytes(path) != fs.read_bytes(path):
                by_kind.setdefault(kind, []).append(path)
        if not by_kind:
            return None
        kind = _some_kind(rng, by_kind, _LOSING_FOREIGN)
        path = rng.choice(by_kind[kind])
        sound = fs.read_bytes(path)
        fs.write_bytes(path, source.read_bytes(path))
        if kind == WATERMARK_NAME:
            # One of a later epoch than the election state contradicts that.
            self._kept[path] = _Kept(fs.identity(path), sound, fs.read_bytes(path))
        return self._changed(path, kind, sound, loses=kind in _LOSING_FOREIGN)

    def _is_contradicted(self, source: MemoryFileSystem) -> bool:
        marks = load_watermarks(self._fs(), _DIRECTORY)
        try:
            epoch = ElectionFile(source, _DIRECTORY).load().epoch
        except ElectionStateError:
            return False  # it had rotted by then
        return marks is not None and marks.durable_epoch > epoch

    # ------------------------------------------------------------------ which

    def _files(self) -> Iterator[tuple[Path, str]]:
        names = self._fs().list_directory(_DIRECTORY)
        for name in names:
            suffix = name.rpartition(".")[2]
            is_working = suffix in _WORKING or "." not in name or name in _REFUSING
            if is_working and name != BOOTSTRAP_NAME:
                yield _place(name), suffix if suffix in _WORKING else name
        yield _META_PROPERTIES, META_PROPERTIES_NAME

    def _newest(self) -> Path | None:
        # Names come sorted, and those of segments have a fixed width.
        segments = [path for path, kind in self._files() if kind == "log"]
        return segments[-1] if segments else None

    def _may_touch(self, path: Path, kind: str) -> bool:
        # Not both: only the mark tells a harmed tail from a torn one, and an older election state.
        if kind == WATERMARK_NAME and (self._has_harmed_tail or _QUORUM_STATE in self._kept):
            return False
        return path not in self._kept

    def _marked_bytes(self, path: Path) -> int:
        """How much of a segment lies below the durable mark that power loss would leave."""
        mark = _DIRECTORY / WATERMARK_NAME
        if not self._fs().exists(mark):
            return 0
        left = MemoryFileSystem()
        left.make_directory(_DIRECTORY)
        left.write_bytes(mark, self._fs().durable_bytes(mark))
        marks = load_watermarks(left, _DIRECTORY)
        durable_offset = 0 if marks is None else marks.durable_offset
        data, position = self._fs().read_bytes(path), 0
        try:
            while size := peek_size(data, position):
                if read_header(data[position : position + size]).end_offset > durable_offset:
                    break
                position += size
        except CorruptBatchError:
            pass  # a torn tail, or rot of an earlier day
        return position

    def _changed(
        self, path: Path, kind: str, sound: bytes, *, loses: bool, is_latent: bool = False
    ) -> Change:
        self._has_harmed_tail = self._has_harmed_tail or path == self._newest()
        self.is_latent = self.is_latent or is_latent
        if kind == WATERMARK_NAME:
            self.keeps_mark = False
        if kind in _REFUSING:
            self._kept[path] = _Kept(self._fs().identity(path), sound, self._fs().read_bytes(path))
        return Change(path, kind, loses)

    # ------------------------------------------------------------------ what a node makes of it

    def opening(self) -> None:
        """A process is about to open the directory, and will read all of it."""
        self._has_harmed_tail = self.is_latent = False
        self._flipped.clear()
        # A node writes its side files anew, so one that it has written since is another file; its
        # marks it writes in place.
        self._kept = {
            path: kept
            for path, kept in self._kept.items()
            if self._fs().is_same_file(path, kept.file)
            and (path.name != WATERMARK_NAME or self._fs().read_bytes(path) == kept.harmed)
        }

    def is_flipped(self, path: Path) -> bool:
        """Whether this very file, whatever its name was, has rotted below the present process."""
        return any(self._fs().is_same_file(path, each) for each in self._flipped)

    @property
    def is_anything_flipped(self) -> bool:
        """Whether a segment or checkpoint has rotted below the present process, and is there."""
        if not self._flipped:
            return False
        return any(
            kind in ("log", "checkpoint") and self.is_flipped(path) for path, kind in self._files()
        )

    @property
    def may_refuse(self) -> bool:
        """Whether a file is wrong that nothing else can stand in for."""
        return bool(self._kept)

    @property
    def are_sound(self) -> bool:
        """Whether nothing lies there that a start would stumble over."""
        return not self._kept and not self.is_latent

    def accepted(self, identity: MetaProperties, election: ElectionState) -> None:
        """A node has started although files are wrong: it must have read the right values.

        One bit of a comment or of a line's end says nothing; any other one does.

        Raises:
            Violation: It believed a file that is not its own.
        """
        clean = self._fs().clone()
        for path, kept in self._kept.items():
            clean.write_bytes(path, kept.sound)
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
            if self._fs().read_bytes(path) != kept.harmed:
                raise Violation(
                    "damage-kept", "a refused file was changed", node=self._node_id, file=path
                )
            self._fs().write_bytes(path, kept.sound)
        self._kept.clear()
