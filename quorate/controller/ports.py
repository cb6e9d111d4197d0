"""What the controller needs below it: the log of one replica, as its leader sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from quorum.batch import BatchHeader
from quorum.core.voters.voter_set import VoterSet
from quorum.types import NodeId, VersionRange


class LogState(Protocol):
    """The present state of the replica (``quorum.core.node.raft_node.RaftNode``)."""

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads its epoch, durably."""

    @property
    def can_write(self) -> bool:
        """Whether it leads and has committed a record of its own epoch."""

    @property
    def epoch(self) -> int:
        """The current epoch."""

    @property
    def log_end_offset(self) -> int:
        """Next offset to be given out."""

    @property
    def flushed_end_offset(self) -> int:
        """Everything below is durable on this replica's own disk."""

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""

    def voter_set_at(self, end_offset: int) -> VoterSet:
        """Return the voter set that a log ending at ``end_offset`` (exclusive) puts in force."""


class StampFloor(Protocol):
    """How control batches were stamped (``quorum.runtime.control_batches.ControlBatches``)."""

    newest_stamp_ms: int
    """Milliseconds since 1970; what is proposed must not be stamped earlier.

    It covers what the image cannot: batches of the quorum itself that are not committed yet.
    """


class LogDriver(Protocol):
    """The replicated log. All calls come from the thread that drives the replica.

    Offsets are exclusive ends. The calls back go to the ``Listener`` side of the controller,
    possibly before ``propose``, ``read`` or ``ask_position`` return.
    """

    @property
    def node(self) -> LogState:
        """The present state of the replica."""

    @property
    def controls(self) -> StampFloor:
        """The stamps of the quorum's own batches."""

    def voter_versions(self) -> Mapping[NodeId, Sequence[VersionRange] | None]:
        """The supported versions of each voter; None for a voter without a recent report.

        Empty unless this replica leads.
        """

    def propose(self, batches: Sequence[bytes], headers: Sequence[BatchHeader]) -> int:
        """Append whole batches as one write.

        They were encoded for the offsets from the log's end on, in this epoch. ``headers`` are
        theirs, with positions in all of them together.

        Returns:
            The end offset of the last batch.
        """

    def read(self, token: int) -> None:
        """Confirm that this replica leads, by a round trip that begins now (ADR 9)."""

    def ask_position(self, token: int) -> None:
        """Find a linearizable read position, on another replica than the leader by asking it."""

    def resign(self) -> None:
        """Give up leadership."""
