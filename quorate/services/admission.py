"""How much clients may ask of one node at a time.

Every kind of call has a maximum; what comes on top is refused at once with RESOURCE_EXHAUSTED,
unevaluated, so that a crowd costs refusals and not memory. No caller gets all places of a kind
(``quorum.fair_share``). The numbers are ``[limits]`` of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from quorate.client.limits import PRODUCER_WINDOW
from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode
from quorum.fair_share import FairShare
from quorum.transport.message_reads import MESSAGE_SECONDS_MAX


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Most calls of each kind that are open at the same time, over all clients of a node.

    The controller enforces the producer window; this class only announces it to clients.
    """

    streams_max: int = 1024
    watches_max: int = 1024
    unary_calls_max: int = 1024
    streams_per_caller_max: int = 128
    """Most write streams, and most read streams, of one caller: each may hold a message of which
    the rest never comes.
    """
    message_seconds_max: float = MESSAGE_SECONDS_MAX
    """How long a request, or the first message of a stream, may take to arrive."""
    stream_idle_seconds_max: float = 600.0
    """Longest idle time of a stream that is owed no answer, in seconds; 0: unlimited."""
    producer_window: int = PRODUCER_WINDOW
    """Most open commands of one producer, as announced on write streams."""


class Gate:
    """Counts the calls of one kind. Owned by the event loop."""

    def __init__(self, what: str, most: int, *, caller_most: int | None = None) -> None:
        self._what = what
        self.places = FairShare(what.replace(" ", "_"), most, caller_most=caller_most)

    @property
    def open_count(self) -> int:
        """Calls that are open, between 0 and the maximum."""
        return self.places.open_count

    def enter(self, caller: str = "") -> None:
        """Take a place for ``caller``, to be given back by ``leave``.

        Raises:
            RequestRefusedError: RESOURCE_EXHAUSTED, the maximum is open already, or this caller
                has its share.
        """
        if not self.places.take(caller):
            raise RequestRefusedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"{self.open_count} {self._what} are open already, "
                f"{self.places.held_by(caller)} of this caller, the maximum",
            )

    def leave(self, caller: str = "") -> None:
        """Give back a place that ``enter`` took."""
        self.places.release(caller)

    @contextmanager
    def passing(self, caller: str = "") -> Iterator[None]:
        """Around one call of ``caller``.

        Raises:
            RequestRefusedError: RESOURCE_EXHAUSTED; see ``enter``.
        """
        self.enter(caller)
        try:
            yield
        finally:
            self.leave(caller)
