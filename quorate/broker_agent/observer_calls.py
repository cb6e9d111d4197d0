"""The calls of an agent whose observer is in its process: none is made for another log.

An observer that a recovery has left behind is refused by every node, and its image stands still.
The leader would still take the broker's heartbeats, and their offset for one of its own log. So
each call asks the leader for the incarnation of its log first. The answer says why the agent ends.

The call itself may find another leader than the question did, such as a former voter's. So the
client of ``calls`` names the observer's incarnation, and the leader of another log refuses.

See: ADR 65 (incarnations), ADR 78.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from quorate.broker_agent.agent import AgentCalls
from quorate.client.errors import LogIncarnationError, UnavailableError
from quorate.client.pending import Applied
from quorate.client.results.metadata import OffsetForLeaderEpochResponse
from quorum.log_position import FIRST_INCARNATION_ID
from quorum.types import Uuid, uuid_to_text
from quorum.v1.commands_pb2 import AssignReplicasToDirs, BrokerHeartbeat, RegisterBroker


class ClusterCalls(AgentCalls, Protocol):
    """What is asked of the cluster; ``Client`` makes these calls."""

    async def offset_for_leader_epoch(
        self, epoch: int, *, log_incarnation_number: int = 0
    ) -> OffsetForLeaderEpochResponse:
        """Return where an epoch ends, with the incarnation of the leader's log.

        A leader of an incarnation below ``log_incarnation_number`` is passed over.
        """


class ObserverCalls:
    """Implements ``AgentCalls``: as ``calls``, if the leader's log is the observer's."""

    def __init__(
        self, calls: ClusterCalls, incarnation_id: Uuid, incarnation_number: Callable[[], int]
    ) -> None:
        """``incarnation_id`` is that of the observer's directory, the number that of its log."""
        self._calls = calls
        self._id = incarnation_id
        self._number = incarnation_number

    async def register_broker(
        self,
        registration: RegisterBroker,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Register a broker; ``timeout`` is for the question and the call together.

        Raises:
            LogIncarnationError: The log was recovered or restored; the observer's is left behind.
        """
        left = await self._check(timeout)
        return await self._calls.register_broker(registration, timeout=left)

    async def heartbeat(
        self,
        beat: BrokerHeartbeat,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Send a heartbeat; ``timeout`` is for the question and the heartbeat together.

        Raises:
            LogIncarnationError: As ``register_broker``.
        """
        left = await self._check(timeout)
        return await self._calls.heartbeat(beat, timeout=left)

    async def assign_replicas_to_dirs(
        self,
        assignment: AssignReplicasToDirs,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Report in which log directories replicas are; behind a heartbeat, so not checked."""
        return await self._calls.assign_replicas_to_dirs(assignment, timeout=timeout)

    async def _check(self, seconds: float | None) -> float | None:
        """Ask for the incarnation; return the seconds that are left for the call."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        number = self._number()
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._calls.offset_for_leader_epoch(0, log_incarnation_number=number)
        except TimeoutError as error:
            raise UnavailableError("the leader did not name the incarnation of its log") from error
        self._compare(answer, number)
        return None if deadline is None else max(0.0, deadline - loop.time())

    def _compare(self, answer: OffsetForLeaderEpochResponse, number: int) -> None:
        """Raise unless the leader's log is the observer's, whose incarnation has the number."""
        found = answer.log_incarnation or FIRST_INCARNATION_ID
        if found == self._id:
            return
        if answer.log_incarnation_number < number:
            raise UnavailableError("answered by a former voter, of an older incarnation of the log")
        if number == 0 and self._id != FIRST_INCARNATION_ID:
            # Which of the two is newer is not known before the observer has fetched so far.
            raise UnavailableError(
                f"the leader that answers has incarnation {uuid_to_text(found)} of the log; the "
                f"observer in this process is formatted for {uuid_to_text(self._id)}, and has not "
                "fetched its beginning yet"
            )
        raise LogIncarnationError(
            f"the log was recovered or restored: it is incarnation {uuid_to_text(found)} now, and "
            f"the observer in this process has {uuid_to_text(self._id)}. Move its data directory "
            "aside, format it again with `quorate format --no-initial-voters --log-incarnation "
            f"{uuid_to_text(found)}`, and start the agent again"
        )
