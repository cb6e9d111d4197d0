"""Requests to peers: one record per request that is due, waits for its answer, or pauses.

A conversation owns its requests and keeps here, by request id, those that wait for an answer. So a
response, or the report that none will come, finds its request in one place, for all conversations.
The rules for sending, answers, failures and time-outs are in ``protocol.requests``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from quorum.core.state.held_fetches import NEVER_MS
from quorum.types import NodeId, VersionRange


class PurposeKind(NamedTuple):
    """What holds for all requests of one purpose."""

    name: str
    times_out: bool
    """Whether silence for ``request_timeout_ms`` is a failure; else something larger ends it."""
    is_retried: bool
    """Whether a failed request is sent again after a back-off."""
    outlives_role: bool = False
    """Whether a change of role leaves it open."""
    is_by_address: bool = False
    """Whether a bootstrap server may be asked, under a negative number; it may answer under its
    own."""


class Purpose(Enum):
    """What a request is for: the conversation that takes its response."""

    BOOTSTRAP = PurposeKind("Bootstrap", times_out=True, is_retried=True, outlives_role=True)
    VOTE = PurposeKind("Vote", times_out=True, is_retried=True)
    END_EPOCH = PurposeKind("EndQuorumEpoch", times_out=True, is_retried=True)
    FETCH = PurposeKind("Fetch", times_out=True, is_retried=True, is_by_address=True)
    FETCH_SNAPSHOT = PurposeKind(
        "FetchSnapshot", times_out=True, is_retried=False, is_by_address=True
    )
    LEADER_SEARCH = PurposeKind(
        "leader search", times_out=False, is_retried=False, is_by_address=True
    )
    BEGIN_EPOCH = PurposeKind("BeginQuorumEpoch", times_out=False, is_retried=True)
    PROBE = PurposeKind("endpoint probe", times_out=False, is_retried=True)
    TRANSFER = PurposeKind("leadership transfer", times_out=False, is_retried=False)
    SELF_REGISTRATION = PurposeKind("self registration", times_out=False, is_retried=False)
    READ_POSITION = PurposeKind("ReadPosition", times_out=True, is_retried=True)
    CHAIN_DIGEST = PurposeKind("ChainDigest", times_out=True, is_retried=True, outlives_role=True)


@dataclass(slots=True, eq=False)
class PeerRequest:
    """Something asked of one peer, over all attempts.

    Life-cycle: due, sent (``request_id`` is set), then answered, or failed and due again after a
    back-off. Times are monotonic milliseconds.
    """

    peer: NodeId
    purpose: Purpose
    due_ms: int = 0
    """When to send; while it is open, when to stop waiting."""
    request_id: int = 0
    """The id of the attempt that waits for its answer; 0 for none."""
    failures: int = 0
    """Attempts in a row that brought nothing; they lengthen the back-off."""

    def is_answered_by(self, sender: NodeId) -> bool:
        """Whether a response of ``sender`` may be the answer."""
        return sender == self.peer or (
            self.purpose.value.is_by_address and min(sender, self.peer) < 0
        )


@dataclass(slots=True, eq=False, kw_only=True)
class InFlight(PeerRequest):
    """A Fetch or FetchSnapshot that is under way or waits for the disk before it leaves.

    It is not retried itself: a failure is the peer's (``PeerTable``), and the next one may go
    elsewhere. It is due, which means given up, at ``NEVER_MS`` while it has not left.
    """

    ticket: int
    """Leaves when this is durable."""
    position: int = 0
    """Where the chunk begins that FetchSnapshot asks for."""
    supported: tuple[VersionRange, ...] = ()
    """What a Fetch advertises of this release (``FetchRequest.supported``)."""
    asks_ahead: bool = True
    """Whether chunks behind this one may be asked for; not again once one of them was lost."""
    behind: InFlight | None = None
    """The request for the next chunk, sent ahead. It is useless if this one fails, and
    becomes a pending request when this one is answered."""

    @property
    def has_left(self) -> bool:
        """Whether it was sent."""
        return self.due_ms < NEVER_MS


class PendingRequests:
    """The requests that wait for an answer, by request id.

    Invariants:
        1. A request is in here, once, exactly while its ``request_id`` is not 0.
        2. At most one Fetch or FetchSnapshot is ``in_flight``, and it is in here.
    """

    __slots__ = ("_by_id", "in_flight", "last_id")

    def __init__(self, last_id: int) -> None:
        """Number requests from ``last_id`` + 1 on.

        It is random: a response to a request of an earlier process run must not match one of this
        process run.
        """
        self.last_id = last_id
        self._by_id: dict[int, PeerRequest] = {}
        self.in_flight: InFlight | None = None
        """The one Fetch or FetchSnapshot that is under way or waits for the disk. Read-only."""

    def __iter__(self) -> Iterator[PeerRequest]:
        return iter(tuple(self._by_id.values()))

    def begin_flight(self, flight: InFlight) -> None:
        """Put ``flight`` in flight, under its request id; close the one before."""
        request_id = flight.request_id
        self.end_flight()
        flight.request_id = request_id
        self.in_flight = self._by_id[request_id] = flight

    def end_flight(self) -> None:
        """Close the request in flight, if there is one."""
        if self.in_flight is not None:
            self.close(self.in_flight)
            self.in_flight = None

    def next_id(self) -> int:
        """Return a request id that no earlier request of this process run carried."""
        self.last_id += 1
        return self.last_id

    def get(self, request_id: int) -> PeerRequest | None:
        """Return the request with this id; None once it was closed."""
        return self._by_id.get(request_id)

    def open(self, request: PeerRequest, request_id: int) -> None:
        """Wait for the answer to ``request_id``; stop waiting for that of an earlier attempt."""
        self._by_id.pop(request.request_id, None)
        request.request_id = request_id
        self._by_id[request_id] = request

    def close(self, request: PeerRequest) -> None:
        """Stop waiting for the answer; no effect if the request is not open."""
        self._by_id.pop(request.request_id, None)
        request.request_id = 0

    def close_all(self, *purposes: Purpose) -> None:
        """Close every open request of these purposes."""
        for request in self:
            if request.purpose in purposes:
                self.close(request)

    def close_of_role(self) -> None:
        """Close what no longer matters once the role has changed."""
        for request in self:
            if not request.purpose.value.outlives_role:
                self.close(request)
