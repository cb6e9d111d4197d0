"""Changes of the quorum itself: each is sent once, to the leader, and not repeated blindly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from quorate.client.caller import Caller
from quorate.client.channels import Nodes
from quorate.client.errors import ClientError, OutcomeUnknownError, RefusedError, UnavailableError
from quorate.client.queries import Queries
from quorum.v1 import admin_pb2, common_pb2

_NOT_HERE = frozenset(
    {common_pb2.ERROR_CODE_NOT_LEADER_OR_FOLLOWER, common_pb2.ERROR_CODE_NOT_CONTROLLER}
)


def _was_not_taken(error: ClientError) -> bool:
    """Whether a node said that it did nothing because it does not lead."""
    return isinstance(error, RefusedError) and error.code in _NOT_HERE


class Operations(Queries):
    """Mixed into ``Client``."""

    def __init__(self, nodes: Nodes, caller: Caller, *, timeout_seconds: float) -> None:
        Queries.__init__(self, nodes, caller, timeout_seconds=timeout_seconds)
        self._operations_caller = caller
        self._operations_timeout = timeout_seconds

    async def transfer_leadership(
        self, target_id: int | None = None
    ) -> admin_pb2.TransferLeadershipResponse:
        """Let voter ``target_id`` lead, or the one that is furthest; says who leads afterwards.

        Writers wait for a moment, and nothing they wrote is lost. When the target does not take
        over in time the leader leads on.

        Raises:
            RefusedError: INELIGIBLE_REPLICA or VOTER_NOT_FOUND when the target cannot lead;
                REQUEST_TIMED_OUT when it did not take over; NEW_LEADER_ELECTED when another did.
            OutcomeUnknownError: Sent, and the connection was lost.
        """
        before = await self.describe_quorum()
        request = admin_pb2.TransferLeadershipRequest(
            target_id=target_id, current_leader_epoch=before.leader_epoch
        )
        response: admin_pb2.TransferLeadershipResponse = await self._act(
            "TransferLeadership", request
        )
        return response

    async def add_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        endpoints: Iterable[common_pb2.Endpoint],
        *,
        readmit: bool = False,
    ) -> admin_pb2.AddVoterResponse:
        """Let a replica vote that follows the leader and is level with it.

        ``readmit`` lets one back in that was removed with this directory id.

        Raises:
            RefusedError: DUPLICATE_VOTER, VOTER_REMOVED, INVALID_REQUEST; REQUEST_TIMED_OUT when
                another change is under way, or it is not level or cannot be reached.
            OutcomeUnknownError: Written, and not known to be committed.
        """
        response: admin_pb2.AddVoterResponse = await self._change_voters(
            "AddVoter",
            admin_pb2.AddVoterRequest(
                voter_id=voter_id, directory_id=directory_id, endpoints=endpoints, readmit=readmit
            ),
        )
        return response

    async def remove_voter(
        self, voter_id: int, directory_id: bytes
    ) -> admin_pb2.RemoveVoterResponse:
        """Let a voter vote no longer; it is remembered as removed.

        Raises:
            RefusedError: VOTER_NOT_FOUND, also for the last one; REQUEST_TIMED_OUT when another
                change is under way.
            OutcomeUnknownError: Written, and not known to be committed.
        """
        response: admin_pb2.RemoveVoterResponse = await self._change_voters(
            "RemoveVoter",
            admin_pb2.RemoveVoterRequest(voter_id=voter_id, directory_id=directory_id),
        )
        return response

    async def update_voter(
        self, voter_id: int, directory_id: bytes, endpoints: Iterable[common_pb2.Endpoint]
    ) -> admin_pb2.UpdateVoterResponse:
        """Say where a voter is from now on.

        Raises:
            RefusedError: VOTER_NOT_FOUND; REQUEST_TIMED_OUT when it cannot be reached there.
            OutcomeUnknownError: Sent, and the connection was lost.
        """
        response: admin_pb2.UpdateVoterResponse = await self._change_voters(
            "UpdateVoter",
            admin_pb2.UpdateVoterRequest(
                voter_id=voter_id,
                directory_id=directory_id,
                endpoints=endpoints,
                current_leader_epoch=-1,
            ),
        )
        return response

    async def _change_voters(self, method: str, request: Message) -> Any:
        # Finds the leader, so that the change itself is sent to one node only.
        await self.describe_quorum()
        return await self._act(method, request)

    async def _act(self, method: str, request: Message) -> Any:
        """Ask the leader, which the call before has found; another node only when told so."""
        try:
            return await self._operations_caller.call(
                "admin",
                method,
                request,
                timeout_seconds=self._operations_timeout,
                attempt_seconds=self._operations_timeout,
                to_leader=True,
                may_repeat=_was_not_taken,
            )
        except UnavailableError as error:
            raise OutcomeUnknownError(f"{method}: {error}") from error
