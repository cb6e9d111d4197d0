"""``RaftNode``: the entry points of the core. It routes; the other packages decide.

Without I/O, synchronous, total and deterministic: time and randomness are arguments, and one call
returns one ``Output``. Every entry point ends with the turn of the present role, which sends and
does what is due, so no handler has to remember to.

See: DESIGN.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from quorum.config import QuorumConfig
from quorum.core.contract.freshness import Freshness
from quorum.core.contract.local_events import DurableState, LocalEvent
from quorum.core.contract.output import Output
from quorum.core.election import bootstrapping, campaign
from quorum.core.following import fetching, snapshot_install
from quorum.core.integrity import divergence_resolution
from quorum.core.leadership import epoch_catch_up, leadership_term, resignation, transfer
from quorum.core.liveness import disk_stall, freshness, process_pause
from quorum.core.membership import self_registration, voter_changes
from quorum.core.messages.message_types import Incoming
from quorum.core.node import deadlines, startup
from quorum.core.node.local_event_handlers import on_local_event
from quorum.core.node.routing import handle
from quorum.core.protocol.epoch_claims import awaits_leader
from quorum.core.replication import commitment, read_confirmation, read_forwarding, relay_serving
from quorum.core.replication.durability import on_durable, store_high_watermark
from quorum.core.state.chain_state import ChainState
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.pending_change import PendingChangeView
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView, replica_views, tree_view
from quorum.core.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.state.timers import FiredTimer
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import QuorumUsageError
from quorum.types import NO_NODE, Epoch, NodeId, OffsetAndEpoch, ReplicaKey, SnapshotId, Voter

if TYPE_CHECKING:
    import random

    from quorum.batch import BatchHeader

_ROLE_CHANGES_MAX = 8
"""Bound of role changes in one entry point; a restarted lone leader needs four."""


class RaftNode:
    """One replica of the quorum. Owned by one driver; not thread-safe.

    Call ``start`` once, then the other entry points in any order; before it, they raise
    ``QuorumUsageError``.
    """

    def __init__(
        self,
        *,
        config: QuorumConfig,
        cluster_id: str,
        me: ReplicaKey,
        rng: random.Random,
        bootstrap: Sequence[NodeId] = (),
        relays: RelayPlan = NO_RELAYS,
    ) -> None:
        self._core = CoreState(
            config=config, cluster_id=cluster_id, me=me, rng=rng, bootstrap=bootstrap, relays=relays
        )
        self._is_started = False

    def start(self, now_ms: int, state: DurableState) -> Output:
        """Take the first role from the recovered state.

        Raises:
            QuorumUsageError: Started before, or ``state`` contradicts itself.
        """
        if self._is_started:
            raise QuorumUsageError("the node has been started before")
        self._core.now_ms = now_ms
        startup.start(self._core, state)
        self._is_started = True
        return self._finish()

    def receive(self, now_ms: int, sender: NodeId, message: Incoming) -> Output:
        """Process a request or response from a peer. No input raises."""
        handle(self._begin(now_ms), sender, message)
        return self._finish()

    def propose(
        self, now_ms: int, *, end_offset: int, payload: bytes, headers: Sequence[BatchHeader] = ()
    ) -> Output:
        """Append whole batches [``log_end.offset``, ``end_offset``) of this epoch, with headers.

        Raises:
            QuorumUsageError: Not a leader that may write, an empty range, or more than
                ``uncommitted_bytes_max`` uncommitted; nothing has changed.
        """
        commitment.propose(self._begin(now_ms), end_offset, payload, headers)
        return self._finish()

    def read(self, now_ms: int, token: int) -> Output:
        """Confirm that this node leads; ``ReadConfirmed`` or ``ReadFailed`` follows."""
        read_confirmation.read(self._begin(now_ms), token)
        return self._finish()

    def ask_position(self, now_ms: int, token: int) -> Output:
        """Find a position for a linearizable read: on a leader like ``read``, elsewhere by asking
        the leader; ``ReadConfirmed`` or ``ReadFailed`` follows.
        """
        read_forwarding.ask_position(self._begin(now_ms), token)
        return self._finish()

    def persisted(self, now_ms: int, ticket: int) -> Output:
        """Process the report that everything up to ``ticket`` is durable.

        Raises:
            QuorumUsageError: This ticket was never issued.
        """
        on_durable(self._begin(now_ms), ticket)
        return self._finish()

    def tick(self, now_ms: int) -> Output:
        """Do what is due at ``now_ms``."""
        self._begin(now_ms)
        return self._finish()

    def on_local_event(self, now_ms: int, event: LocalEvent) -> Output:
        """Handle a local event or an operator's request.

        Raises:
            QuorumUsageError: A snapshot beyond the high watermark is reported.
        """
        on_local_event(self._begin(now_ms), event)
        return self._finish()

    def process_paused(self, now_ms: int, late_ms: int) -> Output:
        """Process a delay of ``late_ms`` at a deadline. Moves deadlines; takes no turn."""
        core = self._begin(now_ms)
        process_pause.excuse_others(core, late_ms)
        core.out.next_deadline_ms = deadlines.next_deadline(core)
        return core.out

    @property
    def role_name(self) -> str:
        """Class name of the present role in ``roles``."""
        return type(self._core.role).__name__

    @property
    def me(self) -> ReplicaKey:
        """Key of this replica."""
        return self._core.me

    @property
    def epoch(self) -> Epoch:
        """The current epoch, possibly not yet durable."""
        return self._core.election.epoch

    @property
    def leader_id(self) -> NodeId:
        """The leader of the current epoch; ``NO_NODE`` if unknown."""
        return self._core.leader_id

    @property
    def chain(self) -> ChainState:
        """Results of digest comparisons. Read-only."""
        return self._core.chain

    @property
    def timers_fired(self) -> Counter[FiredTimer]:
        """How often each timer has fired in this process run. Read-only."""
        return self._core.timers_fired

    @property
    def held_fetches(self) -> int:
        """Number of Fetches that this leader holds."""
        role = self._core.role
        return len(role.held) if isinstance(role, Leader) else 0

    @property
    def is_downloading(self) -> bool:
        """Whether a snapshot is being downloaded to replace the log."""
        return self._core.following.download is not None

    @property
    def awaits_leader(self) -> bool:
        """Whether the known leader has not answered a Fetch yet, or no longer does."""
        return awaits_leader(self._core)

    @property
    def voted_id(self) -> NodeId:
        """Candidate that this node voted for in the current epoch; ``NO_NODE`` for none."""
        voted = self._core.election.voted
        return NO_NODE if voted is None else voted.id

    @property
    def is_leader(self) -> bool:
        """Whether this node leads, and that is durable."""
        role = self._core.role
        return isinstance(role, Leader) and role.established

    @property
    def can_write(self) -> bool:
        """Whether ``propose`` is allowed: a record of this leader's own epoch is committed.

        Not during a leadership transfer, after whose failure this node may lead on.
        """
        role = self._core.role
        return isinstance(role, Leader) and role.takes_writes

    @property
    def is_transferring(self) -> bool:
        """Whether this leader holds writes back for a leadership transfer."""
        role = self._core.role
        return isinstance(role, Leader) and role.transfer is not None

    @property
    def disk_stalled_ms(self) -> int:
        """Time since the disk last completed a write, once that is too long; else 0."""
        watch = self._core.disk.watch
        return self._core.now_ms - watch.since_ms if watch.is_stalled else 0

    @property
    def is_voter(self) -> bool:
        """Whether this node is in the voter set in force, and not disqualified from voting."""
        return self._core.is_voter

    @property
    def disqualified(self) -> str:
        """Why this node never votes with its directory id; empty if it may."""
        return self._core.election.disqualified

    @property
    def why_not_bootstrapped(self) -> str:
        """Sentence with the bootstrap voters that epoch 1 still waits for; empty for none."""
        return bootstrapping.why_not_bootstrapped(self._core)

    @property
    def log_end(self) -> OffsetAndEpoch:
        """End of the log (exclusive), flushed or not, and the epoch of its last record."""
        return self._core.log.end

    @property
    def log_end_offset(self) -> int:
        """``log_end.offset``, without building the pair."""
        return self._core.log.end_offset

    @property
    def flushed_end_offset(self) -> int:
        """End (exclusive) of the log that is known to be durable."""
        return self._core.log.flushed_end

    @property
    def log_start(self) -> OffsetAndEpoch:
        """First kept offset and the epoch of the record before it."""
        return self._core.log.start

    @property
    def high_watermark(self) -> int:
        """End (exclusive) of the records known here to be committed."""
        return self._core.high_watermark

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voter set in force, ascending by id."""
        return self._core.voters.latest.voters

    def voter_set_at(self, end_offset: int) -> VoterSet:
        """Return the voter set that a log ending at ``end_offset`` (exclusive) puts in force."""
        return self._core.voters.at(end_offset)

    @property
    def removed_voters(self) -> tuple[ReplicaKey, ...]:
        """Tombstones of the set in force: former voters that need a readmission."""
        return self._core.voters.latest.removed

    @property
    def voters_offset(self) -> int:
        """Offset of the record of the set in force; -1 if it is not in the log."""
        return self._core.voters.latest_offset

    @property
    def pending_change(self) -> PendingChangeView | None:
        """The change of the voter set that this leader has under way, if any."""
        return voter_changes.pending_view(self._core)

    @property
    def snapshots(self) -> tuple[SnapshotId, ...]:
        """Ids of this node's sealed checkpoints, ascending."""
        return self._core.snapshots.ids

    @property
    def lacks_snapshot(self) -> bool:
        """Whether the log is trimmed and no available snapshot reaches its start."""
        core = self._core
        start, latest = core.log.start.offset, core.snapshots.latest
        return start > 0 and (latest is None or latest.offset < start)

    @property
    def uncommitted_bytes(self) -> int:
        """Proposed and uncommitted bytes of this leadership term; the configuration bounds them."""
        role = self._core.role
        return role.uncommitted_bytes if isinstance(role, Leader) else 0

    def freshness(self, now_ms: int) -> Freshness:
        """Return the time up to which this replica has all acknowledged records."""
        return freshness.freshness(self._core, now_ms)

    def replicas(self) -> tuple[ReplicaView, ...]:
        """Return the replicas for describe-quorum, on the leader; empty on all other nodes."""
        return replica_views(self._core)

    def replicas_ahead(self) -> tuple[epoch_catch_up.AheadView, ...]:
        """Observers that cannot follow this leader, being in a later epoch; elsewhere none."""
        return epoch_catch_up.ahead_views(self._core)

    def tree(self) -> TreeView:
        """Return the upstream of this node and the observers below it."""
        return tree_view(self._core)

    def end_offset_for_epoch(self, requested: Epoch) -> OffsetAndEpoch | None:
        """Return the largest known epoch not above ``requested`` and its end offset (279.1)."""
        return self._core.log.end_offset_for_epoch(requested)

    def _begin(self, now_ms: int) -> CoreState:
        if not self._is_started:  # A node must not send before it has read its own state.
            raise QuorumUsageError("the node has not been started")
        core = self._core
        if now_ms > core.now_ms:  # Time never runs backwards.
            core.now_ms = now_ms
        core.out = Output()
        return core

    def _finish(self) -> Output:
        """Let the present role take its turn, then complete the output."""
        core = self._core
        role = core.role
        # The hot path: no turn for a leader with nothing due, or a follower that awaits an answer.
        if isinstance(role, Leader) and role.established and role.transfer is None:
            due_ms = deadlines.leader_deadline(core, role)
        elif isinstance(role, Follower):
            due_ms = deadlines.follower_deadline(core, role)
        else:
            due_ms = deadlines.TURN_IS_DUE
        if core.now_ms < due_ms:
            core.out.next_deadline_ms = due_ms if due_ms < NEVER_MS else None
            return core.out
        if core.now_ms >= core.disk.watch.check_due_ms:
            disk_stall.watch(core)
        if core.now_ms >= core.chain.due_ms:
            divergence_resolution.poll_divergence_resolution(core)
        for _ in range(_ROLE_CHANGES_MAX):
            role = core.role
            self._take_turn()
            if core.role is role:
                break
        if core.forwarded.reads and not isinstance(core.role, Leader):
            read_forwarding.poll_reads(core)
        if core.now_ms >= core.disk.watermark_store_due_ms:
            store_high_watermark(core)
        core.out.next_deadline_ms = deadlines.next_deadline(core)
        return core.out

    def _take_turn(self) -> None:
        core = self._core
        role = core.role
        if core.relay is not None:
            relay_serving.poll_relay(core, core.relay)
        snapshot_install.install_if_ready(core)
        match role:
            case Leader():
                leadership_term.poll_leader(core, role)
                if core.role is role:
                    epoch_catch_up.poll(core, role)
                    transfer.poll(core, role)
            case Follower():
                fetching.poll_follower(core, role)
                if core.role is role:
                    self_registration.poll_self_registration(core, role)
            case Unattached():
                bootstrapping.poll_bootstrap(core)
                campaign.poll_unattached(core, role)
                if core.role is role:
                    fetching.poll_fetch(core)
            case Prospective():
                campaign.poll_prospective(core, role)
                if core.role is role and not role.fail_fast:
                    fetching.poll_search(core)
            case Candidate():
                campaign.poll_candidate(core, role)
            case Resigned():
                resignation.poll_resigned(core, role)
            case _:
                assert_never(role)
