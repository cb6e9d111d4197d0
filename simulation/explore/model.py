"""The bounds of a model, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorum.types import NodeId, ReplicaKey, SnapshotId

if TYPE_CHECKING:
    from simulation.harness.core_disk import Disk, Log

LATE_ALL = 99
"""More late requests than any model has: all are kept."""


def key_of(node_id: NodeId) -> ReplicaKey:
    """Return the replica key of a node in a model."""
    return ReplicaKey(node_id, bytes([node_id]) * 16)


@dataclass(frozen=True, slots=True)
class Model:
    """A small cluster and its bounds. Every sequence of events within them is tried."""

    name: str
    goal: str
    disks: Callable[[], Mapping[NodeId, Disk]]
    """Initial disks of the nodes."""
    epochs: int
    """No node raises its epoch beyond this."""
    records: int = 0
    """Client proposals over the whole run."""
    crashes: int = 0
    """Crashes of each node."""
    removals: int = 0
    """Requested voter removals over the whole run."""
    removable: tuple[NodeId, ...] = ()
    late: int = 0
    """Maximum number of late requests.

    Those whose sender crashed or left its role and no longer waits.

    Beyond that, those are kept that the exploration met first on any path, not those that were made
    first on this path.
    """
    stale: int = 0
    """Maximum number of late requests of past epochs that stay under way.

    Every later state of the receiver refuses these again. Beyond that, those are kept that the
    exploration met first; the others are refused once. They include BeginQuorumEpoch without a
    waiting sender and, where refusals are lost, requests that are refused while their sender waits,
    in the form they have once it has stopped waiting.
    """
    in_full: bool = False
    """Whether answers and disk writes complete in every order.

    Otherwise an answer comes at once or never, and a write completes at once or is lost in a crash
    (``space``).
    """
    has_pre_votes: bool = False
    """Whether pre-votes are messages; otherwise every node that asks for them wins them."""
    has_end_epochs: bool = False
    """Whether EndQuorumEpoch is delivered; otherwise it is always lost."""
    has_refusals: bool = False
    """Whether refusals and answers to BeginQuorumEpoch are delivered; otherwise all are lost."""
    announces_commits: bool = False
    """Whether a leader answers a held Fetch with a new high watermark alone.

    Otherwise the high watermark comes with the next records.
    """
    resigns: bool = False
    """Whether a leader may find at any moment that no majority fetches from it."""
    alike: tuple[tuple[NodeId, ...], ...] = ()
    """Groups of nodes with the same initial state.

    Of the nodes of a group that have done nothing yet, only the first needs to act next.
    """
    status: tuple[NodeId, ...] = ()
    """Nodes whose timers expire; empty: all."""
    leadership_terms: tuple[NodeId, ...] = ()
    """The only nodes that campaign in the epochs after the disks', in order; empty: any."""
    known_watermark: int = 0
    checkpoints: dict[SnapshotId, Log] = field(default_factory=dict)
    """Contents of the checkpoints that exist at the start."""

    def may_campaign(self, node_id: NodeId, epoch: int) -> bool:
        """Return whether a node may campaign for ``epoch``."""
        if epoch > self.epochs or (self.status and node_id not in self.status):
            return False
        first = self.epochs - len(self.leadership_terms) + 1
        return (
            epoch < first
            or not self.leadership_terms
            or self.leadership_terms[epoch - first] == node_id
        )

    def left_out(self) -> tuple[str, ...]:
        """Return the events that the model excludes, apart from longer runs."""
        late = "late requests" + (f" (all but {self.late} at once)" if self.late else "")
        stale = "late requests once refused" + (f" (all but {self.stale})" if self.stale else "")
        said = (
            (late, self.late < LATE_ALL),
            (stale, self.late > 0 and self.stale < LATE_ALL),
            ("lost pre-votes", not self.has_pre_votes),
            ("refusals", not self.has_refusals),
            ("end_epochs", not self.has_end_epochs),
            ("resignations", not self.resigns),
            ("commits announced without records", not self.announces_commits),
        )
        return tuple(what for what, is_left_out in said if is_left_out)

    def bounds(self) -> dict[str, object]:
        """Return the bounds for a report."""
        return {
            "nodes": len(self.disks()),
            "epochs": self.epochs,
            "records": self.records,
            "crashes_of_each_node": self.crashes,
            "removals": self.removals,
            "status": "all" if not self.status else ", ".join(map(str, self.status)),
            "stand_for_one_epoch_each": ", ".join(map(str, self.leadership_terms)),
            "late_requests_at_once": self.late,
            "late_requests_refused_again": self.stale,
            "every_order_of_answers_and_disks": self.in_full,
            "pre_votes": self.has_pre_votes,
            "end_epochs": self.has_end_epochs,
            "refusals": self.has_refusals,
            "commits_told_at_once": self.announces_commits,
            "leaders_resign": self.resigns,
            "left_out": ", ".join(self.left_out()),
        }
