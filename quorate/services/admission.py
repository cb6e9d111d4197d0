"""Limits on the concurrent calls of clients to one node.

Every kind of call has a maximum. Further calls are refused at once with RESOURCE_EXHAUSTED, without
evaluation, so overload costs refusals and not memory. One caller cannot take all places of a kind
(``quorum.fair_share``). The limits are ``[limits]`` of the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.client.limits import PRODUCER_WINDOW
from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode
from quorum.fair_share import FairShare
from quorum.transport.message_reads import MESSAGE_SECONDS_MAX


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Maximum number of open calls of each kind, over all clients of a node.

    The controller enforces the producer window; this class only announces it to clients.
    """

    streams_max: int = 1024
    watches_max: int = 1024
    unary_calls_max: int = 1024
    streams_per_caller_max: int = 128
    """Maximum of write streams, and of read streams, per caller: each may hold an incomplete
    message.
    """
    message_seconds_max: float = MESSAGE_SECONDS_MAX
    """Time limit for the arrival of a request, or of the first message of a stream, in seconds."""
    stream_idle_seconds_max: float = 600.0
    """Maximum idle time, in seconds, of a stream without pending answers; 0: unlimited."""
    producer_window: int = PRODUCER_WINDOW
    """Maximum number of open commands of one producer, as announced on write streams."""


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
        """Take a place for ``caller``, to be returned with ``leave``.

        Raises:
            RequestRefusedError: RESOURCE_EXHAUSTED, the maximum is reached for all callers or for
                this caller.
        """
        if not self.places.take(caller):
            raise RequestRefusedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"{self.open_count} {self._what} are open, {self.places.held_by(caller)} of them "
                "of this caller: the maximum is reached; retry later",
            )

    def leave(self, caller: str = "") -> None:
        """Return a place that ``enter`` took."""
        self.places.release(caller)

    def passing(self, caller: str = "") -> Passing:
        """Hold a place for one call of ``caller``, in a ``with`` statement.

        Entering it raises what ``enter`` raises.
        """
        return Passing(self, caller)


class Passing:
    """A place of a gate. Not a generator, which takes three times as long, in every call."""

    __slots__ = ("_caller", "_gate")

    def __init__(self, gate: Gate, caller: str) -> None:
        self._gate = gate
        self._caller = caller

    def __enter__(self) -> None:
        self._gate.enter(self._caller)

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self._caller)
