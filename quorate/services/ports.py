"""What the client services need from the node they run on, as one protocol.

The composition root implements it over the driver, the controller and the stores. Everything
here is called on the event loop; nothing blocks except where it is ``async``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from quorate.controller.requests import OnAnswer, RequestContext
from quorum.core.contract.local_events import AddVoter, RemoveVoter, UpdateVoter
from quorum.core.leadership.epoch_catch_up import AheadView
from quorum.core.state.pending_change import PendingChangeView
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView
from quorum.errors import ErrorCode
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
from statemachine.commands import Command, FeatureRange
from statemachine.image import MetadataImage

Cancel = Callable[[], None]
"""Takes a subscription or a wait back. Calling it twice, or too late, does nothing."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader that this node knows, and the address where clients reach it."""

    leader_id: NodeId
    epoch: Epoch
    address: str = ""


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """The quorum as one node sees it: the core's views as they are, and what the node adds."""

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
    """The replica whose log differs from ours, or why ours is wrong; empty if none is known."""
    check_quorum_ms: int = 0
    """Check-quorum timeout of this node as leader, in ms; 0 when not known."""
    replay_stopped: str = ""
    """Why this node applies no further committed record; empty while it does."""
    replicas_ahead: tuple[AheadView, ...] = ()
    """Observers that cannot follow this leader, being in a later epoch; elsewhere none."""
    wall_shift_ms: int = 0
    """Added to times of the core, which are monotonic, it gives milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an operator's request to the quorum ended: ``NONE``, or why it was not done."""

    code: ErrorCode
    message: str
    offset: int = -1
    """Of the record that was written for it; with an error its outcome is unknown."""


VoterChange: TypeAlias = AddVoter | RemoveVoter | UpdateVoter
"""A requested change of the voter set. The node that carries it out draws the token."""


class ServedNode(Protocol):
    """One running replica, as its clients may use it."""

    @property
    def node_id(self) -> NodeId:
        """This node."""

    @property
    def cluster_id(self) -> str:
        """The cluster it belongs to."""

    @property
    def image(self) -> MetadataImage:
        """The committed and applied state. Immutable; replaced, never changed."""

    @property
    def supported_features(self) -> tuple[FeatureRange, ...]:
        """What this release can run with, by name."""

    @property
    def leadership(self) -> Leadership:
        """The leader of the current epoch, ``NO_NODE`` when unknown."""

    @property
    def is_leader(self) -> bool:
        """Whether this node leads its epoch."""

    @property
    def can_write(self) -> bool:
        """Whether it leads and takes commands."""

    @property
    def log_start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""

    @property
    def log_end(self) -> OffsetAndEpoch:
        """Next offset to be given out (exclusive end) and the epoch of the last record."""

    @property
    def high_watermark(self) -> int:
        """Everything below is committed; -1 when not known yet."""

    @property
    def leader_epoch_start(self) -> int:
        """Where the current leader's epoch begins in this log; the log end when it has not.

        Where the beginning was trimmed away, an offset of that epoch below the log start.
        """

    def submit(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        """Give a command to the controller; ``on_answer`` is called once, on the loop."""

    def evaluate_submitted(self) -> None:
        """Evaluate what has been submitted now, not at the next turn of the loop.

        For a caller that has just submitted all commands of one message. Does nothing if no
        command waits.
        """

    def confirm_read(self, on_outcome: Callable[[int | None], None]) -> None:
        """Find a linearizable read position, of this leader or by asking the leader.

        The outcome is an offset (exclusive) that the image must have reached; None when no
        position was confirmed.
        """

    def wait_applied(self, offset: int, on_applied: Callable[[], None]) -> Cancel:
        """Call back once the image contains everything below ``offset``; at once if it does."""

    def subscribe(self, on_published: Callable[[], None]) -> Cancel:
        """Call back whenever a newer image was published or the high watermark rose."""

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one containing ``offset`` on, below ``end_offset``.

        At least one if there is any, otherwise no more than ``max_bytes``.

        Raises:
            StorageError: The log could not be read.
        """

    def end_offset_for_epoch(self, epoch: Epoch) -> OffsetAndEpoch | None:
        """The largest epoch at or below ``epoch`` and where it ends (279.1); None if none is."""

    def latest_snapshot(self) -> SnapshotId | None:
        """The newest frozen checkpoint."""

    def describe_quorum(self) -> QuorumStatus:
        """The voters, the observers and their progress."""

    async def transfer_leadership(self, target: NodeId) -> Outcome:
        """Transfer leadership to ``target`` (``NO_NODE``: the most caught-up voter); bounded."""

    def age_ms(self) -> int:
        """``image`` holds everything acknowledged longer ago than this; -1 when not known."""

    async def change_voters(self, change: VoterChange) -> Outcome:
        """Add, remove or update a voter; bounded in time."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
