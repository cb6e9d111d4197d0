"""``AdminService``: the cluster, its quorum and its features, as one node sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc

from quorate.services.access import AccessPolicy
from quorate.services.calls import CallPolicy, Context, unary
from quorate.services.commands import COMMANDS
from quorate.services.describe import brokers, features
from quorate.services.errors import RequestRefusedError
from quorate.services.image_digests import ImageDigests
from quorate.services.incarnations import incarnation_bytes
from quorate.services.leadership import with_client_listeners
from quorate.services.operations import QuorumOperations, endpoints_to_pb
from quorate.services.ports import QuorumStatus, ServedNode
from quorate.services.reads import Reads
from quorate.services.results import fill
from quorate.services.users import described_users
from quorum.core.state.pending_change import PendingChangeView
from quorum.core.state.replica_progress import ReplicaView
from quorum.errors import ErrorCode
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import METADATA_PARTITION, METADATA_TOPIC, Uuid, shown_high_watermark
from quorum.v1 import admin_pb2
from quorum.v1.commands_pb2 import SourcePosition
from statemachine.command_access import on_topic
from statemachine.commands import AclFilter
from statemachine.dump import count_records
from statemachine.image import MetadataImage
from statemachine.import_state import ImportState
from statemachine.prepare.acls import entry_fields, selected
from statemachine.sections.acl_index import AclOperation

_NAME_SHOWN_MAX = 249
"""Characters of an unknown topic's name shown in a message: the maximum of a topic name."""
SERVICE_NAME: str = admin_pb2.DESCRIPTOR.services_by_name["AdminService"].full_name


