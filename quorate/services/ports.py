"""The interface that client services need from their node.

The composition root implements it over the driver, the controller and the stores. All methods are
called on the event loop; only ``async`` methods wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from quorate.controller.requests import PendingCommand
from quorum.control_records import Origin
from quorum.core.contract.local_events import AddVoter, RemoveVoter, UpdateVoter
from quorum.core.leadership.epoch_catch_up import AheadView
from quorum.core.state.pending_change import PendingChangeView
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView
from quorum.errors import ErrorCode
from quorum.incarnation import LogIncarnation
from quorum.types import (
    ZERO_UUID,
    Endpoint,
    Epoch,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Uuid,
    Voter,
)
from statemachine.commands import FeatureRange
from statemachine.image import MetadataImage

Cancel = Callable[[], None]
"""Cancels a subscription or a wait. Calling it twice, or too late, has no effect."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader that this node knows, and the address where clients reach it."""

    leader_id: NodeId
    epoch: Epoch
    address: str = ""
    sasl_address: str = ""
    """Where it is reached without a certificate; empty if nowhere, or not known."""


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """The quorum as one node sees it: the core's views, and data that the node adds."""

    voters: tuple[Voter, ...]
    replicas: tuple[ReplicaView, ...]
    """On the leader all replicas, voters first; empty elsewhere."""
    tree: TreeView
    removed: tuple[ReplicaKey, ...] = ()
    """Removed replicas; one becomes a voter again only by an explicit readmission."""
    pending_change: PendingChangeView | None = None
    own_directory_id: Uuid = ZERO_UUID
    own_endpoints: tuple[Endpoint, ...] = ()
    divergence_resolution: str = ""
    """The replica whose log differs from ours, or the damage of ours; empty if none is known."""
    check_quorum_ms: int = 0
    """Check-quorum timeout of this node as leader, in ms; 0 if not known."""
    replay_stopped: str = ""
    """Why this node applies no further committed record; empty while it does."""
    replicas_ahead: tuple[AheadView, ...] = ()
    """Observers in a later epoch, which cannot follow this leader; empty on other nodes."""
    wall_shift_ms: int = 0
    """Offset from the core's monotonic times to milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an operator's request to the quorum: ``NONE``, or why it was not done."""

    code: ErrorCode
    message: str
    offset: int = -1
    """Offset of the record written for it; with an error its outcome is unknown."""


VoterChange: TypeAlias = AddVoter | RemoveVoter | UpdateVoter
"""A requested change of the voter set. The node that executes it creates the token."""


class KnowsLeader(Protocol):
    """The part of a node that hints to the leader need."""

    @property
    def leadership(self) -> Leadership:
        """The leader of the current epoch, ``NO_NODE`` if unknown."""


class KnownLog(KnowsLeader, Protocol):
    """The part of a replica that checks of positions in its log need."""

    @property
    def is_leader(self) -> bool:
        """Return whether this node leads its epoch."""

    @property
    def log_start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""

    @property
    def log_end(self) -> OffsetAndEpoch:
        """Next offset to be assigned (exclusive end) and the epoch of the last record."""

    @property
    def high_watermark(self) -> int:
        """Everything below is committed; -1 if not known yet."""

    @property
    def log_incarnation(self) -> LogIncarnation:
        """The incarnation of this log, by the voters record in force."""

    def end_offset_for_epoch(self, epoch: Epoch) -> OffsetAndEpoch | None:
        """Return the largest epoch at or below ``epoch`` and its end (279.1), or None."""

    def latest_snapshot(self) -> SnapshotId | None:
        """Return the newest sealed checkpoint."""


class WatchedNode(KnownLog, Protocol):
    """The part of a replica that watching needs."""

    @property
    def image(self) -> MetadataImage:
        """The committed and applied state. Immutable; replaced on each change."""


@dataclass(frozen=True, slots=True)
class SnapshotMade:
    """The checkpoint that a node has now. ``size_bytes`` is 0 if it is not written."""

    snapshot_id: SnapshotId
    size_bytes: int
    is_new: bool


class CheckpointedNode(WatchedNode, Protocol):
    """A replica whose checkpoints are served as states."""

    async def checkpoint_image(self, at_least_offset: int) -> MetadataImage | None:
        """Return the state of the lowest checkpoint at or above an offset and the log start.

        None if there is none, or if it cannot be read.
        """


class ServedNode(CheckpointedNode, Protocol):
    """One running replica, as its clients use it."""

    @property
    def node_id(self) -> NodeId:
        """The id of this node."""

    @property
    def cluster_id(self) -> str:
        """The id of its cluster."""

    @property
    def supported_features(self) -> tuple[FeatureRange, ...]:
        """The feature levels that this release supports, by name."""

    @property
    def answering_leader(self) -> NodeId:
        """The leader of the current epoch if it answers this node; ``NO_NODE`` otherwise.

        For what is shown. A hint names ``leadership``, whose leader may be silent.
        """

    @property
    def can_write(self) -> bool:
        """Return whether it leads and accepts commands."""

    @property
    def leader_epoch_start(self) -> int:
        """Start offset of the current leader's epoch in this log; the log end if there is none.

        If the start was trimmed, an offset of that epoch below the log start.
        """

    def submit(self, commands: Sequence[PendingCommand]) -> None:
        """Pass commands to the controller, in this order; they are answered on the loop."""

    def evaluate_submitted(self) -> None:
        """Evaluate the submitted commands now instead of in the next turn of the loop.

        Call it after submitting all commands of one message. Has no effect without commands.
        """

    def confirm_read(self, on_outcome: Callable[[int | None], None], reads: int = 1) -> None:
        """Find a linearizable position for so many reads, as leader or by a request to the leader.

        The outcome is an exclusive offset that the image must reach; None if no position was
        confirmed.
        """

    def wait_applied(self, offset: int, on_applied: Callable[[], None]) -> Cancel:
        """Call back once the image contains everything below ``offset``, possibly at once."""

    def subscribe(self, on_published: Callable[[], None]) -> Cancel:
        """Call back whenever a newer image was published or the high watermark advanced."""

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from the one containing ``offset``, below ``end_offset``.

        Returns at most ``max_bytes``, but always the first batch if there is one.

        Raises:
            StorageError: The log could not be read.
        """

    async def log_digest(self, offset: int) -> bytes:
        """Return the digest of the log below ``offset`` (ADR 5).

        Empty if it is not known, or if ``offset`` is no boundary of batches in this log.
        """

    def describe_quorum(self) -> QuorumStatus:
        """Return the voters, the observers and their progress."""

    async def create_snapshot(self, *, dry_run: bool) -> SnapshotMade:
        """Write a checkpoint of the image as it is, unless there is one of its position.

        Raises:
            RequestRefusedError: RESOURCE_EXHAUSTED while one is being written, or the log below it
                is not on this disk yet; UNKNOWN_SERVER_ERROR if the disk has no room.
        """

    async def transfer_leadership(self, target: NodeId, origin: Origin) -> Outcome:
        """Transfer leadership to ``target`` (``NO_NODE``: the most caught-up voter); bounded.

        The new leader writes ``origin`` into the log.
        """

    def age_ms(self) -> int:
        """Age of ``image`` in ms: it holds all writes acknowledged earlier; -1 if not known."""

    async def change_voters(self, change: VoterChange) -> Outcome:
        """Add, remove or update a voter; bounded in time."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
