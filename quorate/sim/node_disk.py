"""One node's disk over all its lives: formatted, faulty, slow, rotten, replaced."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorate.formatting import FormatPlan, format_directory
from quorate.sim.invariants.violation import Violation
from quorate.sim.memory_filesystem import Faults, MemoryFileSystem
from quorum.batch import peek_size, read_header
from quorum.errors import CorruptBatchError
from quorum.log.election_store import ElectionFile
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.identity import MetaProperties, load_identity
from quorum.log.layout import (
    DAMAGED_SUFFIX,
    LOG_START_NAME,
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAME,
    partition_directory,
)
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, ElectionState, NodeId, Uuid, Voter
from snapshot.naming import file_name

DATA_DIR = Path("/data")
BOOTSTRAP_NAME = file_name(BOOTSTRAP_SNAPSHOT_ID)
_LOSING = ("log", "checkpoint", LOG_START_NAME)
"""Kinds of file whose rot may take records that were acknowledged. A checkpoint takes the place of
the log's start; where that one has rotted as well, the log is set aside as a whole."""
_REFUSING = (QUORUM_STATE_NAME, META_PROPERTIES_NAME, PARTITION_METADATA_NAME)
"""Files without which a node must not start; they cannot be made again from others."""


@dataclass(frozen=True, slots=True)
class Rot:
    """One flipped bit."""

    path: Path
    kind: str
    """The suffix of the file, or its whole name where it has none."""
    position: int
    bit: int

    @property
    def loses(self) -> bool:
        """Whether records that were acknowledged may be gone with it."""
        return self.kind in _LOSING