class AdminService:
    """Serves operators and tools. Used on the event loop only."""

    def __init__(self, node: ServedNode, reads: Reads, policy: AccessPolicy | None = None) -> None:
        """``policy``: what callers may do; None: everything."""
        self._node = node
        self._reads = reads
        self._policy = policy
        self._digests = ImageDigests(lambda: (node.image, reads.position(node.image)))

    def handlers(self, policy: CallPolicy) -> grpc.GenericRpcHandler[Any, Any]:
        """Return the handlers to register with a server."""
        wire = admin_pb2
        queries: dict[str, tuple[Callable[[Any, Context], Awaitable[Any]], Any]] = {
            "DescribeCluster": (self._describe_cluster, wire.DescribeClusterRequest),
            "DescribeQuorum": (self._describe_quorum, wire.DescribeQuorumRequest),
            "DescribeFeatures": (self._describe_features, wire.DescribeFeaturesRequest),
            "DescribeAcls": (self._describe_acls, wire.DescribeAclsRequest),
            "DescribeUserScramCredentials": (
                self._describe_users,
                wire.DescribeUserScramCredentialsRequest,
            ),
            "DescribeImage": (self._describe_image, wire.DescribeImageRequest),
            "DeleteRecords": (self._delete_records, wire.DeleteRecordsRequest),
        }
        changes = QuorumOperations(self._node, self._policy).methods()
        methods = {
            name: unary(method, request_type, name=name, policy=policy, is_change=name in changes)
            for name, (method, request_type) in {**queries, **changes}.items()
        }
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def _describe_cluster(
        self, request: admin_pb2.DescribeClusterRequest, context: Context
    ) -> admin_pb2.DescribeClusterResponse:
        image = await self._reads.image(request.read, context)
        return admin_pb2.DescribeClusterResponse(
            position=self._reads.position(image),
            cluster_id=self._node.cluster_id,
            leader_id=self._node.answering_leader,
            leader_epoch=self._node.leadership.epoch,
            brokers=brokers(image),
            nodes=_nodes(self._node, self._node.describe_quorum()),
            log_incarnation=incarnation_bytes(self._node),
        )

    async def _describe_quorum(
        self, _request: admin_pb2.DescribeQuorumRequest, _context: Context
    ) -> admin_pb2.DescribeQuorumResponse:
        node = self._node
        status = node.describe_quorum()
        return admin_pb2.DescribeQuorumResponse(
            cluster_id=node.cluster_id,
            leader_id=node.answering_leader,
            leader_epoch=node.leadership.epoch,
            high_watermark=shown_high_watermark(node.high_watermark),
            voters=_voters(status),
            observers=[
                _replica(each, status.wall_shift_ms)
                for each in (*status.replicas, *status.tree.downstream)
                if not each.is_voter
            ],
            nodes=_nodes(node, status),
            node_id=node.node_id,
            is_leader=node.is_leader,
            log_start_offset=node.log_start.offset,
            log_end_offset=node.log_end.offset,
            position=self._reads.position(node.image),
            directory_id=_known(status.own_directory_id),
            own_endpoints=endpoints_to_pb(status.own_endpoints),
            timestamp_ms=node.wall_ms(),
            pending_change=_pending_change(status.pending_change),
            removed=[
                admin_pb2.RemovedVoter(node_id=key.id, directory_id=key.directory_id)
                for key in status.removed
            ],
            relay_path=[key.id for key in status.tree.path],
            divergence_resolution=status.divergence_resolution,
            check_quorum_ms=status.check_quorum_ms,
            relay_low_offset=status.tree.subtree_low if status.tree.subtree_low >= 0 else None,
            is_relay_low_provisional=status.tree.is_low_provisional,
            replay_stopped=status.replay_stopped,
            replicas_ahead=[
                admin_pb2.ReplicaAhead(
                    replica_id=each.key.id,
                    directory_id=_known(each.key.directory_id),
                    epoch=each.epoch,
                    is_brought_back=each.is_brought_back,
                )
                for each in status.replicas_ahead
            ],
            log_incarnation=incarnation_bytes(node),
            log_incarnation_facts=_incarnation(node.log_incarnation),
        )

    async def _describe_features(
        self, request: admin_pb2.DescribeFeaturesRequest, context: Context
    ) -> admin_pb2.DescribeFeaturesResponse:
        image = await self._reads.image(request.read, context)
        return admin_pb2.DescribeFeaturesResponse(
            position=self._reads.position(image),
            features=features(image, self._node.supported_features),
        )

    async def _describe_acls(
        self, request: admin_pb2.DescribeAclsRequest, context: Context
    ) -> admin_pb2.DescribeAclsResponse:
        wanted = AclFilter()
        if request.HasField("filter"):
            wanted = COMMANDS[AclFilter].from_pb(request.filter)
        image = await self._reads.image(request.read, context)
        acls = image.security.acls
        found = selected((acls[acl_id] for acl_id in sorted(acls)), wanted)
        response = admin_pb2.DescribeAclsResponse(
            position=self._reads.position(image), is_enforced=self._policy is not None
        )
        for record in found:
            fill(response.entries.add(), entry_fields(record))
        return response

    async def _describe_users(
        self, request: admin_pb2.DescribeUserScramCredentialsRequest, context: Context
    ) -> admin_pb2.DescribeUserScramCredentialsResponse:
        image = await self._reads.image(request.read, context)
        return admin_pb2.DescribeUserScramCredentialsResponse(
            position=self._reads.position(image),
            users=(found := described_users(image, request)).users,
            has_more=found.has_more,
        )

    async def _describe_image(
        self, request: admin_pb2.DescribeImageRequest, context: Context
    ) -> admin_pb2.DescribeImageResponse:
        image = await self._reads.image(request.read, context)
        found = await self._digests.at_least(image.provenance.end_offset)
        source = found.image.source
        return admin_pb2.DescribeImageResponse(
            position=found.position_at(asyncio.get_running_loop().time()),
            state_digest=found.digest,
            record_count=count_records(found.image),
            import_status=None if source is None else _import_status(source),
        )

    async def _delete_records(
        self, request: admin_pb2.DeleteRecordsRequest, context: Context
    ) -> admin_pb2.DeleteRecordsResponse:
        topic = request.topic or METADATA_TOPIC
        if self._policy is not None:
            access = self._policy.access_of(context, self._node.image)
            access.require(self._node.image, on_topic(topic, AclOperation.DELETE))
        if not _exists(self._node.image, topic, request.partition):
            raise RequestRefusedError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no partition {request.partition} of topic {topic[:_NAME_SHOWN_MAX]!r}",
            )
        raise RequestRefusedError(
            ErrorCode.POLICY_VIOLATION,
            f"records of {request.topic or 'the metadata log'} cannot be deleted on request: "
            "only checkpoints move the start of the log",
        )


