"""RaftService: the peer stream, for both carriers, and the unary methods on a gRPC server.

All methods take raw bytes: gRPC's parser would answer malformed bytes with UNKNOWN and log a
traceback, and would copy records once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc

from quorum.fair_share import FairShare
from quorum.transport.answers import end
from quorum.transport.callers import caller_of
from quorum.transport.hello import Hello
from quorum.transport.inbound import InboundStream
from quorum.transport.limits import (
    GOODBYE_S_MAX,
    STREAMS_MAX,
    STREAMS_PER_CALLER_MAX,
)
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME, Link
from quorum.transport.peer_sessions import PeerSessions
from quorum.transport.routes import Routes
from quorum.transport.streams import ServedStream
from quorum.transport.unary import UnaryCalls
from quorum.types import NodeId


class RaftService:
    """The service that peers call on this node. Owned by the event loop.

    Life-cycle: add ``handlers`` to a server made with ``SERVER_OPTIONS``; call ``send_goodbye``
    before stopping that server.
    """

    def __init__(
        self,
        link: Link,
        on_accepted: Callable[[NodeId], None] = lambda _: None,
        has_met: Callable[[Hello], bool | None] = lambda _: None,
    ) -> None:
        """``on_accepted`` receives the id of every peer whose stream was accepted. ``has_met``
        returns whether this node met a hello's process at its replica's address; None if no such
        address is known.
        """
        self._link = link
        self._has_met = has_met
        self._on_accepted = on_accepted
        self.routes = Routes(link.counters)
        """Routes of responses."""
        self._unary = UnaryCalls(link, self.routes)
        self._streams: set[InboundStream] = set()
        self._peer_sessions = PeerSessions()
        self._places = FairShare("peer_streams", STREAMS_MAX, caller_most=STREAMS_PER_CALLER_MAX)

    def quotas(self) -> tuple[FairShare, ...]:
        """Return the quotas of callers, for metrics."""
        return self._places, self._unary.places, self._unary.reads.places

    @property
    def stream_count(self) -> int:
        """Inbound streams now."""
        return len(self._streams)

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers to add to the server."""
        methods: dict[str, grpc.RpcMethodHandler] = {
            name: grpc.stream_unary_rpc_method_handler(handler)
            for name, handler in self._unary.methods().items()
        }
        methods[EXCHANGE_METHOD] = grpc.stream_stream_rpc_method_handler(self.exchange)
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def send_goodbye(self) -> None:
        """Announce to every peer that this end closes on purpose; takes a bounded time.

        Unary calls that wait for an answer end with UNAVAILABLE, and so do new ones.
        """
        self._unary.close()
        if self._streams:
            # Goodbyes that are late end with their streams.
            goodbyes = [asyncio.ensure_future(s.send_goodbye()) for s in self._streams]
            await asyncio.wait(goodbyes, timeout=GOODBYE_S_MAX)

    async def exchange(self, _requests: object, context: ServedStream) -> None:
        """Serve one peer stream, of either carrier, until it ends.

        Raises:
            AbortError: It was ended with a status.
        """
        caller = caller_of(context)
        if not self._places.take(caller):
            self._link.counters.streams_rejected += 1
            await end(
                context,
                EXCHANGE_METHOD,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self._places.open_count} streams are open already, "
                f"{self._places.held_by(caller)} of them from this caller",
            )
        stream = InboundStream(
            context,
            self._link,
            self.routes,
            self._peer_sessions,
            self._on_accepted,
            self._is_known,
        )
        self._streams.add(stream)
        try:
            await stream.serve()
        finally:
            self._streams.discard(stream)
            self._places.release(caller)

    def _is_known(self, hello: Hello) -> bool | None:
        """Whether a stream is proven to be of the replica in its hello; None if it is no voter.

        A certificate that names nodes proves it and was checked before. Otherwise the proof is
        that this node reached the same process at that replica's address.
        """
        return True if self._link.names is not None else self._has_met(hello)