class NodeDisk:
    """The files, and what goes wrong with them from outside."""

    def __init__(self, cluster_id: str, node_id: NodeId, note: Callable[[str, str], None]) -> None:
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._note = note
        self.on_bite: Callable[[str], None] | None = None
        """Told of every call that a fault made fail: ``sync``, ``write`` or ``read``."""
        self.fs = MemoryFileSystem()
        self.is_suspect = False
        """Whether a failure in this life is our own doing."""
        self.is_wiped = False
        self.has_lost_its_vote = False
        """Whether its node may be barred: it replaced another disk, or its log was forged."""
        self.is_from_the_past = False
        """Whether it was rolled back and nobody has noticed yet."""
        self._copy: tuple[int, MemoryFileSystem] | None = None
        self.keeps_mark = False
        """Whether the file that says how far the log is durable is as the process left it."""
        self.factor = 1
        """How many times as long a pass takes."""
        self.hung_until_us = 0
        self._at_boot: Faults | None = None
        self._rotten: dict[Rot, bytes] = {}
        self._has_rotten_tail = False
        """Whether the newest segment has rotted since the directory was last opened."""

    @property
    def fs(self) -> MemoryFileSystem:
        """The file system on it; another one when the disk is replaced."""
        return self._fs

    @fs.setter
    def fs(self, fs: MemoryFileSystem) -> None:
        self._fs = fs
        fs.on_bite = self._bitten

    def _bitten(self, kind: str) -> None:
        if self.on_bite is not None:
            self.on_bite(kind)

    def format(self, directory_id: Uuid, voters: tuple[Voter, ...]) -> None:
        """An empty directory becomes this node's."""
        self.fs.make_directory(DATA_DIR)
        format_directory(
            self.fs, FormatPlan(DATA_DIR, self._cluster_id, self._node_id, directory_id, voters)
        )

    def wipe(self, directory_id: Uuid) -> None:
        """A new disk with a new identity, in place of this one."""
        self.fs = MemoryFileSystem()
        self.is_wiped = self.has_lost_its_vote = True
        self._rotten.clear()
        self.format(directory_id, ())
        self._note("wipe", directory_id.hex())

    def reformat(self, directory_id: Uuid, voters: tuple[Voter, ...]) -> None:
        """An empty disk, formatted by the very same command as the one before it.

        The node is barred from voting as soon as it meets anybody (``quorum.core.founding``). The
        witness has to be told by ``reformatted``.
        """
        self.fs = MemoryFileSystem()
        self._rotten.clear()
        self.format(directory_id, voters)
        self.has_lost_its_vote = True
        self._note("reformat", directory_id.hex())

    def back_up(self) -> None:
        """Keep a copy of the disk as it is."""
        self._copy = (self.fs.change_count, self.fs.clone())
        self._note("back up", "")

    @property
    def is_behind_with_copy(self) -> bool:
        """Whether there is a copy, and the disk has changed since."""
        return self._copy is not None and self._copy[0] != self.fs.change_count

    def roll_back(self) -> None:
        """Put the copy in place of the disk. The witness has to be told by ``reformatted``."""
        if self._copy is not None:
            self.fs = self._copy[1]
            self._copy = None
            self._rotten.clear()
            self.has_lost_its_vote = self.is_from_the_past = True
            self.keeps_mark = False
            self._note("roll back", "")

    # ------------------------------------------------------------------ faults of calls

    def opening(self) -> None:
        """A process is about to open the directory."""
        self.is_suspect = self._at_boot is not None
        self._has_rotten_tail = False
        if self._at_boot is not None:
            self.fs.faults, self._at_boot = self._at_boot, None

    def fault(self, faults: Faults) -> bool:
        """Let the disk do something wrong soon; False if it is about to already."""
        if self.fs.is_watched:
            return False
        self.fs.faults = faults
        self.is_suspect = True
        self._note("fault", str(faults))
        return True

    def fault_at_boot(self, faults: Faults) -> None:
        """As ``fault``, from the moment the directory is opened."""
        self._at_boot = faults
        self._note("fault", f"at boot: {faults}")

    def hang(self, now_us: int, for_us: int) -> None:
        """Complete nothing for a while."""
        self.hung_until_us = now_us + for_us
        self._note("hang", f"{for_us}us")

    def slow_down(self, factor: int) -> None:
        """From now on a pass takes so many times as long as planned."""
        self.factor = factor
        self._note("slow", f"disk {factor}x")

    def heal(self) -> None:
        """No fault from now on; the news of one that happened may still be under way."""
        self.fs.faults = Faults()
        self._at_boot = None
        self.factor = 1
        self.hung_until_us = 0

    # ------------------------------------------------------------------ rot

    def rot(self, rng: random.Random, *, may_lose: bool) -> Rot | None:
        """Flip one bit of one file, of any kind; None where there is nothing to flip.

        Above the durable mark, rot in the newest segment looks like a torn tail, to anybody. A
        power failure leaves the mark as it was last synced: then only what lies below it rots.
        """
        directory = partition_directory(DATA_DIR)
        names = self.fs.list_directory(directory)
        files = [directory / name for name in names if DAMAGED_SUFFIX not in name]
        files.append(DATA_DIR / META_PROPERTIES_NAME)
        newest = max((each for each in files if each.suffix == ".log"), default=None)
        rotten = {each.path for each in self._rotten}
        by_kind: dict[str, list[tuple[Path, int]]] = {}
        for path in files:
            kind = path.suffix.removeprefix(".") or path.name
            kind = path.name if path.name in _REFUSING else kind
            is_spared = (kind in _LOSING and not may_lose) or path in rotten
            # Not both: without the mark nothing tells that rot from a torn tail.
            is_spared = is_spared or (kind == WATERMARK_NAME and self._has_rotten_tail)
            if is_spared or path.name.startswith(BOOTSTRAP_NAME):
                continue
            is_torn = path == newest and not self.keeps_mark
            size = self._marked_bytes(path) if is_torn else len(self.fs.read_bytes(path))
            if size:
                by_kind.setdefault(kind, []).append((path, size))
        if not by_kind:
            return None
        kind = rng.choice(sorted(by_kind))
        path, size = rng.choice(by_kind[kind])
        found = Rot(path, kind, rng.randrange(size), rng.randrange(8))
        self.fs.flip_bit(path, found.position, found.bit)
        if kind in _REFUSING:
            self._rotten[found] = self.fs.read_bytes(path)
        if kind == WATERMARK_NAME:
            self.keeps_mark = False
        self._has_rotten_tail = self._has_rotten_tail or path == newest
        self._note("rot", f"{path.name} at {found.position}")
        return found

    def _marked_bytes(self, path: Path) -> int:
        """How much of a segment lies below the durable mark that is on this disk."""
        marks = load_watermarks(self.fs, path.parent)
        durable_offset = 0 if marks is None else marks.durable_offset
        data, position = self.fs.read_bytes(path), 0
        try:
            while size := peek_size(data, position):
                if read_header(data[position : position + size]).end_offset > durable_offset:
                    break
                position += size
        except CorruptBatchError:
            pass  # a torn tail, or rot of an earlier day
        return position

    @property
    def must_refuse(self) -> bool:
        """Whether a file is rotten that nothing else can stand in for."""
        return bool(self._rotten)

    def accepted(self, identity: MetaProperties, election: ElectionState) -> None:
        """A node has started although files are rotten: it must have read the right values.

        One bit of a comment or of a line's end says nothing; any other one does.

        Raises:
            Violation: It believed a damaged file.
        """
        clean = self.fs.clone()
        names = [found.path for found in self._rotten]
        for found in self._rotten:
            clean.flip_bit(found.path, found.position, found.bit)
        directory = partition_directory(DATA_DIR)
        expected = (
            load_identity(clean, DATA_DIR, node_id=self._node_id),
            ElectionFile(clean, directory).load(),
        )
        if (identity, election) != expected:
            raise Violation(
                "damage-detected", "it believed a damaged file", node=self._node_id, files=names
            )
        self._rotten.clear()

    def put_back(self) -> None:
        """An operator puts refused files back as they were.

        Raises:
            Violation: A damaged file was changed by the node that refused it.
        """
        for found, content in self._rotten.items():
            if self.fs.read_bytes(found.path) != content:
                raise Violation(
                    "damage-kept", "a damaged file was changed", node=self._node_id, file=found.path
                )
            self.fs.flip_bit(found.path, found.position, found.bit)
        self._rotten.clear()
