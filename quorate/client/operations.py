"""Changes of the quorum itself: sent to the leader, retried if it changes, applied once."""

from __future__ import annotations

import random
from collections.abc import Iterable

from quorate.client.arguments import message_of
from quorate.client.caller import Caller
from quorate.client.channels import Nodes
from quorate.client.queries import Queries
from quorate.client.quorum_changes import Answer, QuorumChange, QuorumChanges
from quorate.client.results.admin import (
    AddVoterResponse,
    CreateSnapshotResponse,
    DescribeQuorumResponse,
    RemoveVoterResponse,
    TransferLeadershipResponse,
    UpdateVoterResponse,
)
from quorate.client.timeouts import call_timeout
from quorum.v1 import admin_pb2, common_pb2

UNKNOWN_OFFSET = -1
"""Offset of a change that was found committed after its answer was lost."""


class Operations(Queries):
    """Mixed into ``Client``.

    ``timeout_seconds`` of a call is for all of it, the search for a leader included; None takes the
    client's own.
    """

    def __init__(
        self,
        nodes: Nodes,
        caller: Caller,
        *,
        timeout_seconds: float,
        rng: random.Random,
        reason: str = "",
    ) -> None:
        """``reason`` goes with every change into the leader's audit log."""
        Queries.__init__(self, nodes, caller, timeout_seconds=timeout_seconds)
        # Looked up at each call.
        self._changes = QuorumChanges(caller, lambda: self.describe_quorum(), rng=rng)
        self._operations_timeout = timeout_seconds
        self._change_reason = reason

    async def transfer_leadership(
        self, target_id: int | None = None, *, timeout_seconds: float | None = None
    ) -> TransferLeadershipResponse:
        """Transfer leadership to voter ``target_id``, or to the most caught-up one.

        Returns the new leader. Writes wait during the transfer, and none is lost. If the target
        does not take over in time, the leader stays. Without a target, a leader that was
        elected meanwhile counts as success.

        Raises:
            RefusedError: INELIGIBLE_REPLICA or VOTER_NOT_FOUND when the target cannot lead;
                REQUEST_TIMED_OUT when it did not take over; NEW_LEADER_ELECTED when another did.
            UnavailableError: No leader took the request in time.
            OutcomeUnknownError: It was sent, and its outcome could not be found out.
        """
        before: list[DescribeQuorumResponse] = []

        def request(seen: DescribeQuorumResponse) -> admin_pb2.TransferLeadershipRequest:
            before.append(seen)
            return message_of(
                admin_pb2.TransferLeadershipRequest,
                target_id=target_id,
                current_leader_epoch=seen.leader_epoch,
                reason=self._change_reason,
            )

        def answer(
            seen: DescribeQuorumResponse,
        ) -> TransferLeadershipResponse | None:
            is_there = (
                seen.leader_id != before[0].leader_id
                if target_id is None
                else seen.leader_id == target_id
            )
            if not is_there:
                return None
            return TransferLeadershipResponse(
                leader_id=seen.leader_id, leader_epoch=seen.leader_epoch
            )

        return await self._change(
            QuorumChange(TransferLeadershipResponse, "TransferLeadership", request, answer),
            timeout_seconds,
        )

    async def create_snapshot(
        self, *, dry_run: bool = False, timeout_seconds: float | None = None
    ) -> CreateSnapshotResponse:
        """Let the node that answers write a checkpoint of its image now.

        Returns which one it has then. A node with a checkpoint of its position writes none.

        Raises:
            RefusedError: UNKNOWN_SERVER_ERROR when its disk has no room.
            UnavailableError: No node answered in time, or one was being written all the time.
        """
        limit = call_timeout(timeout_seconds, self._operations_timeout)
        request = message_of(
            admin_pb2.CreateSnapshotRequest, dry_run=dry_run, reason=self._change_reason
        )
        answer = await self._caller.call(
            "admin", "CreateSnapshot", request, timeout_seconds=limit, to_leader=False
        )
        return CreateSnapshotResponse.of(answer)

    async def add_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        endpoints: Iterable[common_pb2.Endpoint],
        *,
        readmit: bool = False,
        timeout_seconds: float | None = None,
    ) -> AddVoterResponse:
        """Let a replica vote that follows the leader and is level with it.

        ``readmit`` lets one back in that was removed with this directory id.

        Raises:
            RefusedError: DUPLICATE_VOTER, VOTER_REMOVED, INVALID_REQUEST; REQUEST_TIMED_OUT when
                another change is under way, or it is not level or cannot be reached.
            UnavailableError: No leader took the request in time.
            OutcomeUnknownError: It was sent, and its outcome could not be found out.
        """
        request = message_of(
            admin_pb2.AddVoterRequest,
            voter_id=voter_id,
            directory_id=directory_id,
            endpoints=endpoints,
            readmit=readmit,
            reason=self._change_reason,
        )

        def answer(seen: DescribeQuorumResponse) -> AddVoterResponse | None:
            if not _is_voter(seen, voter_id, directory_id):
                return None
            return AddVoterResponse(offset=UNKNOWN_OFFSET, leader_epoch=seen.leader_epoch)

        return await self._change(
            QuorumChange(AddVoterResponse, "AddVoter", lambda _: request, answer), timeout_seconds
        )

    async def remove_voter(
        self, voter_id: int, directory_id: bytes, *, timeout_seconds: float | None = None
    ) -> RemoveVoterResponse:
        """Let a voter vote no longer; it is remembered as removed.

        Raises:
            RefusedError: VOTER_NOT_FOUND, also for the last one; REQUEST_TIMED_OUT when another
                change is under way.
            UnavailableError: No leader took the request in time.
            OutcomeUnknownError: It was sent, and its outcome could not be found out.
        """
        request = message_of(
            admin_pb2.RemoveVoterRequest,
            voter_id=voter_id,
            directory_id=directory_id,
            reason=self._change_reason,
        )

        def answer(seen: DescribeQuorumResponse) -> RemoveVoterResponse | None:
            if _is_voter(seen, voter_id, directory_id):
                return None
            return RemoveVoterResponse(offset=UNKNOWN_OFFSET, leader_epoch=seen.leader_epoch)

        return await self._change(
            QuorumChange(RemoveVoterResponse, "RemoveVoter", lambda _: request, answer),
            timeout_seconds,
        )

    async def update_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        endpoints: Iterable[common_pb2.Endpoint],
        *,
        timeout_seconds: float | None = None,
    ) -> UpdateVoterResponse:
        """Say where a voter is from now on.

        Raises:
            RefusedError: VOTER_NOT_FOUND; REQUEST_TIMED_OUT when it cannot be reached there.
            UnavailableError: No leader took the request in time.
            OutcomeUnknownError: It was sent, and its outcome could not be found out.
        """
        request = message_of(
            admin_pb2.UpdateVoterRequest,
            voter_id=voter_id,
            directory_id=directory_id,
            endpoints=endpoints,
            current_leader_epoch=-1,
            reason=self._change_reason,
        )

        def answer(seen: DescribeQuorumResponse) -> UpdateVoterResponse | None:
            known = next((n.endpoints for n in seen.nodes if n.node_id == voter_id), ())
            # Behind those of its record the leader also has the listeners for clients.
            recorded = [each.to_message() for each in known[: len(request.endpoints)]]
            if recorded != list(request.endpoints) or not _is_voter(seen, voter_id, directory_id):
                return None
            return UpdateVoterResponse(offset=UNKNOWN_OFFSET, leader_epoch=seen.leader_epoch)

        return await self._change(
            QuorumChange(UpdateVoterResponse, "UpdateVoter", lambda _: request, answer),
            timeout_seconds,
        )

    async def _change(self, change: QuorumChange[Answer], timeout_seconds: float | None) -> Answer:
        seconds = call_timeout(timeout_seconds, self._operations_timeout)
        return await self._changes.carry_out(change, seconds)


def _is_voter(seen: DescribeQuorumResponse, voter_id: int, directory_id: bytes) -> bool:
    return any(
        (each.replica_id, each.directory_id) == (voter_id, directory_id) for each in seen.voters
    )
