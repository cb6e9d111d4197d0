"""One outgoing stream to a peer, from its hello to its end, and how that end is classified.

"Broken" means that the other end's kernel closed or reset the stream: only this may mean
that the process died (ADR 8). GOAWAY, an expired keep-alive, a status sent by the peer and every
end before the hello are not evidence of a death. Which is which, the carrier of the stream knows
(``streams.OpenedStream``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import grpc

from quorum.core.messages.message_types import Message
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.transport.framing import ALIVE_FRAME, GOODBYE, PROBE, decode_frame
from quorum.transport.hello import (
    OWN_ADDRESS,
    Hello,
    HelloProblem,
    decode_hello,
    encode_hello,
    hello_problem,
    hinted_hello,
)
from quorum.transport.limits import CERTIFICATE_CHECKED_S, HELLO_TIMEOUT_S
from quorum.transport.link import STREAM_ERRORS, Link
from quorum.transport.outbox import Outbox
from quorum.transport.streams import EOF, EndStatus, OpenedStream
from quorum.types import NodeId

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
    """Established, then closed or reset by the kernel: the process may have died."""
    CLOSED = auto()
    """Established, then ended in any other way."""
    MOVED = auto()
    """The hellos agreed, and the stream continues on the peer's port of TCP streams."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Outcome of ``Conversation.hold``."""

    ending: Ending
    problem: str
    code: ErrorCode = ErrorCode.NONE
    """Error code of a refused hello, if it has one."""


class _HelloRefusedError(Exception):
    """This node must not talk to the peer."""

    def __init__(self, problem: HelloProblem) -> None:
        super().__init__(problem.text)
        self.code = problem.code


class _MovedError(Exception):
    """The stream continues on another carrier."""


