"""One outgoing stream to a peer, from its hello to its end, and how that end is classified.

"Broken" means that the other end's kernel closed or reset the stream: only this may mean
that the process died (ADR 8). GOAWAY, an expired keep-alive, a status sent by the peer and every
end before the hello are not evidence of a death.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import grpc
from grpc import aio

from quorum.core.messages.message_types import Message
from quorum.errors import PeerProtocolError
from quorum.transport.framing import ALIVE_FRAME, GOODBYE, PROBE, decode_frame
from quorum.transport.hello import (
    OWN_ADDRESS,
    Hello,
    decode_hello,
    encode_hello,
    hello_problem,
    hinted_hello,
)
from quorum.transport.limits import CLIENT_OPTIONS, HELLO_TIMEOUT_S
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME, STREAM_ERRORS, Link
from quorum.transport.outbox import Outbox
from quorum.transport.probe import SocketAddress
from quorum.types import NodeId

_BROKEN_CONNECTION: Final = re.compile(
    r"socket closed|connection reset|broken pipe|connection aborted|end of tcp stream",
    re.IGNORECASE,
)
"""gRPC's words for a connection that the other end's kernel closed. Its status code,
UNAVAILABLE, is not enough: GOAWAY and an expired keep-alive have the same code."""

_WRITE_FAILED: Final = "Internal error from Core"
"""What grpc.aio reports, as INTERNAL, when a write finds the connection closed before a read."""

_WRONG_NAME: Final = "Hostname Verification Check failed"
"""gRPC's words for a certificate without the expected name. Only the report depends on them."""

_NO_MESSAGES: Final = (GOODBYE, PROBE)

_REFUSALS: Final = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)


class Ending(Enum):
    """How a conversation ended."""

    NEVER_BEGAN = auto()
    """No hello came back."""
    REFUSED_HELLO = auto()
    """One side refuses to talk to the other; an immediate retry does not help. The peer may
    refuse before its hello or after it."""
    BROKEN = auto()
    """Established, then closed or reset below gRPC: the process may have died."""
    CLOSED = auto()
    """Established, then ended in any other way."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Outcome of ``Conversation.hold``."""

    ending: Ending
    problem: str


class _HelloRefusedError(Exception):
    """This node must not talk to the peer."""


