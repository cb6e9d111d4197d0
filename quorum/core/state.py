"""Everything one replica knows, and the output of the entry point at work.

The conversations (``election``, ``replication``, ``following`` ...) are functions over this
object; no other module holds state. The few ways to speak to the outside are here as well,
because which list a message goes into decides safety:

* ``effect`` hands something to the disk, in one rising sequence of tickets.
* ``send`` is for every message. All of them name an epoch, and a vote or a leader may hang on
  it, so none leaves before the election state it speaks of is durable.
* ``acknowledge`` is for a Fetch: it also waits for everything the log has handed out, because
  the fetch offset is the acknowledgement in a pull protocol.

Invariants:
    1. The epoch never falls; the vote never changes within one.
    2. ``high_watermark`` never falls and never exceeds the log end.
    3. Tickets rise; an output's effects share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorum.config import QuorumConfig
from quorum.core.download import Download, FrozenSnapshot
from quorum.core.events import Event, VoterSetChanged, WatermarkMoved
from quorum.core.held_fetches import NEVER_MS
from quorum.core.log_view import LogView
from quorum.core.messages import Message
from quorum.core.output import (
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
from quorum.core.peers import InFlight, PeerTable
from quorum.core.roles import Leader, Resigned, Role, Unattached
from quorum.core.snapshot_shelf import SnapshotShelf
from quorum.core.voters import VoterHistory
from quorum.errors import invariant
from quorum.types import (
    LOG_BEGINNING,
    NO_NODE,
    ElectionState,
    Endpoint,
    Epoch,
    LeaderAndEpoch,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
)

if TYPE_CHECKING:
    import random


class CoreState:
    """The state of one replica. Owned by its ``RaftNode``; single-threaded."""

    def __init__(
        self,
        *,
        config: QuorumConfig,
        cluster_id: str,
        me: ReplicaKey,
        rng: random.Random,
        bootstrap: Sequence[NodeId],
    ) -> None:
        self.config = config
        self.cluster_id = cluster_id
        self.me = me
        self.rng = rng
        self.bootstrap = tuple(peer for peer in bootstrap if peer != me.id)
        self.now_ms = 0
        self.out = Output()
        self.role: Role = Unattached(election_deadline_ms=NEVER_MS)
        self.election = ElectionState()
        self.log = LogView(LOG_BEGINNING, LOG_BEGINNING, ())
        self.high_watermark = 0
        self.watermark_store_due_ms = NEVER_MS
        self.snapshots = SnapshotShelf()
        self.voters = VoterHistory()
        self.is_voter = False
        self.last_ticket = 0
        self.durable_ticket = 0
        self.election_ticket = 0
        """Ticket of the last ``SaveElectionState``."""
        self.in_flight: InFlight | None = None
        self.peers = PeerTable(config)
        self.download: Download | None = None
        self.frozen: FrozenSnapshot | None = None
        """A downloaded and verified snapshot that has to replace the log."""
        self.lost_leader: LeaderAndEpoch | None = None
        """The leader of this epoch that is known to be gone (decision 10)."""
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        self.own_endpoints: tuple[Endpoint, ...] = ()
        self.is_shutting_down = False
        self._announced = LeadershipChanged(NO_NODE, 0, is_leader=False, can_write=False)
        # A response to a previous life's request must not pass for one of this life's.
        self._last_request_id = rng.getrandbits(40)

    # What it knows.

    @property
    def epoch(self) -> Epoch:
        """The current epoch."""
        return self.election.epoch

    @property
    def leader_id(self) -> NodeId:
        """The leader of the current epoch, ``NO_NODE`` when not known.

        A leader whose own disk does not say so yet is not known to anybody, itself included.
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
    def is_lone_voter(self) -> bool:
        """Whether this node alone is the quorum."""
        return self.is_voter and len(self.voters.latest) == 1

    def answering_endpoints(self) -> tuple[Endpoint, ...]:
        """Where the leader named in an answer can be reached, as far as known."""
        if self.leader_id == self.me.id:
            return self.own_endpoints or self.voters.latest.endpoints_of(self.me.id)
        return self.leader_endpoints

    def next_request_id(self) -> int:
        """A number no earlier request of this process carried."""
        self._last_request_id += 1
        return self._last_request_id

    def random_election_deadline(self) -> int:
        """Now plus a fresh election timeout, uniform in [E, 2E)."""
        base = self.config.election_timeout_ms
        return self.now_ms + base + self.rng.randrange(base)

    # What it says.

    def begin(self, now_ms: int) -> None:
        """Open the output of a new entry point; time never runs backwards."""
        if now_ms > self.now_ms:
            self.now_ms = now_ms
        self.out = Output()

    def effect(self, effect: Effect) -> int:
        """Hand ``effect`` to the disk; the ticket it becomes durable with."""
        out = self.out
        if out.ticket == 0:
            self.last_ticket += 1
            out.ticket = self.last_ticket
        out.persist.append(effect)
        return out.ticket

    def send(self, to: NodeId, message: Message) -> None:
        """Send once the election state that the message speaks of is durable."""
        if self.election_ticket > self.durable_ticket:
            self.out.after_persist.append(Promise(self.election_ticket, to, message))
        else:
            self.out.immediate.append(Send(to, message))

    def acknowledgement_ticket(self) -> int:
        """What must be durable before the log's end may be acknowledged."""
        return max(self.election_ticket, self.log.ticket)

    def acknowledge(self, to: NodeId, message: Message) -> int:
        """Send once the log and the election state are durable; returns the ticket waited for."""
        ticket = self.acknowledgement_ticket()
        if ticket > self.durable_ticket:
            self.out.after_persist.append(Promise(ticket, to, message))
        else:
            self.out.immediate.append(Send(to, message))
        return ticket

    def event(self, event: Event) -> None:
        """Record what happened."""
        self.out.events.append(event)

    def progress(self, progress: Progress) -> None:
        """Tell the state machine and the waiting callers."""
        self.out.progress.append(progress)

    def save_election(self, state: ElectionState) -> None:
        """Adopt an election state and hand it to the disk, if it is not the present one.

        Raises:
            InvariantViolation: The epoch would fall, or the vote change within it.
        """
        before = self.election
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
        self.election = state
        self.election_ticket = self.effect(SaveElectionState(state))

    def raise_high_watermark(self, high_watermark: int) -> bool:
        """Everything below ``high_watermark`` is committed; whether that is news.

        Raises:
            InvariantViolation: It lies beyond the log end.
        """
        before = self.high_watermark
        if high_watermark <= before:
            return False
        invariant(
            high_watermark <= self.log.end_offset,
            "committed beyond the log end",
            high_watermark=high_watermark,
            log_end=self.log.end_offset,
        )
        self.high_watermark = high_watermark
        if self.watermark_store_due_ms == NEVER_MS:
            self.watermark_store_due_ms = self.now_ms + self.config.high_watermark_store_ms
        out = self.out
        out.progress.append(HighWatermarkAdvanced(high_watermark))
        out.events.append(WatermarkMoved(before, high_watermark))
        return True

    def voters_changed(self) -> None:
        """Adopt the voter set that is now in force and tell about it."""
        latest = self.voters.latest
        self.is_voter = latest.contains(self.me)
        self.event(VoterSetChanged(self.voters.latest_offset, latest.ids))
        self.progress(VotersChanged(latest.voters))

    def announce_leadership(self) -> None:
        """Tell who leads, if that is news. A leader not yet established is nobody."""
        role = self.role
        change = LeadershipChanged(
            NO_NODE if isinstance(role, Resigned) else self.leader_id,
            self.epoch,
            is_leader=isinstance(role, Leader) and role.established,
            can_write=isinstance(role, Leader) and role.can_write,
        )
        if change != self._announced:
            self._announced = change
            self.progress(change)
