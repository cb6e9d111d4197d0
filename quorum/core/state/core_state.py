"""Everything one replica knows, and the output of the entry point at work.

The conversations (``campaign``, ``fetch_serving``, ``fetching`` ...) are functions over this
object; no other module holds state. The few ways to produce output are here as well, because
safety depends on the list that a message is put into:

* ``effect`` hands something to the disk, in one rising sequence of tickets.
* ``send`` is for every message. All of them name an epoch, and a vote or a leader may depend on
  it, so none leaves before the election state that it reports is durable.
* ``acknowledge`` is for a Fetch: it also waits until all changes of the log are durable, because
  the fetch offset is the acknowledgement in a pull protocol.

Invariants:
    1. The epoch never falls; the vote never changes within one.
    2. ``high_watermark`` never falls and never exceeds the log end.
    3. Tickets rise; an output's effects share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from quorum.config import QuorumConfig
from quorum.core.contract.events import Event, VoterDisqualified, VoterSetChanged, WatermarkMoved
from quorum.core.contract.freshness import NEVER_KNOWN
from quorum.core.contract.output import (
    Effect,
    HighWatermarkAdvanced,
    LeadershipChanged,
    Output,
    Progress,
    Promise,
    SaveElectionState,
    Send,
    VotersChanged,
)
from quorum.core.contract.reasons import DisqualifiedReason
from quorum.core.messages.message_types import Message, Outgoing
from quorum.core.positions.log_view import LogView
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.core.state.bootstrap_peer import BootstrapProgress
from quorum.core.state.chain_state import ChainState
from quorum.core.state.disk_progress import DiskProgress
from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.following import Following
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.known_leader import KnownLeader
from quorum.core.state.peer_requests import PendingRequests, Purpose
from quorum.core.state.peers import PeerTable
from quorum.core.state.process_state import ProcessState
from quorum.core.state.rate_limits import RateLimits
from quorum.core.state.registration_need import RegistrationNeed
from quorum.core.state.relay_table import Relay
from quorum.core.state.roles import Leader, Resigned, Role, Unattached
from quorum.core.state.timers import FiredTimer, Timer
from quorum.core.state.upstream import NO_RELAYS, RelayPlan, Upstream
from quorum.core.state.waiting_reads import WaitingReads
from quorum.core.voters.voter_set import VoterHistory
from quorum.errors import invariant, violation
from quorum.types import (
    LOG_BEGINNING,
    NO_NODE,
    BootstrapState,
    ElectionState,
    Endpoint,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
)

if TYPE_CHECKING:
    import random


class CoreState:
    """The state of one replica. Owned by its ``RaftNode``; single-threaded."""

    __slots__ = (
        "bootstrap", "chain", "cluster_id", "config", "disk", "election", "epoch",
        "following", "forwarded", "freshness", "high_watermark", "is_voter", "known_leader",
        "log", "me", "now_ms", "out", "process", "rate_limits", "registration", "relay",
        "requests", "rng", "role", "snapshots", "timers_fired", "voters",
    )  # fmt: skip

    def __init__(
        self,
        *,
        config: QuorumConfig,
        cluster_id: str,
        me: ReplicaKey,
        rng: random.Random,
        bootstrap: Sequence[NodeId],
        relays: RelayPlan = NO_RELAYS,
    ) -> None:
        self.config = config
        self.cluster_id = cluster_id
        self.me = me
        self.rng = rng
        # The epoch is that of ``election``; only ``adopt_election`` sets either.
        self.epoch = self.now_ms = self.high_watermark = 0
        self.out = Output()
        self.role: Role = Unattached(election_deadline_ms=NEVER_MS)
        self.election = ElectionState()
        self.known_leader = KnownLeader()
        self.log = LogView(LOG_BEGINNING, LOG_BEGINNING, ())
        self.disk = DiskProgress(DiskWatch(config.disk_stall_ms))
        self.snapshots = SnapshotIndex()
        self.voters = VoterHistory()
        self.is_voter = False
        self.bootstrap = BootstrapProgress()
        self.requests = PendingRequests(rng.getrandbits(40))
        self.following = Following(
            tuple(peer for peer in bootstrap if peer != me.id),
            PeerTable(config),
            Upstream(relays.fetch_from),
        )
        self.forwarded = WaitingReads()
        self.freshness = NEVER_KNOWN
        self.relay = Relay(me.id) if relays.serves else None
        """The observers that fetch from this one; None for a node that is no relay."""
        self.chain = ChainState()
        self.registration = RegistrationNeed()
        self.rate_limits = RateLimits()
        self.process = ProcessState()
        self.timers_fired: Counter[FiredTimer] = Counter()

    # State.

    @property
    def leader_id(self) -> NodeId:
        """The leader of the current epoch; ``NO_NODE`` if unknown.

        A leader whose leadership is not durable yet is unknown to all replicas, itself included.
        """
        role = self.role
        if isinstance(role, Leader) and not role.established:
            return NO_NODE
        return self.election.leader_id

    @property
    def position(self) -> OffsetAndEpoch:
        """The newest position this replica holds: log end or latest snapshot (630.13)."""
        latest = self.snapshots.latest
        end = self.log.end
        if latest is not None and not end.is_at_least(latest):
            return latest
        return end

    @property
    def may_campaign(self) -> bool:
        """Whether this node may campaign unless another rule forbids it.

        True for a voter, and for a voter whose removal is not known to be committed: it may be the
        only one left with that record, and no voter without it could be elected. It does not count
        its own vote then. See: Raft dissertation section 4.2.2.
        """
        return self.is_voter or (
            self.voters.latest_offset >= self.high_watermark
            and not self.election.disqualified
            and self.voters.before_latest.contains(self.me)
        )

    @property
    def is_lone_voter(self) -> bool:
        """Whether this node alone is the quorum."""
        return self.is_voter and len(self.voters.latest.voters) == 1

    @property
    def has_agreed_to_bootstrap(self) -> bool:
        """Whether this disk has promised to found a quorum, before epoch 1."""
        bootstrap_state = self.election.bootstrap_state
        return self.is_lone_voter or (
            bootstrap_state is not None
            and (bootstrap_state.is_complete or bool(bootstrap_state.voter_list))
        )

    @property
    def is_bootstrapping(self) -> bool:
        """Whether this is a bootstrap voter that does not know its quorum to be bootstrapped.

        A lone voter has no other voter to ask.
        """
        if self.epoch > 0 or not self.is_voter or len(self.voters.latest) == 1:
            return False
        bootstrap_state = self.election.bootstrap_state
        return bootstrap_state is None or not bootstrap_state.is_complete

    def answering_endpoints(self) -> tuple[Endpoint, ...]:
        """Where the leader named in an answer can be reached, as far as known and not unproven."""
        if self.leader_id == self.me.id:
            return self.process.endpoints or self.voters.latest.endpoints_of(self.me.id)
        known = self.known_leader
        return () if known.is_doubtful else known.endpoints

    def random_election_deadline(self) -> int:
        """Now plus a fresh election timeout, uniform in [E, 2E)."""
        base = self.config.election_timeout_ms
        return self.now_ms + base + self.rng.randrange(base)

    def random_fetch_timeout(self) -> int:
        """A fetch timer for one term as follower, uniform in [T, 9/8 T) (ADR 37)."""
        return self.config.fetch_timeout_ms + self.rng.randrange(self.config.fetch_jitter_ms)

    # Output.

    def peer_failed(self, peer: NodeId) -> None:
        """Leave a peer alone for a while: it gave no useful answer to a Fetch or FetchSnapshot."""
        self.following.peer_failed(peer, self.now_ms, self.config, self.rng)

    def effect(self, effect: Effect) -> int:
        """Hand ``effect`` to the disk; return the ticket that it becomes durable with."""
        out = self.out
        if out.ticket == 0:
            out.ticket = self.disk.next_ticket(self.now_ms)
        out.persist.append(effect)
        return out.ticket

    def send(self, to: NodeId, message: Outgoing) -> None:
        """Send once the election state that the message reports is durable."""
        disk = self.disk
        if disk.election_ticket > disk.durable_ticket:
            self.out.after_persist.append(Promise(disk.election_ticket, to, message))
        else:
            self.out.immediate.append(Send(to, message))

    def acknowledgement_ticket(self) -> int:
        """Return the ticket that must be durable before the log's end may be acknowledged."""
        return max(self.disk.election_ticket, self.log.ticket)

    def acknowledge(self, to: NodeId, message: Message) -> int:
        """Send once the log and the election state are durable; return the ticket waited for."""
        ticket = self.acknowledgement_ticket()
        if ticket > self.disk.durable_ticket:
            self.out.after_persist.append(Promise(ticket, to, message))
        else:
            self.out.immediate.append(Send(to, message))
        return ticket

    def event(self, event: Event) -> None:
        """Record what happened."""
        self.out.events.append(event)

    def fired(self, timer: Timer, purpose: Purpose | None = None) -> None:
        """Count that ``timer`` has fired and is acted on; of a request, by its purpose."""
        self.timers_fired[timer if purpose is None else (timer, purpose)] += 1

    def progress(self, progress: Progress) -> None:
        """Notify the state machine and the waiting callers."""
        self.out.progress.append(progress)

    def save_election(self, state: ElectionState) -> None:
        """Adopt an election state and hand it to the disk, if it is not the present one.

        Raises:
            InvariantViolation: The epoch would fall, or the vote change within it.
        """
        before = self.election
        state = replace(
            state, bootstrap_state=before.bootstrap_state, disqualified=before.disqualified
        )
        if state == before:
            return
        invariant(
            state.epoch >= before.epoch,
            "the epoch never falls",
            before=before.epoch,
            after=state.epoch,
        )
        invariant(
            state.epoch > before.epoch or before.voted is None or state.voted == before.voted,
            "a vote never changes within its epoch",
            epoch=state.epoch,
            before=before.voted,
            after=state.voted,
        )
        disqualified = ""
        if state.epoch > 0 and before.epoch == 0:
            if (
                self.is_voter
                and not self.has_agreed_to_bootstrap
                and self.position == LOG_BEGINNING
            ):
                # In one write with the epoch: a crash must not make it look like a participant.
                disqualified = (
                    "freshly formatted, and met a quorum that it took no part in bootstrap"
                )
            state = replace(
                state, bootstrap_state=None, disqualified=before.disqualified or disqualified
            )
        self._store_election(state)
        if disqualified:
            self._report_disqualified(DisqualifiedReason.MET_QUORUM)

    def save_bootstrap(self, bootstrap_state: BootstrapState) -> None:
        """Store how far this disk has come in the bootstrap of its quorum (epoch 0 only)."""
        self._store_election(replace(self.election, bootstrap_state=bootstrap_state))

    def disqualify(self, reason: DisqualifiedReason, detail: str) -> None:
        """Never vote, campaign or count as a voter again with this directory id."""
        if not self.election.disqualified:
            self._store_election(replace(self.election, disqualified=detail))
            self._report_disqualified(reason)

    def adopt_election(self, state: ElectionState) -> None:
        """Make ``state``, which is on disk or was submitted to it, the current one."""
        self.election = state
        self.epoch = state.epoch

    def _store_election(self, state: ElectionState) -> None:
        self.adopt_election(state)
        self.disk.election_ticket = self.effect(SaveElectionState(state))

    def _report_disqualified(self, reason: DisqualifiedReason) -> None:
        self.is_voter = False
        self.registration.forget()
        found = self.election
        self.event(VoterDisqualified(self.me, found.epoch, reason, found.disqualified))

    def raise_high_watermark(self, high_watermark: int) -> bool:
        """Record that all below ``high_watermark`` is committed; return whether the mark rose.

        Raises:
            InvariantViolation: It lies beyond the log end.
        """
        before = self.high_watermark
        if high_watermark <= before:
            return False
        if high_watermark > self.log.end_offset:
            raise violation(
                "committed beyond the log end",
                high_watermark=high_watermark,
                log_end=self.log.end_offset,
            )
        self.high_watermark = high_watermark
        self.disk.store_watermark_at(self.now_ms + self.config.high_watermark_store_ms)
        out = self.out
        out.progress.append(HighWatermarkAdvanced(high_watermark))
        out.events.append(WatermarkMoved(before, high_watermark))
        return True

    def voters_changed(self) -> None:
        """Adopt the voter set that is now in force, and report it."""
        latest = self.voters.latest
        self.is_voter = latest.contains(self.me) and not self.election.disqualified
        self.event(VoterSetChanged(self.voters.latest_offset, latest.ids))
        self.progress(VotersChanged(latest.voters))

    def announce_leadership(self) -> None:
        """Report the leader if it has changed. A leader that is not established is not reported."""
        role = self.role
        change = LeadershipChanged(
            NO_NODE if isinstance(role, Resigned) else self.leader_id,
            self.epoch,
            is_leader=isinstance(role, Leader) and role.established,
            can_write=isinstance(role, Leader) and role.can_write,
        )
        if self.known_leader.announce(change):
            self.progress(change)