def _exists(image: MetadataImage, topic: str, partition: int) -> bool:
    if topic == METADATA_TOPIC:
        return partition == METADATA_PARTITION
    topic_id = image.topics.id_of(topic)
    return topic_id is not None and image.topics.partition(topic_id, partition) is not None


def _import_status(state: ImportState) -> admin_pb2.ImportStatus:
    return admin_pb2.ImportStatus(
        source_cluster_id=state.cluster_id,
        checkpoint_offset=state.checkpoint_offset,
        position=SourcePosition(
            is_in_checkpoint=not state.position.is_in_log, offset=state.position.offset
        ),
        is_finished=state.is_finished,
    )


def _incarnation(incarnation: LogIncarnation) -> admin_pb2.LogIncarnation | None:
    if incarnation == FIRST_INCARNATION:
        return None
    return admin_pb2.LogIncarnation(
        number=incarnation.number,
        id=incarnation.id,
        previous_id=_known(incarnation.previous_id),
        kept_end_offset=incarnation.kept.offset,
        kept_end_epoch=incarnation.kept.epoch,
        report_sha256=incarnation.report_digest,
    )


def _voters(status: QuorumStatus) -> list[admin_pb2.QuorumReplica]:
    """Return the voters in force with their progress; -1 for figures that are not known."""
    known = [each for each in status.replicas if each.is_voter] or [
        ReplicaView(voter.key, True, -1, -1, -1)  # noqa: FBT003
        for voter in sorted(status.voters, key=lambda each: each.key.id)
    ]
    return [_replica(each, status.wall_shift_ms) for each in known]


def _replica(view: ReplicaView, wall_shift_ms: int) -> admin_pb2.QuorumReplica:
    def wall_ms(time_ms: int) -> int:
        return time_ms + wall_shift_ms if time_ms >= 0 else -1

    found = admin_pb2.QuorumReplica(
        replica_id=view.key.id,
        directory_id=_known(view.key.directory_id),
        log_end_offset=view.log_end_offset,
        last_fetch_timestamp_ms=wall_ms(view.last_fetch_ms),
        last_caught_up_timestamp_ms=wall_ms(view.last_caught_up_ms),
        subtree_low_offset=-1,
        compared_end_offset=view.compared_end,
        is_disqualified=view.is_disqualified,
    )
    if (subtree := view.subtree) is not None:
        found.subtree_members = subtree.members
        found.subtree_low_offset = subtree.low
        found.is_subtree_low_provisional = subtree.is_provisional
        for observer, source in subtree.links:
            found.below.add(observer_id=observer, fetches_from=source)
    return found


def _known(directory_id: Uuid) -> bytes:
    return directory_id if any(directory_id) else b""


def _pending_change(change: PendingChangeView | None) -> str:
    if change is None:
        return ""
    where = f"written at {change.offset}" if change.offset >= 0 else "not written yet"
    return f"{change.kind} node {change.voter.key.id}, {where}"


def _nodes(node: ServedNode, status: QuorumStatus) -> Iterable[admin_pb2.QuorumNode]:
    """The voters' records have the peers' listener; only the leader announces the other ones."""
    leader = node.leadership
    for voter in status.voters:
        endpoints = voter.endpoints
        if voter.key.id == leader.leader_id:
            endpoints = with_client_listeners(endpoints, leader)
        yield admin_pb2.QuorumNode(node_id=voter.key.id, endpoints=endpoints_to_pb(endpoints))
