"""The server side of one peer stream: reads requests, sends their responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import grpc

from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message, ReceivedRequest, Request, Response
from quorum.core.messages.read_messages import ReadPositionRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.errors import ErrorCode, PeerProtocolError, QuorumUsageError
from quorum.transport.answers import end, name_refusal
from quorum.transport.framing import (
    ALIVE,
    GOODBYE_FRAME,
    PROBE_FRAME,
    decode_frame,
    encode_frame,
    is_request,
    sender_key,
)
from quorum.transport.hello import (
    OWN_ADDRESS,
    Hello,
    decode_hello,
    encode_hello,
    hello_problem,
    served_hello,
)
from quorum.transport.limits import HELLO_TIMEOUT_S, OPEN_REQUESTS_MAX, STREAM_SILENCE_S
from quorum.transport.link import EXCHANGE_METHOD, STREAM_ERRORS, Link, forget_failure
from quorum.transport.outbox import Outbox
from quorum.transport.peer_sessions import PeerSession, PeerSessions
from quorum.transport.routes import Routes
from quorum.transport.streams import EOF, ServedStream
from quorum.types import NO_NODE, NodeId, uuid_to_text

OBSERVERS_REQUESTS: Final = (
    FetchRequest, FetchSnapshotRequest, ReadPositionRequest, ChainDigestRequest,
)  # fmt: skip
"""What a node may ask for whose certificate is an observer's; the rest takes part in the quorum."""


