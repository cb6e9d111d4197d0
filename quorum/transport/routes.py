"""Routes of responses: back to the stream or call that their request came from.

The core addresses a response by (sender, request id). A replica may have several streams here
(one per address of this node), so the sender alone does not identify one. A response without a
route is dropped: its requester has given up or died.
"""

from __future__ import annotations

from itertools import count
from typing import Final, Protocol

from quorum.core.messages.message_types import Message
from quorum.transport.counters import TransportCounters
from quorum.types import NodeId

ANONYMOUS_BELOW: Final = -1000
"""Sender ids below this are assigned here, to unary calls and to observers without an id."""


class Route(Protocol):
    """A stream or call that can carry a response back."""

    def deliver(self, message: Message) -> None:
        """Send the response. Never blocks."""


class Routes:
    """Open requests of all inbound streams and calls. Owned by the event loop.

    A request id must be unique among the open requests of one sender, over all its streams; a
    repeated one replaces the older one's route.
    """

    def __init__(self, counters: TransportCounters) -> None:
        self._counters = counters
        self._routes: dict[tuple[NodeId, int], Route] = {}
        self._anonymous = count(ANONYMOUS_BELOW - 1, -1)

    def __len__(self) -> int:
        return len(self._routes)

    def anonymous(self) -> NodeId:
        """Return a sender id that was never used before."""
        return next(self._anonymous)

    def open(self, sender: NodeId, request_id: int, route: Route) -> None:
        """Register the route of a request's response."""
        self._routes[sender, request_id] = route

    def close(self, sender: NodeId, request_id: int, route: Route) -> None:
        """Remove the route, unless a newer request uses the id."""
        if self._routes.get((sender, request_id)) is route:
            del self._routes[sender, request_id]

    def respond(self, to: NodeId, message: Message) -> None:
        """Send a response back; drop and count it if its route is gone."""
        route = self._routes.pop((to, message.request_id), None)
        if route is None:
            self._counters.responses_unroutable += 1
        else:
            route.deliver(message)
