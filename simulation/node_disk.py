"""One node's disk across its incarnations: formatted, faulty, slow, replaced."""

from __future__ import annotations

from collections.abc import Callable

from quorate.formatting import FormatPlan, format_directory
from quorum.types import NodeId, SnapshotId, Uuid, Voter
from simulation.damaged_files import DATA_DIR, DamagedFiles
from simulation.memory_filesystem import Faults, MemoryFileSystem


class NodeDisk:
    """The files of a node, and the faults injected into them."""

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
        """Called for every call that a fault made fail: with ``sync``, ``write`` or ``read``."""
        self.fs = MemoryFileSystem()
        self.is_suspect = False
        """Whether an injected fault explains a failure of this incarnation."""
        self.is_wiped = False
        self.has_lost_its_vote = False
        """Whether its node may be disqualified: it replaced a disk of its key, or its log is
        forged.
        """
        self.is_from_the_past = False
        """Whether it was rolled back and no peer has detected it yet."""
        self._earlier: MemoryFileSystem | None = None
        self._copy: tuple[int, MemoryFileSystem] | None = None
        self.resumed: SnapshotId | None = None
        """The download of an earlier process run that the present one resumes."""
        self.factor = 1
        """Factor by which a pass takes longer."""
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
        fs.on_bite = self._call_failed

    def _call_failed(self, kind: str) -> None:
        if self.on_bite is not None:
            self.on_bite(kind)

    def format(self, directory_id: Uuid, voters: tuple[Voter, ...]) -> None:
        """Format an empty directory for this node."""
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
        """Replace the disk by a new one with a new identity."""
        self.fs = MemoryFileSystem()
        self.is_wiped = True
        self.has_lost_its_vote = self.is_from_the_past = False
        self.files = DamagedFiles(self._node_id, lambda: self.fs)
        self._earlier = None
        self.format(directory_id, ())
        self.note("wipe", directory_id.hex())

    def reformat(self, directory_id: Uuid, voters: tuple[Voter, ...]) -> None:
        """Replace the disk by an empty one, formatted by the same command as before.

        The node is disqualified from voting as soon as it contacts a peer
        (``quorum.core.election.bootstrapping``). The caller informs the observer with
        ``reformatted``.
        """
        self.fs = MemoryFileSystem()
        self.files = DamagedFiles(self._node_id, lambda: self.fs)
        self._earlier = None
        self.format(directory_id, voters)
        self.has_lost_its_vote = True
        self.note("reformat", directory_id.hex())

    def take_copy_of(self, other: NodeDisk) -> None:
        """Copy the present content of another disk, all of it durable."""
        self.fs = other.fs.clone()
        self.is_wiped, self.has_lost_its_vote = other.is_wiped, other.has_lost_its_vote

    def keep_earlier(self) -> MemoryFileSystem | None:
        """Remember the present disk; return the one remembered before, if any."""
        earlier, self._earlier = self._earlier, self.fs.clone()
        return earlier

    def back_up(self) -> None:
        """Keep a copy of the present disk."""
        self._copy = (self.fs.change_count, self.fs.clone())
        self.note("back up", "")

    @property
    def is_behind_with_copy(self) -> bool:
        """Return whether there is a copy and the disk has changed since."""
        return self._copy is not None and self._copy[0] != self.fs.change_count

    def roll_back(self) -> None:
        """Replace the disk by the copy. The caller informs the observer with ``reformatted``."""
        if self._copy is not None:
            self.fs = self._copy[1]
            self._copy = None
            self.files = DamagedFiles(self._node_id, lambda: self.fs)
            self.has_lost_its_vote = self.is_from_the_past = True
            self.note("roll back", "")

    # ------------------------------------------------------------------ faults of calls

    def opening(self) -> None:
        """Note that a process is about to open the directory."""
        self.is_suspect = self._at_boot is not None
        self.files.opening()
        if self._at_boot is not None:
            self.fs.faults, self._at_boot = self._at_boot, None

    def fault(self, faults: Faults) -> bool:
        """Plan faults for soon; return False if some are planned already."""
        if self.fs.is_watched:
            return False
        self.fs.faults = faults
        self.is_suspect = True
        self.note("fault", str(faults))
        return True

    def fault_at_boot(self, faults: Faults) -> None:
        """As ``fault``, starting when the directory is opened."""
        self._at_boot = faults
        self.note("fault", f"at boot: {faults}")

    def hang(self, now_us: int, for_us: int) -> None:
        """Complete no pass for ``for_us``."""
        self.hung_until_us = now_us + for_us
        self.note("hang", f"{for_us}us")

    def slow_down(self, factor: int) -> None:
        """Let a pass take ``factor`` times as long as planned from now on."""
        self.factor = factor
        self.note("slow", f"disk {factor}x")

    def heal(self) -> None:
        """Plan no more faults; the report of an earlier one may still be pending."""
        self.fs.faults = Faults()
        self._at_boot = None
        self.factor = 1
        self.hung_until_us = 0
