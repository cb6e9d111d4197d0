"""One node's disk over all its lives: formatted, faulty, slow, replaced."""

from __future__ import annotations

from collections.abc import Callable

from quorate.formatting import FormatPlan, format_directory
from quorum.types import NodeId, SnapshotId, Uuid, Voter
from simulation.damaged_files import DATA_DIR, DamagedFiles
from simulation.memory_filesystem import Faults, MemoryFileSystem


class NodeDisk:
    """The files, and what goes wrong with them from outside."""

    def __init__(
        self,
        cluster_id: str,
        node_id: NodeId,
        note: Callable[[str, str], None],
        *,
        uses_native_codec: bool = True,
    ) -> None:
        self._cluster_id = cluster_id
        self._uses_native_codec = uses_native_codec
        self._node_id = node_id
        self.note = note
        self.on_bite: Callable[[str], None] | None = None
        """Told of every call that a fault made fail: ``sync``, ``write`` or ``read``."""
        self.fs = MemoryFileSystem()
        self.is_suspect = False
        """Whether a failure in this life is our own doing."""
        self.is_wiped = False
        self.has_lost_its_vote = False
        """Whether its node may be disqualified: it replaced a disk of its key, or its log is
        forged.
        """
        self.is_from_the_past = False
        """Whether it was rolled back and nobody has noticed yet."""
        self._earlier: MemoryFileSystem | None = None
        self._copy: tuple[int, MemoryFileSystem] | None = None
        self.resumed: SnapshotId | None = None
        """The download of an earlier process run that goes on in the present one."""
        self.factor = 1
        """How many times as long a pass takes."""
        self.hung_until_us = 0
        self._at_boot: Faults | None = None
        self.files = DamagedFiles(node_id, lambda: self.fs)

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
        plan = FormatPlan(
            DATA_DIR,
            self._cluster_id,
            self._node_id,
            directory_id,
            voters,
            uses_native_codec=self._uses_native_codec,
        )
        format_directory(self.fs, plan)

    def wipe(self, directory_id: Uuid) -> None:
        """A new disk with a new identity, in place of this one."""
        self.fs = MemoryFileSystem()
        self.is_wiped = True
        self.has_lost_its_vote = self.is_from_the_past = False
        self.files = DamagedFiles(self._node_id, lambda: self.fs)
        self._earlier = None
        self.format(directory_id, ())
        self.note("wipe", directory_id.hex())

    def reformat(self, directory_id: Uuid, voters: tuple[Voter, ...]) -> None:
        """An empty disk, formatted by the very same command as the one before it.

        The node is disqualified from voting as soon as it meets anybody
        (``quorum.core.election.bootstrapping``). The
        witness has to be told by ``reformatted``.
        """
        self.fs = MemoryFileSystem()
        self.files = DamagedFiles(self._node_id, lambda: self.fs)
        self._earlier = None
        self.format(directory_id, voters)
        self.has_lost_its_vote = True
        self.note("reformat", directory_id.hex())

    def take_copy_of(self, other: NodeDisk) -> None:
        """Hold what another disk holds now, all of it durable."""
        self.fs = other.fs.clone()
        self.is_wiped, self.has_lost_its_vote = other.is_wiped, other.has_lost_its_vote

    def keep_earlier(self) -> MemoryFileSystem | None:
        """Remember the disk as it is now; as it was when this was called before, if it was."""
        earlier, self._earlier = self._earlier, self.fs.clone()
        return earlier

    def back_up(self) -> None:
        """Keep a copy of the disk as it is."""
        self._copy = (self.fs.change_count, self.fs.clone())
        self.note("back up", "")

    @property
    def is_behind_with_copy(self) -> bool:
        """Whether there is a copy, and the disk has changed since."""
        return self._copy is not None and self._copy[0] != self.fs.change_count

    def roll_back(self) -> None:
        """Put the copy in place of the disk. The witness has to be told by ``reformatted``."""
        if self._copy is not None:
            self.fs = self._copy[1]
            self._copy = None
            self.files = DamagedFiles(self._node_id, lambda: self.fs)
            self.has_lost_its_vote = self.is_from_the_past = True
            self.note("roll back", "")

    # ------------------------------------------------------------------ faults of calls

    def opening(self) -> None:
        """A process is about to open the directory."""
        self.is_suspect = self._at_boot is not None
        self.files.opening()
        if self._at_boot is not None:
            self.fs.faults, self._at_boot = self._at_boot, None

    def fault(self, faults: Faults) -> bool:
        """Let the disk do something wrong soon; False if it is about to already."""
        if self.fs.is_watched:
            return False
        self.fs.faults = faults
        self.is_suspect = True
        self.note("fault", str(faults))
        return True

    def fault_at_boot(self, faults: Faults) -> None:
        """As ``fault``, from the moment the directory is opened."""
        self._at_boot = faults
        self.note("fault", f"at boot: {faults}")

    def hang(self, now_us: int, for_us: int) -> None:
        """Complete nothing for a while."""
        self.hung_until_us = now_us + for_us
        self.note("hang", f"{for_us}us")

    def slow_down(self, factor: int) -> None:
        """From now on a pass takes so many times as long as planned."""
        self.factor = factor
        self.note("slow", f"disk {factor}x")

    def heal(self) -> None:
        """No fault from now on; the news of one that happened may still be under way."""
        self.fs.faults = Faults()
        self._at_boot = None
        self.factor = 1
        self.hung_until_us = 0
