"""Broker sessions: the leader's soft state of each broker's last contact and applied offset.

The sessions live in the leader's memory only. They start afresh when a leader is activated: then
each unfenced broker gets a full session. Only a fence record makes a decision durable.
There is one entry per broker id, so clients cannot grow the table beyond the registered brokers.
See: statemachine/DESIGN.md, KIP-631.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorum.types import NodeId

DEFAULT_SESSION_TIMEOUT_MS = 9_000
UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class BrokerSession:
    """Last contact and positions of one registration of a broker."""

    broker_epoch: int
    last_contact_ms: int
    metadata_offset: int = UNKNOWN_OFFSET
    """Last offset that the broker has reported as applied (inclusive)."""
    shutdown_offset: int | None = None
    """In controlled shutdown: last offset of the newest records that moved its leaderships."""


@dataclass(frozen=True, slots=True)
class BrokerGeneration:
    """One registration of a broker: its id and the epoch of that registration."""

    broker_id: NodeId
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    """What an evaluated heartbeat changes in its broker's session, besides the last contact."""

    broker_id: NodeId
    broker_epoch: int
    metadata_offset: int
    shutdown_offset: int | None
    is_over: bool = False
    """The broker was instructed to stop now; it will send no more heartbeats."""


class BrokerSessions:
    """Sessions by broker id, in order of last contact, the longest silent first.

    Owned by the leader's controller and its thread. Times are monotonic milliseconds.
    """

    def __init__(self, timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[NodeId, BrokerSession] = {}
        self._registered: dict[NodeId, tuple[int, int]] = {}
        self._leadership_term_offset: int | None = None

    def reset(
        self,
        unfenced: Iterable[BrokerGeneration],
        now_ms: int,
        *,
        leadership_term_offset: int | None = None,
    ) -> None:
        """Drop all sessions and give each of these brokers a fresh one.

        ``leadership_term_offset`` is the last offset before this leadership term's commands,
        inclusive.
        """
        self._registered = {}
        self._leadership_term_offset = leadership_term_offset
        self._sessions = {
            generation.broker_id: BrokerSession(generation.broker_epoch, now_ms)
            for generation in unfenced
        }

    def note_registration(self, broker_id: NodeId, broker_epoch: int, offset: int) -> None:
        """Record that the batch at ``offset`` registered or amended this broker generation."""
        if self._registered.get(broker_id, (None,))[0] != broker_epoch:
            self._registered[broker_id] = (broker_epoch, offset)

    def registration_offset(self, broker_id: NodeId, broker_epoch: int) -> int:
        """Return the offset (inclusive) that a broker must have applied to know its registration.

        This is usually its broker epoch. After an import, epochs may exceed log offsets. Then it
        is the offset at which this leader wrote the registration. For a registration by an older
        leader it is the offset before this leadership term.
        """
        epoch, offset = self._registered.get(
            broker_id, (broker_epoch, self._leadership_term_offset)
        )
        if epoch != broker_epoch or offset is None:
            return broker_epoch
        return min(broker_epoch, offset)

    def touch(self, broker_id: NodeId, broker_epoch: int, now_ms: int) -> BrokerSession:
        """Record a contact. The caller has checked that this generation is registered."""
        session = self._sessions.pop(broker_id, None)
        if session is None or session.broker_epoch != broker_epoch:
            session = BrokerSession(broker_epoch, now_ms)
        session.last_contact_ms = now_ms
        # Move it to the end: the table is ordered by last contact.
        self._sessions[broker_id] = session
        return session

    def get(self, broker_id: NodeId, broker_epoch: int) -> BrokerSession | None:
        """Return the session of exactly this generation."""
        session = self._sessions.get(broker_id)
        return session if session is not None and session.broker_epoch == broker_epoch else None

    def is_valid(self, broker_id: NodeId, broker_epoch: int, now_ms: int) -> bool:
        """Whether this generation was in contact within the session timeout."""
        session = self.get(broker_id, broker_epoch)
        return session is not None and now_ms - session.last_contact_ms < self.timeout_ms

    def update(self, update: SessionUpdate, now_ms: int) -> None:
        """Apply an evaluated heartbeat; it counts as a contact."""
        if update.is_over:
            self.end(update.broker_id, update.broker_epoch)
            return
        session = self.touch(update.broker_id, update.broker_epoch, now_ms)
        session.metadata_offset = update.metadata_offset
        session.shutdown_offset = update.shutdown_offset

    def end(self, broker_id: NodeId, broker_epoch: int) -> None:
        """End the session of a broker that is gone: its successor need not await the timeout."""
        if self.get(broker_id, broker_epoch) is not None:
            del self._sessions[broker_id]

    def stalest(self, now_ms: int) -> BrokerGeneration | None:
        """Return the longest silent broker whose session has expired. It stays in the table."""
        for broker_id, session in self._sessions.items():
            if now_ms - session.last_contact_ms >= self.timeout_ms:
                return BrokerGeneration(broker_id, session.broker_epoch)
            break
        return None

    def next_expiry_ms(self) -> int | None:
        """Return when the next session expires if no broker makes contact."""
        for session in self._sessions.values():
            return session.last_contact_ms + self.timeout_ms
        return None

    def __len__(self) -> int:
        return len(self._sessions)
