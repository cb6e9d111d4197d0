"""Queries: which node to ask, when to ask another, and when to stop.

A query is sent on the node's read stream if the stream accepts it, else as a unary call.

Only for calls that may be repeated freely (queries), and for changes of the quorum, each with its
``Delivery``; commands go through the ``Writer``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import Message

from quorate.client.channels import Nodes
from quorate.client.delivery import Delivery
from quorate.client.errors import (
    ClientError,
    RefusedError,
    UnavailableError,
    from_rpc,
)
from quorate.client.reach import within_reach
from quorate.client.read_streams import ReadStreams, may_share
from quorum.v1 import common_pb2

ATTEMPT_SECONDS_MAX = 5.0
"""Time in seconds that one node may take before another is asked."""
ATTEMPT_SECONDS_MIN = 0.1
"""With less time left, in seconds, no other node is asked: a failure says more than a timeout."""
BACKOFF_SECONDS = (0.010, 0.100)
"""Bounds, in seconds, of the random pause after every known node was asked without an answer."""

_ASK_AGAIN = frozenset(
    {
        common_pb2.ERROR_CODE_NOT_LEADER_OR_FOLLOWER,
        common_pb2.ERROR_CODE_NOT_CONTROLLER,
        common_pb2.ERROR_CODE_OFFSET_NOT_AVAILABLE,
        common_pb2.ERROR_CODE_UNKNOWN_LEADER_EPOCH,
        common_pb2.ERROR_CODE_REQUEST_TIMED_OUT,
        common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE,
        common_pb2.ERROR_CODE_QUEUE_FULL,
        common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED,
        # A node with the directory of a former incarnation of the log.
        common_pb2.ERROR_CODE_LOG_INCARNATION_MISMATCH,
    }
)


def may_ask_again(error: ClientError) -> bool:
    """Whether another node, or the same node later, may answer this query."""
    if isinstance(error, RefusedError):
        return error.code in _ASK_AGAIN
    return isinstance(error, UnavailableError)


def _is_too_large(error: ClientError) -> bool:
    code = common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE
    return isinstance(error, RefusedError) and error.code == code


class Caller:
    """Asks nodes one after another. Owned by one client, on its event loop."""

    def __init__(self, nodes: Nodes, *, rng: random.Random) -> None:
        self._nodes = nodes
        self._rng = rng
        self._streams = ReadStreams(nodes)
        self._turn = 0
        self._is_closed = False
        self.newest_incarnation = nodes.newest_incarnation

    async def close(self) -> None:
        """End the read streams; queries that wait end with ``UnavailableError``."""
        self._is_closed = True
        await self._streams.close()

    def address(self, *, to_leader: bool) -> str:
        """Return the node to ask next: the leader if required and known, else the current one."""
        if to_leader and self._nodes.leader is not None:
            return self._nodes.leader
        addresses = self._nodes.addresses
        return addresses[self._turn % len(addresses)]

    def move_on(self, error: ClientError, failed: str) -> None:
        """Take the failure of the node at ``failed`` into account when the next one is chosen.

        Many calls may have failed at this node together; only the first of them selects another
        node.
        """
        current = self.address(to_leader=False)
        if self._nodes.leader == failed:
            self._nodes.leader = None
        if isinstance(error, RefusedError):
            self._nodes.learn(error.leader)
        if current == failed:
            self._turn += 1

    async def call(
        self,
        service: str,
        method: str,
        request: Message,
        *,
        timeout_seconds: float,
        to_leader: bool = False,
        attempt_seconds: float = ATTEMPT_SECONDS_MAX,
        delivery: Delivery | None = None,
        is_local: Callable[[Any], bool] | None = None,
    ) -> Any:
        """Return the answer of the first node that gives one.

        One node may take ``attempt_seconds``, and ``reach.CONNECT_SECONDS_MAX`` of them to be
        connected, if others are known. ``delivery`` is of a request that may not be repeated
        freely: it says after which failures another node is asked. ``is_local`` says of an answer
        that its node may be cut off: the answer is returned, and the next call asks another node.

        Raises:
            ClientError: The refusal, if asking again would not help; ``UnavailableError`` when
                no node answered before the deadline; its cause is the last failure.
                ``NotServedError`` when no address serves this call.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        is_shared = may_share(method, request)
        asked = 0
        not_served: set[str] = set()
        while True:
            if self._is_closed:
                raise UnavailableError(f"{method}: the client was closed")
            left = deadline - loop.time()
            address = self.address(to_leader=to_leader)
            attempt = max(0.001, min(left, attempt_seconds))
            try:
                if is_shared:
                    return await self._streams.ask(address, method, request, seconds=attempt)
                answer = await self._attempt(
                    address, service, method, request, seconds=attempt, delivery=delivery
                )
                if is_local is not None and is_local(answer):
                    self.move_on(UnavailableError("the node knows no leader"), address)
                return answer
            except grpc.RpcError as error:
                failure = from_rpc(error)
            except ClientError as error:
                failure = error
            if is_shared and _is_too_large(failure):
                # A unary call may have a larger answer, and its error is more specific.
                is_shared = False
                continue
            may_repeat = may_ask_again if delivery is None else delivery.may_repeat
            is_repeated = may_repeat(failure)
            if self._nodes.forgets_token(address, failure):
                continue
            if not (is_repeated or self._nodes.is_served_elsewhere(failure, address, not_served)):
                raise self._nodes.explained(address, failure)
            self.move_on(failure, address)
            asked += 1
            pause = 0.0
            if asked >= len(self._nodes.addresses):
                pause = self._rng.uniform(*BACKOFF_SECONDS)
            if loop.time() + pause + ATTEMPT_SECONDS_MIN >= deadline:
                raise UnavailableError(
                    f"{method}: no answer in {timeout_seconds:.3g} s: {failure}"
                ) from failure
            await asyncio.sleep(pause)

    async def _attempt(
        self,
        address: str,
        service: str,
        method: str,
        request: Message,
        *,
        seconds: float,
        delivery: Delivery | None,
    ) -> Any:
        if delivery is not None:
            left = await delivery.begin(self._nodes, address, seconds=seconds)
            try:
                return await self.ask_at(address, service, method, request, seconds=left)
            except UnavailableError as error:
                delivery.check_token(error)
                raise
        async with within_reach(self._nodes, address):
            return await self.ask_at(address, service, method, request, seconds=seconds)

    async def ask_at(
        self, address: str, service: str, method: str, request: Message, *, seconds: float
    ) -> Any:
        """Return the answer of the node at ``address``, which is asked once.

        Raises:
            ClientError: It refused, or gave no answer in time.
        """
        ask = getattr(getattr(self._nodes.node(address), service), method)
        try:
            return await self._answer(ask(request, timeout=seconds))
        except grpc.RpcError as error:
            raise from_rpc(error) from None

    async def _answer(self, call: Any) -> Any:
        """What a node of our cluster answers.

        Raises:
            grpc.RpcError: The call failed.
            UnavailableError: The answering process is not a node of our cluster.
        """
        failure: grpc.RpcError | None = None
        answer = None
        try:
            answer = await call
        except grpc.RpcError as error:
            failure = error
        problem = self._nodes.stranger(
            await call.trailing_metadata(), is_failure=failure is not None
        )
        if problem:
            raise UnavailableError(problem) from failure
        if failure is not None:
            raise failure
        return answer
