"""The client side of a peer: one persistent stream to it, reopened for ever.

A task connects, holds the stream until it ends, classifies the end, and begins again. This
module owns reconnecting, request deadlines, and distinguishing a dead process from other failures
(ADR 8). The stream itself is ``quorum.transport.conversation``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from quorum.core.messages.message_types import Message, Request
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.transport.backoff import Backoff
from quorum.transport.carrier import Carrier
from quorum.transport.conversation import Conversation, Ended, Ending
from quorum.transport.framing import is_answer
from quorum.transport.hello import OWN_ADDRESS, Hello
from quorum.transport.limits import (
    CONNECT_TIMEOUT_S,
    LAPSE_AFTER_S,
    OPEN_REQUESTS_MAX,
    RECONNECT_BACKOFF_S,
    REFUSAL_WINDOW_S,
    SUSPECT_RETRY_S,
)
from quorum.transport.link import Link
from quorum.transport.outbox import Outbox
from quorum.transport.probe import Attempt, Reachability, SocketAddress, connect_once, resolve
from quorum.transport.requests import OpenRequests
from quorum.types import NodeId


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """The state of a connection, for an operator."""

    peer: NodeId
    address: str
    is_connected: bool
    problem: str
    """Why it is not connected, in words; empty while it is."""


class PeerChannel:
    """The stream to one peer at one address. Owned by the event loop.

    Invariants:
        1. Every request handed to ``send`` ends in exactly one of: its response, or
           ``on_request_failed``; until ``close``, after which neither comes.
        2. ``on_refused`` follows only an established stream that broke, once for each.

    Life-cycle: ``start``, then ``send`` at will, then ``close``.
    """

    def __init__(self, peer: NodeId, address: str, link: Link, *, is_hint: bool = False) -> None:
        """``is_hint``: only a message named the address; the hello hides our process id."""
        self.peer = peer
        self.address = address
        self.is_hint = is_hint
        self._link = link
        self._requests = OpenRequests(link.request_timeout_s, self._expired)
        self._waiting: deque[tuple[int, bytes]] = deque(maxlen=OPEN_REQUESTS_MAX)
        self._conversation: Conversation | None = None
        self._outbox: Outbox | None = None
        self._wanted_at = 0.0
        self._wanted = asyncio.Event()
        self._nudged = asyncio.Event()
        self._backoff = Backoff(link.rng)
        self._carrier = Carrier(link)
        self._last_address: tuple[SocketAddress, ...] = ()
        self._suspect_until = 0.0
        self._problem = "not connected yet"
        self._has_contact = False
        self._refusal = ""
        self._refusal_code = ErrorCode.NONE
        """Why requests fail at once during a pause after a refusal; empty at all other times."""
        self.met: Hello | None = None
        """The hello of the process last met at this address; None before the first."""
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def status(self) -> PeerStatus:
        """Return the current state of the connection."""
        connected = self._outbox is not None
        return PeerStatus(self.peer, self.address, connected, "" if connected else self._problem)

    def start(self) -> None:
        """Start the task that connects."""
        self.want()
        self._task = self._link.supervisor.start(f"peer-{self.peer}", self._run)

    def want(self) -> None:
        """Note that the peer is needed; a channel that has lapsed connects again."""
        self._wanted_at = asyncio.get_running_loop().time()
        self._wanted.set()

    def nudge(self) -> None:
        """End a pause: the peer has just opened a stream to us, so it may be reachable again."""
        self._nudged.set()

    async def close(self) -> list[int]:
        """End the stream.

        Returns:
            Ids of the requests that get no answer and have not been reported.
        """
        self._requests.close()
        unanswered = self._requests.take_all()
        self._waiting.clear()
        self._is_closed = True
        if self._task is not None:
            conversation = self._conversation
            if conversation is not None and conversation.is_established:
                conversation.abandon("closed")
            else:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        return unanswered

    def send(self, request: Request, frame: bytes) -> None:
        """Queue an encoded request; without a connection it waits for one, or for its deadline.

        During the pause after a refusal the request fails at once, so that the caller may ask
        another peer.
        """
        self.want()
        if self._refusal:
            self._fail_soon(request.request_id, self._refusal, self._refusal_code)
            return
        evicted = self._requests.add(request, self._wanted_at)
        if evicted is not None:
            self._fail_soon(evicted)
        if self._outbox is None:
            self._waiting.append((request.request_id, frame))
        elif not self._outbox.push(frame):
            self._requests.take(request.request_id)
            self._fail_soon(request.request_id)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        backoff = self._backoff
        while True:
            began = loop.time()
            self._carrier.begin()
            attempt = await self._attempt()
            ended = Ended(Ending.NEVER_BEGAN, attempt.detail)
            if attempt.address is not None:
                ended = await self._converse(attempt.address)
                if self._is_closed:
                    return
            if ended.ending is Ending.MOVED:
                continue
            self._evaluate_refusal(attempt, ended.ending)
            if self._has_left_tcp(ended) and ended.ending is Ending.NEVER_BEGAN:
                continue
            self._unwell(ended.problem)
            was_established = ended.ending in (Ending.BROKEN, Ending.CLOSED)
            self._refusal = ended.problem if ended.ending is Ending.REFUSED_HELLO else ""
            self._refusal_code = ended.code if self._refusal else ErrorCode.NONE
            self._fail_open(self._refusal, keep_waiting=was_established)
            now = loop.time()
            match ended.ending:
                case Ending.BROKEN if now - began > RECONNECT_BACKOFF_S:
                    continue
                case Ending.BROKEN | Ending.CLOSED:
                    pause_s = backoff.after_reaching()
                case Ending.NEVER_BEGAN if now < self._suspect_until:
                    pause_s = SUSPECT_RETRY_S
                case Ending.NEVER_BEGAN if attempt.reachability is Reachability.REFUSED:
                    self._link.counters.connects_failed += 1
                    pause_s = backoff.after_reaching()
                case Ending.NEVER_BEGAN:
                    self._link.counters.connects_failed += 1
                    pause_s = backoff.after_silence()
                case _:
                    self._link.counters.connects_failed += 1
                    pause_s = backoff.after_refusal()
            await self._pause(pause_s)
            self._refusal = ""

    def _has_left_tcp(self, ended: Ended) -> bool:
        """Return to gRPC if no TCP stream came about, unless the peer's death may be seen next."""
        now = asyncio.get_running_loop().time()
        if now < self._suspect_until or not self._carrier.leave_tcp(now):
            return False
        if self._carrier.has_failed:
            about = f"TCP stream to {self.peer}"
            problem = f"{self.address}: {ended.problem}; gRPC is used instead"
            self._link.rate_limited_log.warn(about, problem, now)
        return True

    def _evaluate_refusal(self, attempt: Attempt, ending: Ending) -> None:
        """Report a dead process: the stream broke, and the next connect was refused."""
        now = asyncio.get_running_loop().time()
        if ending is Ending.BROKEN:
            self._suspect_until = now + REFUSAL_WINDOW_S
            return
        if attempt.reachability is Reachability.REFUSED and now < self._suspect_until:
            self._suspect_until = 0.0
            self._link.counters.refusals += 1
            self._link.handler.on_refused(self.peer)
        elif attempt.reachability is Reachability.UNKNOWN or ending is not Ending.NEVER_BEGAN:
            self._suspect_until = 0.0

    async def _pause(self, pause_s: float) -> None:
        self._nudged.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._nudged.wait()
        self._wanted.clear()
        if asyncio.get_running_loop().time() - self._wanted_at > LAPSE_AFTER_S:
            self._problem += "; not tried again before it is needed"
            await self._wanted.wait()

    async def _attempt(self) -> Attempt:
        """Try one TCP connect.

        Right after a break it uses the stream's address without the resolver: a delay or a new
        answer of the name service would weaken the evidence of a refusal.
        """
        addresses = self._last_address
        if not addresses or asyncio.get_running_loop().time() >= self._suspect_until:
            try:
                addresses = await resolve(self.address)
            except (OSError, ValueError) as error:
                # A name that stops resolving is no evidence about the peer, which is probably
                # still at its old address.
                if not addresses:
                    return Attempt(Reachability.UNKNOWN, detail=f"cannot resolve: {error}")
        at = self._carrier.address
        attempt = await connect_once(tuple(map(at, addresses)), CONNECT_TIMEOUT_S)
        if attempt.address is not None:
            self._last_address = tuple(a for a in addresses if at(a) == attempt.address)
        return attempt

    async def _converse(self, address: SocketAddress) -> Ended:
        host = self.address.rpartition(":")[0].strip("[]")
        name = self._link.certificate_name(self.peer, host)
        self._conversation = Conversation(
            self.peer,
            self._carrier.stream(address, name),
            self._link,
            on_established=self._established,
            on_message=self._take,
            is_hint=self.is_hint,
            moves=self._moves,
        )
        try:
            return await self._conversation.hold()
        finally:
            self._conversation = self._outbox = None

    def _moves(self, theirs: Hello) -> bool:
        return self._carrier.moves(theirs, asyncio.get_running_loop().time())

    def _established(self, outbox: Outbox) -> None:
        self._outbox = outbox
        if self._conversation is not None:
            self.met = self._conversation.met
        self._suspect_until = 0.0
        while self._waiting:
            request_id, frame = self._waiting.popleft()
            if request_id in self._requests and not outbox.push(frame):
                self._requests.take(request_id)
                self._fail_soon(request_id)

    def _take(self, message: Message) -> None:
        if not self._has_contact:
            # Not earlier: the peer may still refuse this node after its hello.
            self._has_contact = True
            self._backoff.record_contact()
            self._link.rate_limited_log.settle(f"peer {self.peer}", "answers again")
        asked = self._requests.take(message.request_id)
        if asked is None:
            self._link.counters.responses_unmatched += 1
            return
        if not is_answer(message, asked):
            self._fail(message.request_id)
            raise PeerProtocolError(
                f"{type(message).__name__} as the answer to {asked.__name__} {message.request_id}"
            )
        self._link.deliver(self.peer, message)

    def _expired(self, request_id: int, asked_at: float) -> None:
        conversation = self._conversation
        if conversation is not None and self._outbox and conversation.last_contact_at < asked_at:
            # After a network fault TCP may wait long before it sends again; a new connection
            # does not. For a peer that is only slow a new connection does no harm.
            conversation.abandon(f"silent for {self._link.request_timeout_s:g} s")
            self._outbox = None
        self._fail(request_id)

    def _fail_open(self, refusal: str, *, keep_waiting: bool) -> None:
        """Fail the requests that were sent; waiting ones too, unless ``keep_waiting``."""
        waiting = {request_id for request_id, _ in self._waiting} if keep_waiting else set()
        if not keep_waiting:
            self._waiting.clear()
        for request_id in [each for each in self._requests if each not in waiting]:
            self._requests.take(request_id)
            self._fail(request_id, refusal, self._refusal_code)

    def _fail_soon(
        self, request_id: int, refusal: str = "", code: ErrorCode = ErrorCode.NONE
    ) -> None:
        """Fail a request in a later turn of the loop: the caller is still inside ``send``."""
        asyncio.get_running_loop().call_soon(self._fail, request_id, refusal, code)

    def _fail(self, request_id: int, refusal: str = "", code: ErrorCode = ErrorCode.NONE) -> None:
        self._link.counters.requests_failed += 1
        self._link.handler.on_request_failed(self.peer, request_id, refusal, code)

    def _unwell(self, problem: str) -> None:
        self._problem = problem
        self._has_contact = False
        if problem == OWN_ADDRESS:
            return
        now = asyncio.get_running_loop().time()
        about = f"peer {self.peer}"
        self._link.rate_limited_log.warn(about, f"{self.address}: {problem}", now)
