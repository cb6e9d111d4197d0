"""What a model has and how far it goes: every bound by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorum.types import NodeId, SnapshotId
from simulation.harness.core_disk import Disk, Log

LATE_ALL = 99
"""More than any model has under way: every late request is kept."""


@dataclass(frozen=True, slots=True)
class Model:
    """A small cluster and its bounds. Within them everything that can happen is tried."""

    name: str
    goal: str
    disks: Callable[[], Mapping[NodeId, Disk]]
    """What the nodes find when they start."""
    epochs: int
    """Nobody raises its epoch beyond this."""
    records: int = 0
    """Proposals of clients, over the whole run."""
    crashes: int = 0
    """Crashes of each node."""
    removals: int = 0
    """Removals of a voter that are asked for, over the whole run."""
    removable: tuple[NodeId, ...] = ()
    late: int = 0
    """Requests under way at the same time whose sender no longer waits for the answer, because it
    has crashed or left its role. Of more than that those are kept that the exploration met first,
    on whatever way, and not those that were made first on this one."""
    stale: int = 0
    """Late requests of epochs that their receivers have left behind and that stay under way all the
    same, to be refused by every later state of the receiver; of more than that those are kept that
    the exploration met first. The others are refused once. They include BeginQuorumEpoch
    that waits for no answer and, where refusals are lost, what is refused while its sender waits,
    as it will be under way once that is over."""
    in_full: bool = False
    """Whether answers and disks take their time in every order; otherwise an answer comes at once
    or never, and a write is done at once or lost in a crash (``space``)."""
    has_pre_votes: bool = False
    """Whether pre-votes are messages; otherwise every node that asks for them wins them."""
    has_end_epochs: bool = False
    """Whether EndQuorumEpoch is delivered; otherwise every one is lost."""
    has_refusals: bool = False
    """Whether refusals and answers to BeginQuorumEpoch are delivered; otherwise all are lost."""
    tells_commits: bool = False
    """Whether a leader answers a held Fetch only to tell what is committed; otherwise that rides
    with the next records."""
    resigns: bool = False
    """Whether a leader may find at any moment that no majority fetches from it."""
    alike: tuple[tuple[NodeId, ...], ...] = ()
    """Groups of nodes that start alike: of those that did nothing yet only the first of a group
    need be the next to do something."""
    status: tuple[NodeId, ...] = ()
    """Whose timers fire; empty: everybody's."""
    leadership_terms: tuple[NodeId, ...] = ()
    """Who alone stands for the epochs after that of the disks, in order; empty: anybody."""
    known_watermark: int = 0
    checkpoints: dict[SnapshotId, Log] = field(default_factory=dict)
    """What the checkpoints that are on some disk at the start contain."""

    def may_campaign(self, node_id: NodeId, epoch: int) -> bool:
        """Whether a node may ask to be elected to ``epoch``."""
        if epoch > self.epochs or (self.status and node_id not in self.status):
            return False
        first = self.epochs - len(self.leadership_terms) + 1
        return (
            epoch < first
            or not self.leadership_terms
            or self.leadership_terms[epoch - first] == node_id
        )

    def left_out(self) -> tuple[str, ...]:
        """What could happen to such a cluster and is not tried, apart from longer runs."""
        late = "late requests" + (f" (all but {self.late} at once)" if self.late else "")
        stale = "late requests once refused" + (f" (all but {self.stale})" if self.stale else "")
        said = (
            (late, self.late < LATE_ALL),
            (stale, self.late > 0 and self.stale < LATE_ALL),
            ("lost pre-votes", not self.has_pre_votes),
            ("refusals", not self.has_refusals),
            ("end_epochs", not self.has_end_epochs),
            ("resignations", not self.resigns),
            ("commits told without records", not self.tells_commits),
        )
        return tuple(what for what, is_left_out in said if is_left_out)

    def bounds(self) -> dict[str, object]:
        """The bounds, for a report."""
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
            "commits_told_at_once": self.tells_commits,
            "leaders_resign": self.resigns,
            "left_out": ", ".join(self.left_out()),
        }
