"""Sends one mutated call to a live node, and names how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from quorate.client.errors import DETAILS_KEY
from quorum.errors import PeerProtocolError
from quorum.transport.hello import decode_hello
from quorum.v1 import metadata_pb2
from tests.campaigns.frames import Script
from tests.campaigns.valid_calls import EXCHANGE, METHODS, WRITES

READ_SECONDS = 0.4
"""Timeout in seconds of a read that may wait for ever; the node has accepted it by then."""
WRITE_SECONDS = 20.0
"""Timeout in seconds of a write. It is long, because an unknown outcome proves nothing."""
FRAME_SECONDS = 0.1
"""Seconds to wait for the answer to a frame; an ignored request gets none."""
OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
RAISED = "raised"
GONE = "gone"
"""Outcomes that no call may have: an exception inside the node, or a lost connection."""
OWN_WORDS = "Internal error from Core"
"""The error of gRPC on this side when a frame is written to a stream that the node just ended."""
ENDED = "ended before it was written"


@dataclass(slots=True)
class Ended:
    """The outcome of one call, or of one stream and its frames."""

    how: str
    offsets: list[int] = field(default_factory=list)
    """End offsets of the acknowledged batches."""
    unknown: int = 0
    """Number of commands without an answer; each may have been applied."""
    frames: int = 0
    answered: int = 0


def _named(code: grpc.StatusCode, details: str | None, trailing: Any) -> str:
    if details == OWN_WORDS:
        return ENDED
    has_reason = DETAILS_KEY in dict(trailing or ())
    if code in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL):
        return f"{RAISED} ({code.name}: {str(details)[:80]})"
    if code is grpc.StatusCode.UNAVAILABLE and not has_reason:
        return f"{GONE} ({str(details)[:80]})"
    return str(code.name)


def _how(error: Any) -> str:
    return _named(error.code(), error.details(), error.trailing_metadata())


async def _closed(call: Any) -> str:
    """Return how a stream ended that was read to its end."""
    return _named(await call.code(), await call.details(), await call.trailing_metadata())


async def send(channel: aio.Channel, method: str, data: bytes) -> Ended:
    """Call a unary or streaming method with these bytes as its only request."""
    described = METHODS[method]
    try:
        if described.client_streaming:
            return await _stream(channel, method, data)
        if described.server_streaming:
            call = channel.unary_stream(method)(data, timeout=READ_SECONDS)
            await call.read()
            call.cancel()
            return Ended("OK")
        timeout = WRITE_SECONDS if method in WRITES else READ_SECONDS
        answer = await channel.unary_unary(method)(data, timeout=timeout)
    except aio.AioRpcError as error:
        how = _how(error)
        is_open = method in WRITES and how in ("DEADLINE_EXCEEDED", "UNAVAILABLE")
        return Ended(how, unknown=int(is_open))
    offsets = []
    if method in WRITES:
        found = metadata_pb2.WriteResponse.FromString(answer).answer
        offsets = [found.offset] if found.error_code == 0 else []
    return Ended("OK", offsets)


async def _stream(channel: aio.Channel, method: str, data: bytes) -> Ended:
    """Open a stream with one request; read until the first answer or the timeout."""
    call = channel.stream_stream(method)(
        timeout=WRITE_SECONDS if method in WRITES else READ_SECONDS
    )
    found = Ended("open")
    # The node takes frames of a stream only after it has accepted the hello.
    asked, wanted = _commands(data) if method in WRITES else 0, 0
    answered = 0
    try:
        await call.write(data)
        while True:
            read = asyncio.ensure_future(call.read())
            done, _ = await asyncio.wait({read}, timeout=READ_SECONDS)
            if not done:
                break
            answer = read.result()
            if answer is aio.EOF:
                found.how = await _closed(call)
                break
            found.how = "OK"
            if method not in WRITES:
                break
            response = metadata_pb2.WriteStreamResponse.FromString(answer)
            wanted = asked if response.HasField("accepted") else wanted
            found.offsets += [each.offset for each in response.answers if each.error_code == 0]
            answered += len(response.answers)
            if answered and answered >= wanted:
                break
    except aio.AioRpcError as error:
        found.how = _how(error)
    except (asyncio.InvalidStateError, aio.UsageError):
        found.how = await _closed(call)
    call.cancel()
    found.unknown = max(0, wanted - answered)
    return found


def _commands(data: bytes) -> int:
    """Return the number of commands in a request of a write stream."""
    try:
        request = metadata_pb2.WriteStreamRequest.FromString(data)
    except DecodeError:
        return 0
    return sum(len(group.commands) for group in request.groups)


async def play(channel: aio.Channel, script: Script) -> Ended:
    """Open a peer stream: send the hello, then frames until none is left or the stream ends."""
    call = channel.stream_stream(EXCHANGE)(timeout=30.0)
    ended = Ended("open", frames=1)
    read: asyncio.Future[Any] | None = None
    try:
        await call.write(script.hello[1])
        if await call.read() is aio.EOF:
            return Ended(await _closed(call), frames=1)
        ended.answered += 1
        for _, frame in script.frames:
            ended.frames += 1
            await call.write(frame)
            read = read or asyncio.ensure_future(call.read())
            done, _ = await asyncio.wait({read}, timeout=FRAME_SECONDS)
            if done:
                answer, read = read.result(), None
                if answer is aio.EOF:
                    ended.how = await _closed(call)
                    return ended
                ended.answered += 1
        if read is None:
            read = asyncio.ensure_future(call.read())
        done, _ = await asyncio.wait({read}, timeout=FRAME_SECONDS)
        if done and read.result() is aio.EOF:
            ended.how = await _closed(call)
    except aio.AioRpcError as error:
        ended.how = _how(error)
    except (asyncio.InvalidStateError, aio.UsageError):
        ended.how = await _closed(call)
    finally:
        if read is not None:
            read.add_done_callback(_forget)
        call.cancel()
    return ended


def _forget(read: asyncio.Future[Any]) -> None:
    if not read.cancelled():
        read.exception()


async def config_digest(channel: aio.Channel, hello: bytes) -> bytes:
    """Return the configuration that a node reports when it refuses a hello.

    Raises:
        PeerProtocolError: The node answered something else.
    """
    call = channel.stream_stream(EXCHANGE)(timeout=30.0)
    try:
        await call.write(hello)
        answer = await call.read()
    finally:
        call.cancel()
    if answer is aio.EOF:
        raise PeerProtocolError("no hello")
    return decode_hello(answer).config_digest


def wrong_endings(counts: Mapping[str, int]) -> list[str]:
    """Return the outcomes that no call may have, from all outcomes."""
    return [
        f"{count} calls ended as: {how}"
        for how, count in sorted(counts.items())
        if RAISED in how or GONE in how
    ]