class InboundStream:
    """One call of Exchange, or one TCP stream. Owned by the event loop.

    Invariants:
        1. No message reaches the runtime before the hello was accepted.
        2. Every request has the replica key of the hello: a stream belongs to one replica.
        3. A stream whose peer answers no probe ends within three times ``STREAM_SILENCE_S``.
    """

    def __init__(
        self,
        context: ServedStream,
        link: Link,
        routes: Routes,
        peer_sessions: PeerSessions,
        on_accepted: Callable[[NodeId], None],
        is_known: Callable[[Hello], bool | None],
    ) -> None:
        self._context = context
        self._link = link
        self._routes = routes
        self._peer_sessions = peer_sessions
        self._opened = peer_sessions.next_stream()
        self._on_accepted = on_accepted
        self._is_known = is_known
        self._is_proven = False
        """Whether the peer is proven to be the replica that its hello names (ADR 52)."""
        self._voter_problem: str | None = None
        """Why the peer's certificate does not let it vote; None if it may."""
        self._peer_session: PeerSession | None = None
        self._outbox = Outbox(context.write, link.counters, self._warn)
        self._open: dict[int, type[Request]] = {}
        self._sender = NO_NODE
        self._frames = 0
        self._frames_checked = 0
        self._is_probed = False
        self._check: asyncio.TimerHandle | None = None
        self._end: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Exchange hellos, then deliver requests until the stream ends."""
        try:
            hello = await self._shake_hands()
            self._on_accepted(hello.key.id)
            self._sender = hello.key.id if hello.key.id != NO_NODE else self._routes.anonymous()
            self._check_later()
            await self._read(hello)
        except PeerProtocolError as error:
            self._link.counters.malformed += 1
            self._warn(str(error))
            await end(self._context, EXCHANGE_METHOD, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except STREAM_ERRORS:
            # The peer is gone; its requests are closed below.
            pass
        finally:
            if self._check is not None:
                self._check.cancel()
            self._outbox.close()
            if self._peer_session is not None:
                self._peer_sessions.release(self._peer_session)
            for request_id in self._open:
                self._routes.close(self._sender, request_id, self)
        if self._end is not None:
            await self._end  # Raises, to end the handler.

    async def send_goodbye(self) -> None:
        """Announce after all queued frames that this end closes on purpose."""
        await self._outbox.finish(GOODBYE_FRAME)

    def deliver(self, message: Message) -> None:
        """Send the response to one of this stream's requests (``routes.Route``)."""
        request = self._open.pop(message.request_id, None)
        try:
            self._outbox.push(encode_frame(message))
        except QuorumUsageError as error:
            self._link.counters.outbox_dropped += 1
            self._warn(str(error))
            return
        if (
            request is not None
            and isinstance(message, Response)
            and message.error is not ErrorCode.NONE
        ):
            name_refusal(request, message.error)

    async def _shake_hands(self) -> Hello:
        """Exchange hellos. Ours is written even if theirs is refused, so that both operators can
        read the difference.
        """
        context = self._context
        # Waited for, not cancelled (DESIGN.md, three traps). It ends with the call.
        read = asyncio.ensure_future(context.read())
        read.add_done_callback(forget_failure)
        arrived, _ = await asyncio.wait({read}, timeout=HELLO_TIMEOUT_S)
        if not arrived:
            await end(context, EXCHANGE_METHOD, grpc.StatusCode.DEADLINE_EXCEEDED, "no hello came")
        data = read.result()
        try:
            theirs = decode_hello(data if data is not EOF else b"")
        except PeerProtocolError as error:
            self._link.counters.malformed += 1
            self._warn(str(error))
            await end(context, EXCHANGE_METHOD, grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise
        await context.write(encode_hello(served_hello(self._link.hello)))
        problem = hello_problem(self._link.hello, theirs)
        if problem is not None:
            if problem.text != OWN_ADDRESS:
                self._link.counters.hellos_refused += 1
                self._warn(f"stream refused: {problem.text}")
            status = grpc.StatusCode.FAILED_PRECONDITION
            await end(context, EXCHANGE_METHOD, status, problem.text, problem.code)
        await self._check_identity(theirs)
        self._peer_session = await self._peer_sessions.claim(theirs, self._probe, self._opened)
        if self._peer_session is None:
            clone = (
                f"another live process speaks as node {theirs.key.id} with directory id "
                f"{uuid_to_text(theirs.key.directory_id)}: one of the two has a copy of its disk"
            )
            self._link.counters.clones_refused += 1
            self._warn(f"stream refused: {clone}")
            await end(context, EXCHANGE_METHOD, grpc.StatusCode.FAILED_PRECONDITION, clone)
        return theirs

    def _probe(self) -> None:
        self._outbox.push(PROBE_FRAME)

    def _check_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._check = loop.call_later(STREAM_SILENCE_S, self._check_silence)

    def _check_silence(self) -> None:
        """Probe a peer that was silent since the last check; end its stream if it was probed
        before.
        """
        if self._frames != self._frames_checked:
            self._frames_checked, self._is_probed = self._frames, False
        elif not self._is_probed:
            self._is_probed = True
            self._probe()
        else:
            self._link.counters.streams_silent += 1
            self._warn("stream ended: the peer was silent and did not answer a probe")
            # From here, because the reader cannot be interrupted: its read ends with the call.
            silent = end(
                self._context,
                EXCHANGE_METHOD,
                grpc.StatusCode.DEADLINE_EXCEEDED,
                f"silent for {2 * STREAM_SILENCE_S:g} s, and no answer to a probe",
            )
            self._end = asyncio.ensure_future(silent)
            self._end.add_done_callback(forget_failure)
            return
        self._check_later()

    async def _check_identity(self, theirs: Hello) -> None:
        names = self._link.names
        if names is None:
            return
        problem = names.problem(theirs.key.id, self._context.auth_context())
        if problem is not None:
            self._link.counters.impostors_refused += 1
            self._warn(f"stream refused: {problem}")
            await end(self._context, EXCHANGE_METHOD, grpc.StatusCode.PERMISSION_DENIED, problem)
        self._voter_problem = names.voter_problem(theirs.key.id, self._context.auth_context())

    async def _refuse_observer(self, problem: str) -> None:
        self._link.counters.impostors_refused += 1
        self._warn(f"stream ended: {problem}")
        await end(self._context, EXCHANGE_METHOD, grpc.StatusCode.PERMISSION_DENIED, problem)

    async def _read(self, hello: Hello) -> None:
        counters, routes = self._link.counters, self._routes
        read, deliver, eof = self._context.read, self._link.deliver, EOF
        sender, open_requests, key = self._sender, self._open, hello.key
        peer_session = self._peer_session
        while True:
            data = await read()
            if data is eof:
                return
            self._frames += 1
            counters.frames_received += 1
            counters.bytes_received += len(data)
            if peer_session is not None:
                if peer_session.is_superseded:
                    raise PeerProtocolError(f"another process now holds replica key {key.id}")
                if peer_session.asked is not None:
                    peer_session.record_contact()
            if data and data[0] == ALIVE:
                continue
            message = decode_frame(data)
            if not is_request(message):
                raise PeerProtocolError(f"{type(message).__name__} where requests are expected")
            if self._voter_problem and not isinstance(message, OBSERVERS_REQUESTS):
                await self._refuse_observer(f"{type(message).__name__}: {self._voter_problem}")
            claimed = sender_key(message)
            if not claimed.matches(key):
                raise PeerProtocolError(
                    f"{type(message).__name__} of replica {claimed.id} on the stream of {key.id}"
                )
            request_id = message.request_id
            open_requests[request_id] = type(message)
            if len(open_requests) > OPEN_REQUESTS_MAX:
                oldest = next(iter(open_requests))
                del open_requests[oldest]
                routes.close(sender, oldest, self)
                counters.routes_evicted += 1
            routes.open(sender, request_id, self)
            is_proven = self._is_proven or self._prove(hello, message)
            deliver(sender, ReceivedRequest(message, is_proven))

    def _prove(self, hello: Hello, request: Request) -> bool:
        """Whether the sender is proven to be the replica that ``request`` names (ADR 52).

        Checked for each request, because this node may meet the process while the stream is open.
        A Fetch of a replica that is no voter needs no proof: it acknowledges nothing.
        """
        is_known = self._is_known(hello)
        self._is_proven = bool(is_known)
        return self._is_proven or (is_known is None and isinstance(request, FetchRequest))

    def _warn(self, problem: str) -> None:
        # Without the port, which changes with every reconnect.
        about = f"stream from {self._context.peer().rpartition(':')[0]}"
        self._link.rate_limited_log.warn(about, problem, asyncio.get_running_loop().time())
