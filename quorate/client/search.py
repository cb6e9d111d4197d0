"""Finding the node that takes writes: all known nodes are asked at once, until one accepts.

A node that leads accepts the write stream, every other refuses at once and says who leads. A
dead node refuses the connection, a hung one does not answer. As all are asked in parallel, neither
delays the answer of a live leader. This search decides how long a fail-over takes for a client.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Set
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import grpc

from quorate.client.call_tasks import opened_with_tasks
from quorate.client.channels import Nodes
from quorate.client.errors import (
    ClientError,
    NotServedError,
    ProtocolError,
    RefusedError,
    from_rpc,
)
from quorum.supervisor import Supervisor
from quorum.v1.common_pb2 import (
    ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED,
    ERROR_CODE_SASL_AUTHENTICATION_FAILED,
)
from quorum.v1.metadata_pb2 import StreamAccepted, WriterIdentity, WriteStreamRequest

StreamCall: TypeAlias = "grpc.aio.StreamStreamCall[Any, Any]"

GREETING_SECONDS_MAX = 1.0
"""How long a node may take to accept or refuse a stream."""
EAGER_BACKOFF_SECONDS = (0.010, 0.025)
"""Bounds of the pause between two questions to a node while an election may be going on."""
EAGER_SECONDS = 2.0
"""How long a search stays eager."""
PATIENT_BACKOFF_SECONDS_MAX = 0.25
"""Longest pause between attempts of a long search, in seconds."""
AVOIDED_SECONDS = 0.1
"""Delay, in seconds, before a node is asked whose stream has just broken."""

_DENIALS = frozenset(
    {ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED, ERROR_CODE_SASL_AUTHENTICATION_FAILED}
)
CALL_ERRORS = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""Exceptions that a broken call may raise."""


@dataclass(frozen=True, slots=True)
class FoundStream:
    """A write stream that a leader has accepted."""

    call: StreamCall
    accepted: StreamAccepted
    address: str
    tasks: Set[asyncio.Task[Any]]
    """What gRPC runs for the call until it has the call's status."""
    met: int
    """Number of the newest incarnation of the log that the leader was asked for."""


class LeaderSearch:
    """One search, for a single call of ``find``, which ends all other calls when it returns."""

    def __init__(
        self,
        nodes: Nodes,
        writer: WriterIdentity,
        *,
        rng: random.Random,
        avoid: str | None = None,
    ) -> None:
        self._nodes = nodes
        self._hello = WriteStreamRequest(hello=writer)
        self._rng = rng
        self._avoid = avoid
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._denials: dict[str, ClientError] = {}
        """By address: nodes whose last answer was that this client may not write."""
        self._not_served: dict[str, ClientError] = {}
        """By address: servers whose last answer was that they have no write stream."""
        self._supervisor = Supervisor()
        self._loop = asyncio.get_running_loop()
        self._found: asyncio.Future[FoundStream] = self._loop.create_future()
        self._began = self._loop.time()

    async def find(self) -> FoundStream:
        """Return the stream of the first node that accepts; search until then, or until cancelled.

        Raises:
            RefusedError: All nodes refuse this client's writes, or some do and none accepted for
                ``EAGER_SECONDS``. ``NotServedError``: no address takes writes at all.
        """
        try:
            for address in self._nodes.addresses:
                self._ask(address)
            return await self._found
        finally:
            for task in self._asked.values():
                task.cancel()

    def _ask(self, address: str) -> None:
        if address not in self._asked:
            self._asked[address] = self._supervisor.start(
                f"search-{address}", partial(self._ask_until_found, address)
            )

    async def _ask_until_found(self, address: str) -> None:
        if address == self._avoid:
            await asyncio.sleep(AVOIDED_SECONDS)
        pause = EAGER_BACKOFF_SECONDS[1]
        while not self._found.done():
            found = await self._try(address)
            if found is not None:
                if self._found.done():
                    found.call.cancel()
                else:
                    self._nodes.accepted_by(address, found.accepted.leader_epoch)
                    self._found.set_result(found)
                return
            is_eager = self._loop.time() - self._began <= EAGER_SECONDS
            if self._denials and (len(self._denials) == len(self._asked) or not is_eager):
                if not self._found.done():
                    self._found.set_exception(next(iter(self._denials.values())))
                return
            if len(self._not_served) == len(self._asked):
                if not self._found.done():
                    self._found.set_exception(next(iter(self._not_served.values())))
                return
            if not is_eager:
                pause = min(pause * 1.5, PATIENT_BACKOFF_SECONDS_MAX)
            await asyncio.sleep(self._rng.uniform(EAGER_BACKOFF_SECONDS[0], pause))

    async def _try(self, address: str) -> FoundStream | None:
        call, tasks = opened_with_tasks(self._nodes.node(address).metadata.WriteStream)
        # A leader of an older log refuses, and another node is asked.
        met = self._hello.hello.log_incarnation_number = self._nodes.newest_incarnation.number
        accepted: StreamAccepted | None = None
        self._denials.pop(address, None)
        self._not_served.pop(address, None)
        try:
            async with asyncio.timeout(GREETING_SECONDS_MAX):
                await call.write(self._hello)
                response = await call.read()
                metadata = await call.initial_metadata()
            # An old leader that does not know its successor accepts as well.
            if (
                not self._nodes.stranger(metadata)
                and response is not grpc.aio.EOF
                and response.HasField("accepted")
                and response.accepted.leader_epoch >= self._nodes.leader_epoch
            ):
                accepted = response.accepted
        except CALL_ERRORS as error:
            if not self._nodes.stranger(_trailing(error), is_failure=True):
                self._follow(address, _translated(error))
        except TimeoutError:
            pass
        finally:
            if accepted is None:
                call.cancel()
        return None if accepted is None else FoundStream(call, accepted, address, tasks, met)

    def _follow(self, address: str, error: ClientError) -> None:
        if not isinstance(error, RefusedError):
            return
        if self._nodes.forgets_token(address, error):
            return
        if isinstance(error, NotServedError):
            self._not_served[address] = self._nodes.explained(address, error)
        if error.code in _DENIALS:
            self._denials[address] = self._nodes.explained(address, error)
        leader = self._nodes.learn(error.leader)
        if leader is not None:
            self._ask(leader)


def _trailing(error: BaseException) -> grpc.aio.Metadata | None:
    return error.trailing_metadata() if isinstance(error, grpc.aio.AioRpcError) else None


def _translated(error: BaseException) -> ClientError:
    return from_rpc(error) if isinstance(error, grpc.RpcError) else ProtocolError(str(error))
