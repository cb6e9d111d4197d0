"""The leader's soft knowledge about brokers: who was heard of when, and how far each is.

Lives in the leader's memory alone and starts afresh with every activation, when each unfenced
broker gets a whole new session. What it decides becomes durable only as a fence record.
One entry per broker id, so a client cannot make it grow beyond the registered brokers.
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
    """What was last heard from one generation of a broker."""

    broker_epoch: int
    last_contact_ms: int
    metadata_offset: int = UNKNOWN_OFFSET
    """Last offset the broker said it has applied (inclusive)."""
    shutdown_offset: int | None = None
    """While it shuts down: last offset of the newest records that moved its leaderships."""


@dataclass(frozen=True, slots=True)
class BrokerGeneration:
    """One life of a broker: its id and the epoch of that registration."""

    broker_id: NodeId
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    """What an evaluated heartbeat says about its broker beyond being alive."""

    broker_id: NodeId
    broker_epoch: int
    metadata_offset: int
    shutdown_offset: int | None
    is_over: bool = False
    """The broker was told to stop now; it will not be heard of again."""


class BrokerSessions:
    """Sessions by broker id, the longest silent first.

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
        """Forget everything and give each of these brokers a fresh session.

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
        """A life of a broker was registered, or amended, by the batch at ``offset``."""
        if self._registered.get(broker_id, (None,))[0] != broker_epoch:
            self._registered[broker_id] = (broker_epoch, offset)

    def registration_offset(self, broker_id: NodeId, broker_epoch: int) -> int:
        """The offset that this life must have applied to know its own registration, inclusive.

        Mostly that is its epoch. Behind an import epochs may run ahead of the log: then it is
        where this leader wrote it, or for what older leaders wrote where this leadership term
        began.
        """
        epoch, offset = self._registered.get(
            broker_id, (broker_epoch, self._leadership_term_offset)
        )
        if epoch != broker_epoch or offset is None:
            return broker_epoch
        return min(broker_epoch, offset)

    def touch(self, broker_id: NodeId, broker_epoch: int, now_ms: int) -> BrokerSession:
        """Note a contact. The caller has checked that this generation is registered."""
        session = self._sessions.pop(broker_id, None)
        if session is None or session.broker_epoch != broker_epoch:
            session = BrokerSession(broker_epoch, now_ms)
        session.last_contact_ms = now_ms
        # Back at the end: the order of the table is the order of last contact.
        self._sessions[broker_id] = session
        return session

    def get(self, broker_id: NodeId, broker_epoch: int) -> BrokerSession | None:
        """The session of exactly this generation."""
        session = self._sessions.get(broker_id)
        return session if session is not None and session.broker_epoch == broker_epoch else None

    def is_valid(self, broker_id: NodeId, broker_epoch: int, now_ms: int) -> bool:
        """Whether this generation was heard of within the session timeout."""
        session = self.get(broker_id, broker_epoch)
        return session is not None and now_ms - session.last_contact_ms < self.timeout_ms

    def update(self, update: SessionUpdate, now_ms: int) -> None:
        """Take over what an evaluated heartbeat said; a contact like any other."""
        if update.is_over:
            self.end(update.broker_id, update.broker_epoch)
            return
        session = self.touch(update.broker_id, update.broker_epoch, now_ms)
        session.metadata_offset = update.metadata_offset
        session.shutdown_offset = update.shutdown_offset

    def end(self, broker_id: NodeId, broker_epoch: int) -> None:
        """The broker is known to be gone: its successor need not wait for the timeout."""
        if self.get(broker_id, broker_epoch) is not None:
            del self._sessions[broker_id]

    def stalest(self, now_ms: int) -> BrokerGeneration | None:
        """The longest silent broker whose session has run out, if any. It stays in the table."""
        for broker_id, session in self._sessions.items():
            if now_ms - session.last_contact_ms >= self.timeout_ms:
                return BrokerGeneration(broker_id, session.broker_epoch)
            break
        return None

    def next_expiry_ms(self) -> int | None:
        """When the next session runs out, if nothing is heard until then."""
        for session in self._sessions.values():
            return session.last_contact_ms + self.timeout_ms
        return None

    def __len__(self) -> int:
        return len(self._sessions)
