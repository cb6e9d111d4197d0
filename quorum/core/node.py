"""``RaftNode``: the seven entry points of the core. Routes; the conversations decide.

Sans-IO, synchronous, total and deterministic: time and chance are arguments, and one call
returns one ``Output``. Every entry point ends with the turn of the role in office, which sends
what it owes and does what is due, so no handler has to remember to.

See: DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from quorum.config import QuorumConfig
from quorum.core import (
    commitment,
    election,
    following,
    leadership,
    read_confirmation,
    replication,
    snapshot_install,
    snapshot_serving,
    snapshot_transfer,
    startup,
    succession,
)
from quorum.core.deadlines import leader_deadline, next_deadline
from quorum.core.durability import on_durable, store_high_watermark
from quorum.core.leader_view import replica_views
from quorum.core.local_facts import on_notice
from quorum.core.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Message,
    VoteRequest,
    VoteResponse,
)
from quorum.core.notices import DurableState, Notice
from quorum.core.output import Output
from quorum.core.progress import ReplicaView
from quorum.core.refusals import ignore
from quorum.core.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.state import CoreState
from quorum.errors import QuorumUsageError
from quorum.types import NO_NODE, Epoch, NodeId, OffsetAndEpoch, ReplicaKey, SnapshotId, Voter

if TYPE_CHECKING:
    import random

Handler = Callable[[CoreState, NodeId, Any], None]
_HANDLERS: dict[type[Any], Handler] = {
    VoteRequest: election.on_vote_request,
    VoteResponse: election.on_vote_response,
    BeginQuorumEpochRequest: leadership.on_begin_request,
    BeginQuorumEpochResponse: leadership.on_begin_response,
    EndQuorumEpochRequest: succession.on_end_request,
    EndQuorumEpochResponse: succession.on_end_response,
    FetchRequest: replication.on_fetch,
    FetchResponse: following.on_fetch_response,
    FetchSnapshotRequest: snapshot_serving.on_fetch_snapshot,
    FetchSnapshotResponse: snapshot_transfer.on_fetch_snapshot_response,
}
_ROLE_CHANGES_MAX = 8
"""More changes of role than one entry point can cause; a restarted lone leader needs four."""


class RaftNode:
    """One replica of the quorum. Owned by one driver; not thread-safe.

    Life-cycle: ``start`` once, then the other entry points in any order.
    """

    def __init__(
        self,
        *,
        config: QuorumConfig,
        cluster_id: str,
        me: ReplicaKey,
        rng: random.Random,
        bootstrap: Sequence[NodeId] = (),
    ) -> None:
        self._core = CoreState(
            config=config, cluster_id=cluster_id, me=me, rng=rng, bootstrap=bootstrap
        )
        self._is_started = False

    # Entry points.

    def start(self, now_ms: int, state: DurableState) -> Output:
        """Take the first role from what is on disk.

        Raises:
            QuorumUsageError: Started before, or ``state`` contradicts itself.
        """
        if self._is_started:
            raise QuorumUsageError("the node has been started before")
        self._core.begin(now_ms)
        startup.start(self._core, state)
        self._is_started = True
        return self._finish()

    def receive(self, now_ms: int, sender: NodeId, message: Message) -> Output:
        """Take a request or response from a peer. No input raises."""
        core = self._core
        core.begin(now_ms)
        handler = _HANDLERS.get(type(message))
        if handler is None:
            ignore(core, sender, message, "not a message of this protocol", is_violation=True)
        else:
            handler(core, sender, message)
        return self._finish()

    def propose(self, now_ms: int, *, end_offset: int, payload: bytes) -> Output:
        """Append whole batches covering [``log_end.offset``, ``end_offset``) in this epoch.

        Raises:
            QuorumUsageError: Not a leader that may write, an empty range, or more than
                ``uncommitted_bytes_max`` on the way; nothing has changed.
        """
        self._core.begin(now_ms)
        commitment.propose(self._core, end_offset, payload)
        return self._finish()

    def read(self, now_ms: int, token: int) -> Output:
        """Ask for a linearizable position; ``ReadConfirmed`` or ``ReadFailed`` will answer."""
        self._core.begin(now_ms)
        read_confirmation.read(self._core, token)
        return self._finish()

    def persisted(self, now_ms: int, ticket: int) -> Output:
        """Everything handed out up to ``ticket`` is durable.

        Raises:
            QuorumUsageError: No such ticket was ever given.
        """
        self._core.begin(now_ms)
        on_durable(self._core, ticket)
        return self._finish()

    def tick(self, now_ms: int) -> Output:
        """Do what is due at ``now_ms``."""
        self._core.begin(now_ms)
        return self._finish()

    def notice(self, now_ms: int, fact: Notice) -> Output:
        """Take a local fact or an operator's request.

        Raises:
            QuorumUsageError: A snapshot beyond the high watermark is reported.
        """
        self._core.begin(now_ms)
        on_notice(self._core, fact)
        return self._finish()

    # What others may look at.

    @property
    def role_name(self) -> str:
        """The name of the present role's class in ``roles``."""
        return type(self._core.role).__name__

    @property
    def me(self) -> ReplicaKey:
        """Who this replica is."""
        return self._core.me

    @property
    def epoch(self) -> Epoch:
        """The current epoch, possibly not yet durable."""
        return self._core.epoch

    @property
    def leader_id(self) -> NodeId:
        """The leader of the current epoch, ``NO_NODE`` when not known."""
        return self._core.leader_id

    @property
    def held_fetches(self) -> int:
        """Fetches this leader holds until there is something to answer."""
        role = self._core.role
        return len(role.held) if isinstance(role, Leader) else 0

    @property
    def is_downloading(self) -> bool:
        """Whether a snapshot is being fetched, so that the log is about to be replaced."""
        return self._core.download is not None

    @property
    def awaits_leader(self) -> bool:
        """Whether this node follows a leader that has not answered it yet.

        After a restart the leader is known from disk; how far behind it this node is, is not.
        """
        role = self._core.role
        return isinstance(role, Follower) and not role.has_fetched

    @property
    def voted_id(self) -> NodeId:
        """Whom this node voted for in the current epoch, ``NO_NODE`` for nobody."""
        voted = self._core.election.voted
        return NO_NODE if voted is None else voted.id

    @property
    def is_leader(self) -> bool:
        """Whether this node leads, and that is durable."""
        role = self._core.role
        return isinstance(role, Leader) and role.established

    @property
    def can_write(self) -> bool:
        """Whether ``propose`` is allowed: a record of this leader's own epoch is committed."""
        role = self._core.role
        return isinstance(role, Leader) and role.can_write

    @property
    def is_voter(self) -> bool:
        """Whether this node is in the voter set in force."""
        return self._core.is_voter

    @property
    def log_end(self) -> OffsetAndEpoch:
        """End of the log (exclusive), flushed or not, and the epoch of its last record."""
        return self._core.log.end

    @property
    def log_end_offset(self) -> int:
        """``log_end.offset`` without building the pair."""
        return self._core.log.end_offset

    @property
    def flushed_end_offset(self) -> int:
        """How much of the log is known to be durable (exclusive)."""
        return self._core.log.flushed_end

    @property
    def log_start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""
        return self._core.log.start

    @property
    def high_watermark(self) -> int:
        """Everything below is known here to be committed."""
        return self._core.high_watermark

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voter set in force, ascending by id."""
        return self._core.voters.latest.voters

    def voters_at(self, end_offset: int) -> tuple[Voter, ...]:
        """The voter set that a log ending at ``end_offset`` (exclusive) puts in force."""
        return self._core.voters.at(end_offset).voters

    @property
    def snapshots(self) -> tuple[SnapshotId, ...]:
        """Frozen checkpoints this node has, ascending."""
        return self._core.snapshots.ids

    @property
    def uncommitted_bytes(self) -> int:
        """Bytes proposed in this reign and not committed yet; bounded by the configuration."""
        role = self._core.role
        return role.uncommitted_bytes if isinstance(role, Leader) else 0

    def replicas(self) -> tuple[ReplicaView, ...]:
        """Describe-quorum as the leader sees it; empty on everybody else."""
        return replica_views(self._core)

    def end_offset_for_epoch(self, requested: Epoch) -> OffsetAndEpoch | None:
        """The largest known epoch not above ``requested`` and its end offset (279.1)."""
        return self._core.log.end_offset_for_epoch(requested)

    def _finish(self) -> Output:
        """Let the role in office take its turn, then close the output."""
        core = self._core
        role = core.role
        if isinstance(role, Leader) and role.established:
            # A leader with nothing due has no turn to take: this is the hot path.
            earliest = min(leader_deadline(role), core.watermark_store_due_ms)
            if core.now_ms < earliest:
                core.out.next_deadline_ms = earliest
                return core.out
        for _ in range(_ROLE_CHANGES_MAX):
            role = core.role
            self._take_turn()
            if core.role is role:
                break
        if core.now_ms >= core.watermark_store_due_ms:
            store_high_watermark(core)
        core.out.next_deadline_ms = next_deadline(core)
        return core.out

    def _take_turn(self) -> None:
        core = self._core
        role = core.role
        match role:
            case Leader():
                leadership.pursue_leader(core, role)
            case Follower():
                snapshot_install.install_if_ready(core)
                following.pursue_follower(core, role)
            case Unattached():
                snapshot_install.install_if_ready(core)
                election.pursue_unattached(core, role)
                if core.role is role:
                    following.pursue_fetch(core)
            case Prospective():
                snapshot_install.install_if_ready(core)
                election.pursue_prospective(core, role)
            case Candidate():
                election.pursue_candidate(core, role)
            case Resigned():
                succession.pursue_resigned(core, role)
            case _:
                assert_never(role)
