"""Operators' changes of the quorum: the part of ``AdminService`` that changes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias
from urllib.parse import unquote

from quorate.client.limits import TEXT_BYTES_MAX
from quorate.services.access import AccessPolicy
from quorate.services.calls import Context, seconds_left
from quorate.services.errors import RequestRefusedError
from quorate.services.identity import bounded_text, principal_of
from quorate.services.leadership import check_epoch, leader_hint, require_leader
from quorate.services.ports import Outcome, ServedNode, VoterChange
from quorum.control_records import Origin
from quorum.core.contract.local_events import NO_TOKEN, AddVoter, RemoveVoter, UpdateVoter
from quorum.errors import CommandError, ErrorCode
from quorum.types import NO_NODE, ZERO_UUID, Endpoint, Epoch, NodeId, ReplicaKey, Voter
from quorum.v1 import admin_pb2, common_pb2

_log = logging.getLogger("quorate.audit")
_POLL_S = 0.005
Methods: TypeAlias = dict[str, tuple[Callable[[Any, Context], Awaitable[Any]], Any]]


class QuorumOperations:
    """Requests of operators; CreateSnapshot every node executes, the others only the leader.

    Used on the event loop only.
    """

    def __init__(self, node: ServedNode, policy: AccessPolicy | None = None) -> None:
        """``policy`` knows who callers with tokens are."""
        self._node = node
        self._policy = policy

    def methods(self) -> Methods:
        """Return the methods by name, each with the type of its request."""
        wire = admin_pb2
        methods: dict[str, tuple[Callable[[Any, Context, Origin], Awaitable[Any]], Any]] = {
            "CreateSnapshot": (self._create_snapshot, wire.CreateSnapshotRequest),
            "TransferLeadership": (self._transfer_leadership, wire.TransferLeadershipRequest),
            "AddVoter": (self._add_voter, wire.AddVoterRequest),
            "RemoveVoter": (self._remove_voter, wire.RemoveVoterRequest),
            "UpdateVoter": (self._update_voter, wire.UpdateVoterRequest),
        }
        return {
            name: (self._audited(name, method), request_type)
            for name, (method, request_type) in methods.items()
        }

    def _principal(self, context: Context) -> str:
        if self._policy is not None:
            proved = self._policy.access_of(context, self._node.image).audit_name
            if proved is not None:
                return proved
        return principal_of(context.auth_context(), "")

    def _audited(
        self, name: str, method: Callable[[Any, Context, Origin], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        """Write one line to the audit log for each request, whatever becomes of it.

        ``method`` gets who asks and why, for the record that it makes in the metadata log.
        """

        async def call(request: Any, context: Context) -> Any:
            principal = self._principal(context)
            reason = bounded_text(request.reason, "reason")
            origin = Origin(principal[:TEXT_BYTES_MAX], reason)
            outcome = "interrupted"
            try:
                answer = await method(request, context, origin)
                outcome = "done"
                return answer
            except CommandError as error:
                outcome = error.code.name
                raise
            finally:
                subject = _subject(request, self._node.node_id)
                _log.warning(
                    "event=quorum_change principal=%s address=%s what=%s node=%d outcome=%s "
                    "reason=%s",
                    principal, unquote(context.peer()), name, subject, outcome, reason or "-",
                )  # fmt: skip

        return call

    async def _create_snapshot(
        self, request: admin_pb2.CreateSnapshotRequest, _context: Context, _origin: Origin
    ) -> admin_pb2.CreateSnapshotResponse:
        made = await self._node.create_snapshot(dry_run=request.dry_run)
        return admin_pb2.CreateSnapshotResponse(
            node_id=self._node.node_id,
            end_offset=made.snapshot_id.offset,
            epoch=made.snapshot_id.epoch,
            size_bytes=made.size_bytes,
            is_new=made.is_new,
        )

    async def _transfer_leadership(
        self, request: admin_pb2.TransferLeadershipRequest, context: Context, origin: Origin
    ) -> admin_pb2.TransferLeadershipResponse:
        node = self._node
        require_leader(node)
        check_epoch(node, request.current_leader_epoch)
        target = request.target_id if request.HasField("target_id") else NO_NODE
        if request.HasField("target_id") and target < 0:
            raise CommandError(ErrorCode.INVALID_REQUEST, f"node id {target} is negative")
        epoch = node.leadership.epoch
        self._check(await node.transfer_leadership(target, origin))
        while (  # noqa: ASYNC110 - a change of leader has no event; the deadline bounds the loop
            target != node.node_id and not self._has_successor(epoch) and seconds_left(context)
        ):
            await asyncio.sleep(_POLL_S)
        leader = node.leadership
        if target not in (NO_NODE, leader.leader_id):
            raise RequestRefusedError(
                ErrorCode.NEW_LEADER_ELECTED,
                f"node {leader.leader_id} was elected in epoch {leader.epoch}, not {target}",
                (leader_hint(node),),
            )
        return admin_pb2.TransferLeadershipResponse(
            leader_id=leader.leader_id, leader_epoch=leader.epoch
        )

    async def _add_voter(
        self, request: admin_pb2.AddVoterRequest, _context: Context, origin: Origin
    ) -> admin_pb2.AddVoterResponse:
        offset, epoch = await self._change(
            AddVoter(
                NO_TOKEN,
                _voter(request),
                ack_when_committed=not request.answer_on_append,
                timeout_ms=request.timeout_ms,
                readmit=request.readmit,
                origin=origin,
            )
        )
        return admin_pb2.AddVoterResponse(offset=offset, leader_epoch=epoch)

    async def _remove_voter(
        self, request: admin_pb2.RemoveVoterRequest, _context: Context, origin: Origin
    ) -> admin_pb2.RemoveVoterResponse:
        key = _key(request.voter_id, request.directory_id)
        offset, epoch = await self._change(RemoveVoter(NO_TOKEN, key, request.timeout_ms, origin))
        return admin_pb2.RemoveVoterResponse(offset=offset, leader_epoch=epoch)

    async def _update_voter(
        self, request: admin_pb2.UpdateVoterRequest, _context: Context, origin: Origin
    ) -> admin_pb2.UpdateVoterResponse:
        check_epoch(self._node, request.current_leader_epoch)
        offset, epoch = await self._change(
            UpdateVoter(NO_TOKEN, _voter(request), request.timeout_ms, origin)
        )
        return admin_pb2.UpdateVoterResponse(offset=offset, leader_epoch=epoch)

    async def _change(self, change: VoterChange) -> tuple[int, Epoch]:
        """Return the offset and the epoch of the voters record."""
        require_leader(self._node)
        epoch = self._node.leadership.epoch
        outcome = await self._node.change_voters(change)
        if outcome.code is not ErrorCode.NONE and outcome.offset >= 0:
            # The change is written but not known to be committed: neither done nor refused.
            raise RequestRefusedError(ErrorCode.OUTCOME_UNKNOWN, outcome.message)
        self._check(outcome)
        return outcome.offset, epoch

    def _has_successor(self, epoch: int) -> bool:
        leader = self._node.leadership
        return leader.epoch > epoch and leader.leader_id != NO_NODE

    def _check(self, outcome: Outcome) -> None:
        if outcome.code is ErrorCode.NONE:
            return
        is_elsewhere = outcome.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        hint = (leader_hint(self._node),) if is_elsewhere else ()
        raise RequestRefusedError(outcome.code, outcome.message, hint)


def _subject(request: Any, answering: NodeId) -> NodeId:
    """Return the node that a request is about; ``NO_NODE`` if the leader may choose it."""
    if isinstance(request, admin_pb2.CreateSnapshotRequest):
        return answering
    if isinstance(request, admin_pb2.TransferLeadershipRequest):
        return request.target_id if request.HasField("target_id") else NO_NODE
    return NodeId(request.voter_id)


def endpoints_to_pb(endpoints: Iterable[Endpoint]) -> list[common_pb2.Endpoint]:
    """Convert listeners to the wire format."""
    return [
        common_pb2.Endpoint(name=each.name, host=each.host, port=each.port) for each in endpoints
    ]


def _voter(request: admin_pb2.AddVoterRequest | admin_pb2.UpdateVoterRequest) -> Voter:
    known = Voter(ReplicaKey(0))
    lowest = request.min_version if request.HasField("min_version") else None
    highest = request.max_version if request.HasField("max_version") else None
    return Voter(
        _key(request.voter_id, request.directory_id),
        tuple(Endpoint(each.name, each.host, each.port) for each in request.endpoints),
        known.min_supported_version if lowest is None else lowest,
        known.max_supported_version if highest is None else highest,
    )


def _key(node_id: int, directory_id: bytes) -> ReplicaKey:
    """Return a replica's key. Only the length is checked here; the core checks the rest.

    Raises:
        CommandError: INVALID_REQUEST if the directory id does not have 16 bytes.
    """
    if len(directory_id) != len(ZERO_UUID):
        raise CommandError(
            ErrorCode.INVALID_REQUEST, f"the directory id has {len(directory_id)} bytes, not 16"
        )
    return ReplicaKey(node_id, directory_id)
