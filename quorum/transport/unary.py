"""The unary methods of RaftService: one protobuf request, one protobuf response.

For probes and clients in other languages. The same core answers as for streams. Each call has its
own sender id, so that no claim of a caller can redirect a replica's answers.

Guarantees:
    1. No call acknowledges anything for a replica. Fetch and FetchSnapshot are for consumers; in
       a replica's name they are refused before the core sees them. A replica uses its stream,
       whose hello identifies it.
    2. Vote, BeginQuorumEpoch and EndQuorumEpoch reach the core only if the caller's certificate
       carries the name of the replica in the request. Without such names (``NodeNames``) there is
       no proof, so none is accepted (ADR 43). Nor is one if the log is not of the first
       incarnation, because the request names none (ADR 65).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message, ReceivedRequest, Request, Response
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.fair_share import FairShare
from quorum.transport import codec
from quorum.transport.answers import end, name_refusal
from quorum.transport.callers import caller_of
from quorum.transport.codec import PEERS
from quorum.transport.framing import sender_key
from quorum.transport.limits import UNARY_CALLS_MAX, UNARY_WAIT_S_MAX
from quorum.transport.link import Link
from quorum.transport.message_reads import MessageLateError, MessageReads
from quorum.transport.routes import Routes
from quorum.transport.snapshots import serve_fetch_snapshot
from quorum.types import NO_NODE, ZERO_UUID, NodeId, uuid_to_text
from quorum.v1 import raft_pb2

_UnaryHandler = Callable[[object, Any], Awaitable[bytes]]
"""Reads the request through the context: see ``quorum.transport.message_reads``."""
_Serve = Callable[[bytes, Any, float], Awaitable[bytes]]
"""Answers a request with this context until this time of the event loop."""
_T = TypeVar("_T")


class _StoppingError(Exception):
    """The node stops: the call ends with UNAVAILABLE."""


class _UnprovenError(Exception):
    """The caller has not proven that it is the replica in its request: PERMISSION_DENIED."""


class _OtherLogError(Exception):
    """The log here is of another incarnation than the caller may assume: FAILED_PRECONDITION."""


class _Call:
    """One request to the core (``routes.Route``)."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def deliver(self, message: Message) -> None:
        """Take the answer; it is dropped if the caller has left."""
        if not self.answer.done():
            self.answer.set_result(message)

    def give_up(self) -> None:
        """End the call without an answer."""
        if not self.answer.done():
            self.answer.set_exception(_StoppingError())

    def time_out(self) -> None:
        """End the call because the core gave no answer in time."""
        if not self.answer.done():
            self.answer.set_exception(TimeoutError())


