"""Queries of many tasks over one read stream per node.

Queries that gather while a message is on its way leave together in the next one, and the
linearizable ones of a message share one confirmation by the leader. So many readers of one client
cost the cluster a fraction of what as many calls would cost.

See: docs/reference/client-protocol.md (Reading).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import grpc
from google.protobuf.message import Message

from quorate.client.call_tasks import opened_with_tasks
from quorate.client.channels import Nodes
from quorate.client.errors import ClientError, RefusedError, UnavailableError, from_rpc
from quorate.client.limits import READ_MESSAGE_BYTES_MAX, READS_PER_MESSAGE_MAX
from quorate.client.reach import within_reach
from quorate.client.stream import LiveStream
from quorum.v1.metadata_pb2 import (
    ReadAnswer,
    ReadQuery,
    ReadStreamRequest,
    ReadStreamResponse,
)

QUERIES = {
    "ListTopics": "list_topics",
    "DescribeTopics": "describe_topics",
    "DescribeConfigs": "describe_configs",
}
"""Methods that a read stream answers, with the names of their fields in a ``ReadQuery``."""
_QUERY_BYTES_MAX = READ_MESSAGE_BYTES_MAX // 2
_ANSWER_SECONDS = 0.05


def may_share(method: str, request: Message) -> bool:
    """Whether a read stream takes this query; a large one is a call of its own."""
    return method in QUERIES and request.ByteSize() <= _QUERY_BYTES_MAX


class ReadStreams:
    """The read streams of one client, by address. Owned by it, on its event loop."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._streams: dict[str, _ReadStream] = {}

    async def ask(self, address: str, method: str, request: Message, *, seconds: float) -> Any:
        """The answer of the node at ``address``, within ``seconds``.

        Raises:
            RefusedError: The node refuses the query, with a hint where the leader is.
            UnavailableError: There is no answer: the stream broke, the time is up, no connection
                was made in time, or who answers is no node of our cluster.
        """
        stream = self._streams.get(address)
        if stream is None or stream.is_lost:
            stream = self._streams[address] = _ReadStream(self._nodes, address)
        if stream.has_answered:
            return await stream.ask(QUERIES[method], request, seconds)
        async with within_reach(self._nodes, address):
            return await stream.ask(QUERIES[method], request, seconds)

    async def close(self) -> None:
        """End every stream in order; what is unanswered ends with ``UnavailableError``."""
        await asyncio.gather(*(stream.end() for stream in self._streams.values()))


class _ReadStream:
    """One stream, from its first query until it is lost."""

    def __init__(self, nodes: Nodes, address: str) -> None:
        self._nodes = nodes
        self._loop = asyncio.get_running_loop()
        self.is_lost = self.has_answered = False
        self._last_tag = 0
        self._open: dict[int, asyncio.Future[ReadAnswer]] = {}
        self._unsent: deque[tuple[ReadQuery, float]] = deque()
        call, grpc_tasks = opened_with_tasks(nodes.node(address).metadata.ReadStream)
        self._stream = LiveStream(
            address,
            call,
            grpc_tasks,
            take=self._take,
            on_answers=self._on_answers,
            on_lost=self._on_lost,
            check=self._check,
        )

    async def ask(self, kind: str, request: Message, seconds: float) -> Any:
        self._last_tag += 1
        tag = self._last_tag
        query = ReadQuery(tag=tag)
        getattr(query, kind).CopyFrom(request)
        done = self._open[tag] = self._loop.create_future()
        self._unsent.append((query, seconds))
        self._stream.wake()
        late = UnavailableError(f"no answer in {seconds:.3g} s")
        timer = self._loop.call_later(seconds, _fail, done, late)
        try:
            answer = await done
        finally:
            timer.cancel()
            self._open.pop(tag, None)
        if answer.error_code:
            leader = answer.leader if answer.HasField("leader") else None
            raise RefusedError(answer.error_code, answer.message, leader=leader)
        return getattr(answer, kind)

    async def end(self) -> None:
        self._lose(UnavailableError("the client was closed"))
        await self._stream.end()

    def _take(self) -> ReadStreamRequest | None:
        """Return the next message, without queries that no caller waits for any more."""
        message = ReadStreamRequest()
        room, longest = READ_MESSAGE_BYTES_MAX - _QUERY_BYTES_MAX, 0.0
        while self._unsent and room > 0 and len(message.queries) < READS_PER_MESSAGE_MAX:
            query, seconds = self._unsent.popleft()
            if query.tag in self._open:
                message.queries.append(query)
                longest = max(longest, seconds)
                room -= query.ByteSize()
        if not message.queries:
            return None
        # Less than the client waits, so that the node's refusal, which says why, still arrives.
        message.max_wait_ms = max(1, int((longest - min(_ANSWER_SECONDS, longest / 5)) * 1000))
        return message

    def _check(self, metadata: Any) -> None:
        """Raises ``UnavailableError`` for a node of another cluster.

        A call that failed at once has no metadata; its error says more.
        """
        if problem := self._nodes.stranger(metadata, is_failure=True):
            raise UnavailableError(problem)

    def _on_answers(self, response: ReadStreamResponse) -> None:
        self.has_answered = True
        for answer in response.answers:
            done = self._open.get(answer.tag)
            if done is not None and not done.done():
                done.set_result(answer)

    def _on_lost(self, stream: LiveStream[ReadStreamRequest], why: BaseException | None) -> None:
        if isinstance(why, grpc.RpcError):
            error: ClientError = from_rpc(why)
        elif isinstance(why, ClientError):
            error = why
        else:
            error = UnavailableError("the read stream was lost")
        self._lose(error)
        stream.close()

    def _lose(self, error: ClientError) -> None:
        self.is_lost = True
        for done in self._open.values():
            _fail(done, error)


def _fail(done: asyncio.Future[ReadAnswer], error: ClientError) -> None:
    if not done.done():
        done.set_exception(error)
