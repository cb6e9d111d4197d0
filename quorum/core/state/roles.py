"""The six roles, each a class that holds only what that role needs.

A follower has no vote tally because there is no field for it. What survives a change of role
(epoch, vote, log, high watermark, download) lives in ``CoreState``; which change is legal is
``role_transitions``' table; what a role does is in the conversation modules.

Observers are ``Unattached`` or ``Follower`` and never campaign.

See: KIP-595, KIP-853, KIP-996 (Prospective).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from quorum.control_records import Origin
from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.core.state.held_fetches import NEVER_MS, HeldFetches
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import PendingChange
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_progress import Ahead, ReplicaProgress
from quorum.types import NodeId, ReplicaKey, VersionRange


@dataclass(slots=True)
class Unattached:
    """Knows no leader. May have voted in this epoch; searches for a leader by Fetch."""

    election_deadline_ms: int
    discover_at_ms: int = 0
    """When the search for the leader begins; 0 for at once, and once it has begun."""


@dataclass(slots=True, eq=False, kw_only=True)
class Ballot(PeerRequest):
    """The request for one voter's vote or pre-vote in one election round, and its answer."""

    purpose: Purpose = Purpose.VOTE
    voter: ReplicaKey
    granted: bool | None = None
    """The answer; None before there is one."""


@dataclass(slots=True)
class Prospective:
    """Asks the voters whether they would elect it, without raising its epoch."""

    election_deadline_ms: int
    ballots: dict[NodeId, Ballot]
    fail_fast: bool
    """The leader's process is gone: rejected rounds are asked again soon (ADR 8)."""
    retry_ms: int = NEVER_MS
    yield_until_ms: int = 0
    """Until then another campaigning voter goes first, although this one may have won its
    pre-votes; 0 before it has yielded. Once per round (ADR 37)."""


@dataclass(slots=True)
class Candidate:
    """Has raised its epoch, voted for itself, and asks for votes."""

    election_deadline_ms: int
    ballots: dict[NodeId, Ballot]
    fail_fast: bool
    retry_ms: int = NEVER_MS
    origin: Origin | None = None
    """Of the transfer that this campaign is part of; None for any other campaign."""


@dataclass(slots=True)
class Transfer:
    """A transfer of leadership to another voter; the leader takes no writes meanwhile."""

    target: ReplicaKey
    token: int
    deadline_ms: int
    request: PeerRequest
    """The EndQuorumEpoch that asks the target to campaign; open until the transfer ends."""
    origin: Origin | None = None
    """Who asked for it, and why."""


@dataclass(slots=True)
class Leader:
    """Won its epoch. Leads only once ``established``: when that is on its own disk (ADR 7).

    Invariants:
        1. Before ``established`` nothing of the leadership is visible to anybody.
        2. ``can_write`` implies that a record of this epoch is committed.
        3. ``remote`` holds every other voter of the set in force, ascending by id.
    """

    epoch_start: int
    granting: tuple[NodeId, ...]
    since_ms: int
    reads: ReadRounds
    origin: Origin | None = None
    """Of the transfer by which it came to lead, for the leader change record."""
    durable_with: int = 0
    """Ticket of the election state that names this node leader."""
    established: bool = False
    can_write: bool = False
    counts_itself: bool = True
    others_needed: int = 0
    """Voters besides this leader that make a majority of the set in force with it."""
    remote: dict[NodeId, ReplicaProgress] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    held: HeldFetches = field(default_factory=HeldFetches)
    check_quorum_deadline_ms: int = NEVER_MS
    contacted: set[NodeId] = field(default_factory=set)
    """Voters that fetched since the check-quorum timer was last reset. Only tested with ``in``."""
    upkeep_due_ms: int = NEVER_MS
    uncommitted: deque[tuple[int, int]] = field(default_factory=deque)
    """(end offset, bytes) of own appends above the high watermark."""
    uncommitted_bytes: int = 0
    transfer: Transfer | None = None
    asked_to_campaign: ReplicaKey | None = None
    """The voter that was last asked to take over; it campaigns in the next epoch, perhaps late."""
    ahead: dict[ReplicaKey, Ahead] = field(default_factory=dict)
    """Observers that ask in a later epoch, and so cannot follow this leader."""
    catch_up_due_ms: int = 0
    """Before this time leadership moves for none of them."""
    change: PendingChange | None = None
    """The change of the voter set under way (853)."""
    membership_due_ms: int = NEVER_MS
    """When to look after ``change``, or after this leader's own removal."""

    @property
    def takes_writes(self) -> bool:
        """Whether records may be proposed now."""
        return self.can_write and self.transfer is None


@dataclass(slots=True)
class Follower:
    """Fetches from the leader of its epoch."""

    leader_id: NodeId
    fetch_deadline_ms: int
    fetch_timeout_ms: int
    """The fetch timer of this term: drawn once, so that the followers of one leader differ."""
    has_fetched: bool = False
    """Whether this leader has answered a Fetch within the fetch timer: then no pre-votes."""
    campaign_at_ms: int = NEVER_MS
    """When to ask for pre-votes because the leader's process is gone."""
    has_campaigned: bool = False
    """Whether its fetch timer has expired, it campaigned without success, and the leader has been
    silent since."""
    read_round: ReadRound = NO_ROUND
    registration: PeerRequest = field(init=False)
    """The request for a change of the own voter entry; due at 0 while there is nothing to ask."""
    advertised_versions: tuple[VersionRange, ...] = ()
    """The versions that this leader was last sent; empty before that."""

    def __post_init__(self) -> None:
        self.registration = PeerRequest(self.leader_id, Purpose.SELF_REGISTRATION)


@dataclass(slots=True)
class Resigned:
    """Led this epoch and no longer does; sends EndQuorumEpoch until the election timer expires."""

    election_deadline_ms: int
    preferred_successors: tuple[ReplicaKey, ...]
    end_epochs: dict[NodeId, PeerRequest]
    """The EndQuorumEpoch owed to each voter that has not acknowledged it."""


Role: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def campaign_deadline(role: Role) -> int:
    """When a role's present wait for a leader ends; ``NEVER_MS`` for one that waits for none."""
    match role:
        case Follower():
            return role.fetch_deadline_ms
        case Unattached() | Prospective() | Candidate() | Resigned():
            return role.election_deadline_ms
        case Leader():
            return NEVER_MS
