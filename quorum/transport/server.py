"""RaftService on a gRPC server: the peer stream and the unary methods.

All methods take raw bytes: a parser inside gRPC would answer garbage with UNKNOWN and a stack
trace in the log, and would copy records once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

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
from quorum.transport.unary import UnaryCalls
from quorum.types import NodeId


class RaftService:
    """What peers call on this node. Owned by the event loop.

    Life-cycle: add ``handlers`` to a server made with ``SERVER_OPTIONS``; before stopping that
    server, ``send_goodbye``.
    """

    def __init__(
        self,
        link: Link,
        on_accepted: Callable[[NodeId], None] = lambda _: None,
        has_met: Callable[[Hello], bool | None] = lambda _: None,
    ) -> None:
        """``on_accepted`` is told the id of every peer whose stream was let in. ``has_met`` says
        whether this node met the process of a hello where that replica's address is; None where
        it knows of no such address.
        """
        self._link = link
        self._has_met = has_met
        self._on_accepted = on_accepted
        self.routes = Routes(link.counters)
        """Where responses go back."""
        self._unary = UnaryCalls(link, self.routes)
        self._streams: set[InboundStream] = set()
        self._peer_sessions = PeerSessions()
        self._places = FairShare("peer_streams", STREAMS_MAX, caller_most=STREAMS_PER_CALLER_MAX)

    def quotas(self) -> tuple[FairShare, ...]:
        """The places that callers share, for metrics."""
        return self._places, self._unary.places, self._unary.reads.places

    @property
    def stream_count(self) -> int:
        """Inbound streams now."""
        return len(self._streams)

    def handlers(self) -> grpc.GenericRpcHandler:
        """To be added to the server."""
        methods: dict[str, grpc.RpcMethodHandler] = {
            name: grpc.stream_unary_rpc_method_handler(handler)
            for name, handler in self._unary.methods().items()
        }
        methods[EXCHANGE_METHOD] = grpc.stream_stream_rpc_method_handler(self._exchange)
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def send_goodbye(self) -> None:
        """Tell every peer that this end closes on purpose; takes a bounded time.

        Unary calls that wait for an answer end with UNAVAILABLE, and so does every new one.
        """
        self._unary.close()
        if self._streams:
            # Those that are late end with their streams.
            goodbyes = [asyncio.ensure_future(s.send_goodbye()) for s in self._streams]
            await asyncio.wait(goodbyes, timeout=GOODBYE_S_MAX)

    async def _exchange(self, _requests: object, context: Any) -> None:
        caller = caller_of(context)
        if not self._places.take(caller):
            self._link.counters.streams_rejected += 1
            await end(
                context,
                EXCHANGE_METHOD,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self._places.open_count} streams are open already, "
                f"{self._places.held_by(caller)} of this caller",
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
        """Whether a stream is certainly of the replica that its hello names; None for no voter.

        A certificate that names nodes shows it, and was looked at before; else only that this node
        reached the same process at that replica's address.
        """
        return True if self._link.names is not None else self._has_met(hello)