class Conversation:
    """One stream. Owned by the event loop; used once.

    ``stream`` is not open yet. ``on_message`` takes each message and raises ``PeerProtocolError``
    to end the stream. With ``is_hint`` only a message named the address: the process there gets no
    process id with which it could speak for this replica. ``moves`` is asked about the peer's
    accepted hello, and ends the stream by answering yes.
    """

    def __init__(
        self,
        peer: NodeId,
        stream: OpenedStream,
        link: Link,
        *,
        on_established: Callable[[Outbox], None],
        on_message: Callable[[Message], None],
        is_hint: bool = False,
        moves: Callable[[Hello], bool] = lambda _: False,
    ) -> None:
        self._peer = peer
        self._is_hint = is_hint
        self._stream = stream
        self._moves = moves
        self._link = link
        self._on_established = on_established
        self._on_message = on_message
        self._abandoned = ""
        self._refused = ""
        """Why the peer's certificate is not accepted any more."""
        self._certificate_check: asyncio.TimerHandle | None = None
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
        self._stream.cancel()

    async def hold(self) -> Ended:
        """Connect, exchange hellos and read until the stream ends. Return how it ended."""
        stream = self._stream
        outbox: Outbox | None = None
        try:
            # Here the awaiting task is cancelled: cancelling a call does not wake it before the
            # connection is established.
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                await stream.open()
                await self._check_certificate(stream)
                await self._shake_hands(stream)
            self.is_established = True
            self.last_contact_at = asyncio.get_running_loop().time()
            self._link.counters.connects += 1
            outbox = Outbox(stream.write, self._link.counters, self._warn)
            # Only once the reader runs: a refusal follows right behind the hello, and after a
            # failed write gRPC reports no other reason.
            asyncio.get_running_loop().call_soon(self._announce, outbox)
            await self._read(stream, outbox)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - evaluated, or raised
            return self._evaluate(error)
        finally:
            if self._certificate_check is not None:
                self._certificate_check.cancel()
            if outbox is not None:
                outbox.close()
            await stream.close()
        return self._ended("the peer ended the stream")

    async def _check_certificate(self, stream: OpenedStream) -> None:
        """Refuse a peer whose certificate is revoked, now or while the stream is open."""
        if self._link.certificate_problem is None or self._link.tls is None:
            return
        certificate = await stream.certificate()
        if problem := self._link.certificate_problem(certificate):
            raise _HelloRefusedError(HelloProblem(problem))
        self._check_later(certificate, self._link.certificate_problem)

    def _check_later(self, certificate: bytes, problem_of: Callable[[bytes], str]) -> None:
        def check() -> None:
            if problem := problem_of(certificate):
                self._refused = problem
                self._stream.cancel()
            else:
                self._check_later(certificate, problem_of)

        loop = asyncio.get_running_loop()
        self._certificate_check = loop.call_later(CERTIFICATE_CHECKED_S, check)

    def _warn(self, problem: str) -> None:
        now = asyncio.get_running_loop().time()
        self._link.rate_limited_log.warn(f"stream to {self._peer}", problem, now)

    def _announce(self, outbox: Outbox) -> None:
        if not outbox.is_closed:
            self._on_established(outbox)

    async def _shake_hands(self, stream: OpenedStream) -> None:
        ours = self._link.hello
        await stream.write(encode_hello(hinted_hello(ours) if self._is_hint else ours))
        data = await stream.read()
        if data is EOF:
            raise PeerProtocolError("the stream ended before a hello")
        theirs = decode_hello(data)
        problem = hello_problem(self._link.hello, theirs)
        if problem is None and self._peer >= 0 and theirs.key.id != self._peer:
            problem = HelloProblem(
                f"node {theirs.key.id} answers where node {self._peer} is expected: "
                "the address belongs to another node"
            )
        if problem is not None:
            raise _HelloRefusedError(problem)
        self.met = theirs
        if self._moves(theirs):
            raise _MovedError

    async def _read(self, stream: OpenedStream, outbox: Outbox) -> None:
        loop_time = asyncio.get_running_loop().time
        counters = self._link.counters
        read, on_message, end = stream.read, self._on_message, EOF
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
        if _is_of_the_task(error):
            raise error
        if self._refused:
            return self._ended("")
        status = self._stream.status_of(error)
        if status is not None:
            return self._evaluate_status(status)
        match error:
            case asyncio.CancelledError():
                # gRPC raises it for a call cancelled by either end, too.
                return self._ended(self._abandoned or "the call was cancelled")
            case TimeoutError():
                return self._ended(f"no hello within {HELLO_TIMEOUT_S:g} s")
            case _HelloRefusedError():
                counters.hellos_refused += str(error) != OWN_ADDRESS
                return Ended(Ending.REFUSED_HELLO, str(error), error.code)
            case PeerProtocolError():
                counters.malformed += 1
                ending = Ending.CLOSED if self.is_established else Ending.REFUSED_HELLO
                return Ended(ending, str(error))
            case _MovedError():
                return Ended(Ending.MOVED, "")
            case _ if isinstance(error, (*STREAM_ERRORS, asyncio.InvalidStateError)):
                return self._ended(str(error))
        raise error

    def _evaluate_status(self, status: EndStatus) -> Ended:
        problem = f"{status.details} ({status.code.name})"
        if not self.is_established:
            if status.code in _REFUSALS:
                self._link.counters.hellos_refused += 1
                return Ended(Ending.REFUSED_HELLO, f"refused by the peer: {problem}")
            if status.is_impostor:
                self._link.counters.impostors_refused += 1
                name = self._stream.certificate_name
                return Ended(
                    Ending.REFUSED_HELLO, f"its certificate is not that of {name}: {problem}"
                )
            return Ended(Ending.NEVER_BEGAN, problem)
        if status.code in _REFUSALS:
            # The peer checks the certificate and the peer session only after it has sent its own
            # hello.
            self._link.counters.refused_by_peers += 1
            return Ended(Ending.REFUSED_HELLO, f"refused by the peer: {problem}")
        if status.is_broken and not self._sent_goodbye:
            return Ended(Ending.BROKEN, problem)
        return Ended(Ending.CLOSED, self._abandoned or problem)

    def _ended(self, problem: str) -> Ended:
        if self._refused:
            self._link.counters.hellos_refused += 1
            return Ended(Ending.REFUSED_HELLO, self._refused)
        return Ended(Ending.CLOSED if self.is_established else Ending.NEVER_BEGAN, problem)


def _is_of_the_task(error: BaseException) -> bool:
    """Whether our own task is cancelled, and not only the call."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and bool(task and task.cancelling())