class UnaryCalls:
    """Serves the unary methods. Owned by the event loop.

    Malformed requests, and fetches in a replica's name, end the call with INVALID_ARGUMENT.
    Election requests of an unproven caller end it with PERMISSION_DENIED, too many calls with
    RESOURCE_EXHAUSTED, a late answer of the core with DEADLINE_EXCEEDED, and a stop of the node
    with UNAVAILABLE.
    """

    def __init__(self, link: Link, routes: Routes) -> None:
        self._link = link
        self._routes = routes
        self.places = FairShare("peer_calls", UNARY_CALLS_MAX)
        self.reads = MessageReads("peer_messages")
        self._asked: set[_Call] = set()
        self._is_closed = False

    def close(self) -> None:
        """End all calls, and refuse new ones."""
        self._is_closed = True
        for call in self._asked:
            call.give_up()

    def methods(self) -> dict[str, _UnaryHandler]:
        """Return the handlers of raw request bytes, by method name."""
        return {
            "Vote": self._coded("Vote", VoteRequest, VoteResponse, is_election=True),
            "BeginQuorumEpoch": self._coded(
                "BeginQuorumEpoch",
                BeginQuorumEpochRequest,
                BeginQuorumEpochResponse,
                is_election=True,
            ),
            "EndQuorumEpoch": self._coded(
                "EndQuorumEpoch", EndQuorumEpochRequest, EndQuorumEpochResponse, is_election=True
            ),
            "Fetch": self._simple(
                "Fetch", raft_pb2.FetchRequest, _consumers_fetch, codec.fetch_response_to_pb
            ),
            "FetchSnapshot": self._bounded("FetchSnapshot", self._fetch_snapshot),
            "ChainDigest": self._coded("ChainDigest", ChainDigestRequest, ChainDigestResponse),
        }

    def _coded(
        self,
        name: str,
        request: type[Request],
        response: type[Response],
        *,
        is_election: bool = False,
    ) -> _UnaryHandler:
        asked, answered = PEERS[request], PEERS[response]
        return self._simple(
            name, asked.message, asked.from_pb, answered.to_pb, is_election=is_election
        )

    def _simple(
        self,
        name: str,
        pb_type: Any,
        from_pb: Callable[[Any, int], Request],
        to_pb: Callable[[Any], Any],
        *,
        is_election: bool = False,
    ) -> _UnaryHandler:
        async def call(data: bytes, context: Any, deadline: float) -> bytes:
            request = from_pb(_parse(pb_type, data), 0)
            if is_election:
                self._check_author(sender_key(request).id, context)
            if not request.cluster_id:
                request = replace(request, cluster_id=self._link.hello.cluster_id)
            answer = await self._ask(request, deadline)
            name_refusal(type(request), answer.error)
            return bytes(to_pb(answer).SerializeToString())

        return self._bounded(name, call)

    def _check_author(self, author: NodeId, context: Any) -> None:
        own = self._link.hello.log_incarnation_id
        if own != ZERO_UUID:
            raise _OtherLogError(
                f"{ErrorCode.LOG_INCARNATION_MISMATCH.name}: the log here is of incarnation "
                f"{uuid_to_text(own)}, and a unary call "
                f"states none; node {author} takes part in elections on its stream (Exchange)"
            )
        names = self._link.names
        if names is None:
            raise _UnprovenError(
                f"node {author} takes part in elections on its stream (Exchange); a unary call "
                "needs certificates that name nodes, which are not configured here"
            )
        auth = context.auth_context()
        problem = names.problem(author, auth) or names.voter_problem(author, auth)
        if problem is not None:
            self._link.counters.impostors_refused += 1
            raise _UnprovenError(problem)

    async def _fetch_snapshot(self, data: bytes, _: Any, deadline: float) -> bytes:
        async def ask(request: FetchSnapshotRequest) -> Any:
            return await self._ask(request, deadline)

        value = _parse(raft_pb2.FetchSnapshotRequest, data)
        if value.HasField("replica_id"):
            _check_consumer(value.replica_id)
        answer = await serve_fetch_snapshot(
            value,
            self._link.hello.cluster_id,
            ask,
            bytes_max=self._link.snapshot_response_bytes_max,
        )
        return bytes(answer.SerializeToString())

    async def _ask(self, request: Request, deadline: float) -> Any:
        """Return the core's answer.

        Raises:
            TimeoutError: There is none at ``deadline``, a time of the event loop.
        """
        if self._is_closed:
            raise _StoppingError
        sender = self._routes.anonymous()
        call = _Call()
        self._asked.add(call)
        self._routes.open(sender, request.request_id, call)
        # Not asyncio.timeout, which costs more than the handle.
        timer = call.answer.get_loop().call_at(deadline, call.time_out)
        try:
            # Proven by its certificate, or in no replica's name.
            self._link.deliver(sender, ReceivedRequest(request, is_proven=True))
            return await call.answer
        finally:
            timer.cancel()
            self._asked.discard(call)
            self._routes.close(sender, request.request_id, call)

    async def _request(self, context: Any, caller: str) -> bytes:
        data = await self.reads.read(context, caller)
        if data is aio.EOF:
            raise PeerProtocolError("there is no request")
        self._link.counters.frames_received += 1
        self._link.counters.bytes_received += len(data)
        return bytes(data)

    def _bounded(self, name: str, serve: _Serve) -> _UnaryHandler:
        """Wrap a method: limit calls, set the deadline, and convert errors to statuses."""

        async def handle(_requests: object, context: Any) -> bytes:
            counters = self._link.counters
            caller = caller_of(context)
            if not self.places.take(caller):
                counters.streams_rejected += 1
                await end(
                    context, name, grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"{self.places.open_count} calls are being answered already",
                )  # fmt: skip
            try:
                data = await self._request(context, caller)
                deadline = asyncio.get_running_loop().time() + _patience(context)
                answer = await serve(data, context, deadline)
            except PeerProtocolError as error:
                counters.malformed += 1
                await end(context, name, grpc.StatusCode.INVALID_ARGUMENT, str(error))
            except _OtherLogError as error:
                code = ErrorCode.LOG_INCARNATION_MISMATCH
                status = grpc.StatusCode.FAILED_PRECONDITION
                await end(context, name, status, str(error), code)
            except _UnprovenError as error:
                await end(context, name, grpc.StatusCode.PERMISSION_DENIED, str(error))
            except _StoppingError:
                await end(context, name, grpc.StatusCode.UNAVAILABLE, "the node is stopping")
            except MessageLateError:
                status = grpc.StatusCode.DEADLINE_EXCEEDED
                await end(context, name, status, "the request did not arrive in time")
            except TimeoutError:
                status = grpc.StatusCode.DEADLINE_EXCEEDED
                await end(context, name, status, "the quorum gave no answer in time")
            finally:
                self.places.release(caller)
            counters.frames_sent += 1
            counters.bytes_sent += len(answer)
            return answer

        return handle


def _parse(pb_type: type[_T], data: bytes) -> _T:
    try:
        return pb_type.FromString(data)  # type: ignore[attr-defined,no-any-return]
    except DecodeError as error:
        raise PeerProtocolError(f"not a {pb_type.__name__}: {error}") from error


def _consumers_fetch(value: raft_pb2.FetchRequest, request_id: int) -> FetchRequest:
    request = codec.fetch_request_from_pb(value, request_id)
    _check_consumer(request.replica.id)
    return request


def _check_consumer(replica_id: NodeId) -> None:
    """Refuse a fetch in a replica's name: it could acknowledge records that the replica lacks."""
    if replica_id != NO_NODE:
        raise PeerProtocolError(f"node {replica_id} fetches on its stream, not by a unary call")


def _patience(context: Any) -> float:
    remaining: float | None = context.time_remaining()
    return UNARY_WAIT_S_MAX if remaining is None else min(remaining, UNARY_WAIT_S_MAX)
