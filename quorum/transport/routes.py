"""Where responses go: back to the very stream or call that their request came from.

The core addresses a response by (sender, request id). A replica may have several streams here
(one per address it knows us by), so the sender alone would not do. A response whose way is gone
is dropped: its requester has given up or died.
"""

from __future__ import annotations

from itertools import count
from typing import Final, Protocol

from quorum.core.messages.message_types import Message
from quorum.transport.counters import TransportCounters
from quorum.types import NodeId

ANONYMOUS_BELOW: Final = -1000
"""Sender ids below this are made here: for unary calls and for observers without an id."""


class Route(Protocol):
    """Something that can carry a response back."""

    def deliver(self, message: Message) -> None:
        """Send it. Never blocks."""


class Routes:
    """Open requests of all inbound streams and calls. Owned by the event loop.

    A request id must be unique among the open requests of one sender, whatever the stream; a
    repeated one takes the older one's answer.
    """

    def __init__(self, counters: TransportCounters) -> None:
        self._counters = counters
        self._ways: dict[tuple[NodeId, int], Route] = {}
        self._anonymous = count(ANONYMOUS_BELOW - 1, -1)

    def __len__(self) -> int:
        return len(self._ways)

    def anonymous(self) -> NodeId:
        """A sender id that was never given out before."""
        return next(self._anonymous)

    def open(self, sender: NodeId, request_id: int, route: Route) -> None:
        """The response to this request goes that way."""
        self._ways[sender, request_id] = route

    def close(self, sender: NodeId, request_id: int, route: Route) -> None:
        """Forget it, unless a newer request took the id over."""
        if self._ways.get((sender, request_id)) is route:
            del self._ways[sender, request_id]

    def respond(self, to: NodeId, message: Message) -> None:
        """Send a response back; dropped and counted when its way is gone."""
        route = self._ways.pop((to, message.request_id), None)
        if route is None:
            self._counters.responses_unroutable += 1
        else:
            route.deliver(message)
