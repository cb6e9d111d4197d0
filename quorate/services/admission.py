"""How much clients may ask of one node at a time.

Every kind of call has a maximum; what comes on top is refused at once with RESOURCE_EXHAUSTED,
unjudged, so that a crowd costs refusals and not memory. The numbers are ``[limits]`` of the
configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from quorate.client.limits import PRODUCER_WINDOW
from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Most calls of each kind that are open at the same time, over all clients of a node.

    The producer window is the controller's to enforce; here it is only told.
    """

    write_streams_max: int = 1024
    watches_max: int = 1024
    unary_calls_max: int = 1024
    producer_window: int = PRODUCER_WINDOW
    """Most open commands of one producer, as told to write streams."""


class Gate:
    """Counts the calls of one kind. Owned by the event loop.

    Invariant: ``open_count`` is between 0 and the maximum.
    """

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self.open_count = 0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Around one call.

        Raises:
            RequestRefusedError: RESOURCE_EXHAUSTED, the maximum is open already.
        """
        if self.open_count >= self._most:
            raise RequestRefusedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"{self.open_count} {self._what} are open already, the maximum",
            )
        self.open_count += 1
        try:
            yield
        finally:
            self.open_count -= 1
