"""What the client services need from the node they run on, as one protocol.

The composition root implements it over the driver, the controller and the stores. Everything
here is called on the event loop; nothing blocks except where it is ``async``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from quorate.controller.requests import OnAnswer, RequestContext
from quorum.types import Endpoint, Epoch, NodeId, OffsetAndEpoch, SnapshotId, Uuid
from statemachine.commands import Command, FeatureRange
from statemachine.image import MetadataImage

Cancel = Callable[[], None]
"""Takes a subscription or a wait back. Calling it twice, or too late, does nothing."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """Who leads, as far as this node knows, and where clients reach that node."""

    leader_id: NodeId
    epoch: Epoch
    address: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """What the leader knows of one replica; -1 for what it (or a follower) does not know."""

    id: NodeId
    directory_id: Uuid
    log_end_offset: int = -1
    last_fetch_timestamp_ms: int = -1
    last_caught_up_timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """The quorum as one node sees it. Replicas ascend by id."""

    voters: tuple[ReplicaStatus, ...]
    observers: tuple[ReplicaStatus, ...]
    endpoints: tuple[tuple[NodeId, tuple[Endpoint, ...]], ...]


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
        """Where the current leader's epoch begins in this log; the log end when it has not."""

    def submit(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        """Give a command to the controller; ``on_answer`` is called once, on the loop."""

    def confirm_read(self, on_outcome: Callable[[int | None], None]) -> None:
        """Begin a leadership confirmation. The outcome is the read offset, None when lost."""

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

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