class Conversation:
    """One stream. Owned by the event loop; used once.

    ``host`` is the peer's advertised host; ``Link.certificate_name`` derives from it the name
    that the peer's certificate must carry. ``on_message`` takes each message and raises
    ``PeerProtocolError`` to end the stream. With ``is_hint`` only a message named the address: the
    process there gets no process id with which it could speak for this replica.
    """

    def __init__(
        self,
        peer: NodeId,
        address: SocketAddress,
        host: str,
        link: Link,
        *,
        on_established: Callable[[Outbox], None],
        on_message: Callable[[Message], None],
        is_hint: bool = False,
    ) -> None:
        self._peer = peer
        self._is_hint = is_hint
        self._address = address
        self._host = host
        self._link = link
        self._on_established = on_established
        self._on_message = on_message
        self._call: Any = None
        self._abandoned = ""
        self._sent_goodbye = False
        self.is_established = False
        """Whether both hellos were accepted."""
        self.last_contact_at = 0.0
        """Loop time of the last frame."""
        self.met: Hello | None = None
        """The peer's hello, once it was accepted."""

    def abandon(self, reason: str) -> None:
        """End an established stream from our side."""
        self._abandoned = reason
        if self._call is not None:
            self._call.cancel()

    async def hold(self) -> Ended:
        """Connect, exchange hellos and read until the stream ends. Return how it ended."""
        channel = self._open_channel()
        outbox: Outbox | None = None
        try:
            call = channel.stream_stream(f"/{SERVICE_NAME}/{EXCHANGE_METHOD}")()
            self._call = call
            # Here the awaiting task is cancelled: cancelling a call does not wake it before the
            # connection is established.
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                await self._shake_hands(call)
            self.is_established = True
            self.last_contact_at = asyncio.get_running_loop().time()
            self._link.counters.connects += 1
            outbox = Outbox(call.write, self._link.counters, self._warn)
            # Only once the reader runs: a refusal follows right behind the hello, and after a
            # failed write gRPC reports no other reason.
            asyncio.get_running_loop().call_soon(self._announce, outbox)
            await self._read(call, outbox)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - evaluated, or raised
            return self._evaluate(error)
        finally:
            if outbox is not None:
                outbox.close()
            await channel.close()
        return self._ended("the peer ended the stream")

    def _warn(self, problem: str) -> None:
        now = asyncio.get_running_loop().time()
        self._link.rate_limited_log.warn(f"stream to {self._peer}", problem, now)

    def _announce(self, outbox: Outbox) -> None:
        if not outbox.is_closed:
            self._on_established(outbox)

    @property
    def _certificate_name(self) -> str:
        return self._link.certificate_name(self._peer, self._host)

    def _open_channel(self) -> Any:
        link = self._link
        if link.credentials is None:
            return aio.insecure_channel(self._address.target, options=CLIENT_OPTIONS)
        options = (*CLIENT_OPTIONS, ("grpc.ssl_target_name_override", self._certificate_name))
        return aio.secure_channel(self._address.target, link.credentials(), options=options)

    async def _shake_hands(self, call: Any) -> None:
        ours = self._link.hello
        await call.write(encode_hello(hinted_hello(ours) if self._is_hint else ours))
        data = await call.read()
        if data is aio.EOF:
            raise PeerProtocolError("the stream ended before a hello")
        theirs = decode_hello(data)
        problem = hello_problem(self._link.hello, theirs)
        if problem is None and self._peer >= 0 and theirs.key.id != self._peer:
            problem = (
                f"node {theirs.key.id} answers where node {self._peer} is expected: "
                "the address belongs to another node"
            )
        if problem is not None:
            raise _HelloRefusedError(problem)
        self.met = theirs

    async def _read(self, call: Any, outbox: Outbox) -> None:
        loop_time = asyncio.get_running_loop().time
        counters = self._link.counters
        read, on_message, end = call.read, self._on_message, aio.EOF
        while True:
            data = await read()
            if data is end:
                return
            counters.frames_received += 1
            counters.bytes_received += len(data)
            self.last_contact_at = loop_time()
            if data and data[0] in _NO_MESSAGES:
                if data[0] == PROBE:
                    outbox.push(ALIVE_FRAME)
                else:
                    self._sent_goodbye = True
                continue
            on_message(decode_frame(data))

    def _evaluate(self, error: BaseException) -> Ended:
        """Classify the exception that ended the stream; raise it again if it is a bug."""
        counters = self._link.counters
        match error:
            case asyncio.CancelledError():
                task = asyncio.current_task()
                # gRPC raises it for a call cancelled by either end, too.
                if task is not None and task.cancelling():
                    raise error
                return self._ended(self._abandoned or "the call was cancelled")
            case TimeoutError():
                return self._ended(f"no hello within {HELLO_TIMEOUT_S:g} s")
            case _HelloRefusedError():
                counters.hellos_refused += str(error) != OWN_ADDRESS
                return Ended(Ending.REFUSED_HELLO, str(error))
            case PeerProtocolError():
                counters.malformed += 1
                ending = Ending.CLOSED if self.is_established else Ending.REFUSED_HELLO
                return Ended(ending, str(error))
            case aio.AioRpcError():
                return self._evaluate_status(error.code(), error.details() or "")
            case _ if isinstance(error, (*STREAM_ERRORS, asyncio.InvalidStateError)):
                return self._ended(str(error))
        raise error

    def _evaluate_status(self, code: grpc.StatusCode, details: str) -> Ended:
        problem = f"{details} ({code.name})"
        if not self.is_established:
            if code in _REFUSALS:
                self._link.counters.hellos_refused += 1
                return Ended(Ending.REFUSED_HELLO, f"refused by the peer: {problem}")
            if _WRONG_NAME in details:
                self._link.counters.impostors_refused += 1
                problem = f"its certificate is not that of {self._certificate_name}: {problem}"
                return Ended(Ending.REFUSED_HELLO, problem)
            return Ended(Ending.NEVER_BEGAN, problem)
        if code in _REFUSALS:
            # The peer checks the certificate and the peer session only after it has sent its own
            # hello.
            self._link.counters.turned_away += 1
            return Ended(Ending.REFUSED_HELLO, f"refused by the peer: {problem}")
        is_broken = (
            code is grpc.StatusCode.UNAVAILABLE and _BROKEN_CONNECTION.search(details) is not None
        ) or (code is grpc.StatusCode.INTERNAL and details == _WRITE_FAILED)
        if is_broken and not self._sent_goodbye:
            return Ended(Ending.BROKEN, problem)
        return Ended(Ending.CLOSED, problem)

    def _ended(self, problem: str) -> Ended:
        return Ended(Ending.CLOSED if self.is_established else Ending.NEVER_BEGAN, problem)
