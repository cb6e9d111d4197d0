"""``AdminService``: the cluster, its quorum and its features, as one node sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc

from quorate.services.calls import CallPolicy, Context, unary
from quorate.services.describe import brokers, features
from quorate.services.errors import RequestRefusedError
from quorate.services.image_digests import ImageDigests
from quorate.services.operations import QuorumOperations, endpoints_to_pb
from quorate.services.ports import ReplicaStatus, ServedNode
from quorate.services.reads import Reads
from quorum.errors import ErrorCode
from quorum.types import METADATA_PARTITION, METADATA_TOPIC
from quorum.v1 import admin_pb2
from quorum.v1.commands_pb2 import SourcePosition
from statemachine.dump import count_records
from statemachine.image import MetadataImage
from statemachine.import_state import ImportState

_NAME_SHOWN_MAX = 249
"""Most characters of an unknown topic's name in a message: no topic has more."""
SERVICE_NAME: str = admin_pb2.DESCRIPTOR.services_by_name["AdminService"].full_name


class AdminService:
    """Serves operators and tools. Lives on the event loop."""

    def __init__(self, node: ServedNode, reads: Reads) -> None:
        self._node = node
        self._reads = reads
        self._digests = ImageDigests(lambda: (node.image, reads.position(node.image)))

    def handlers(self, policy: CallPolicy) -> grpc.GenericRpcHandler[Any, Any]:
        """What to register with a server."""
        wire = admin_pb2
        queries: dict[str, tuple[Callable[[Any, Context], Awaitable[Any]], Any]] = {
            "DescribeCluster": (self._describe_cluster, wire.DescribeClusterRequest),
            "DescribeQuorum": (self._describe_quorum, wire.DescribeQuorumRequest),
            "DescribeFeatures": (self._describe_features, wire.DescribeFeaturesRequest),
            "DescribeImage": (self._describe_image, wire.DescribeImageRequest),
            "DeleteRecords": (self._delete_records, wire.DeleteRecordsRequest),
        }
        changes = QuorumOperations(self._node).methods()
        methods = {
            name: unary(method, request_type, name=name, policy=policy, is_change=name in changes)
            for name, (method, request_type) in {**queries, **changes}.items()
        }
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def _describe_cluster(
        self, request: admin_pb2.DescribeClusterRequest, context: Context
    ) -> admin_pb2.DescribeClusterResponse:
        image = await self._reads.image(request.read, context)
        leader = self._node.leadership
        return admin_pb2.DescribeClusterResponse(
            position=self._reads.position(image),
            cluster_id=self._node.cluster_id,
            leader_id=leader.leader_id,
            leader_epoch=leader.epoch,
            brokers=brokers(image),
            nodes=_nodes(self._node),
        )

    async def _describe_quorum(
        self, _request: admin_pb2.DescribeQuorumRequest, _context: Context
    ) -> admin_pb2.DescribeQuorumResponse:
        node = self._node
        leader = node.leadership
        status = node.describe_quorum()
        return admin_pb2.DescribeQuorumResponse(
            cluster_id=node.cluster_id,
            leader_id=leader.leader_id,
            leader_epoch=leader.epoch,
            high_watermark=node.high_watermark,
            voters=_replicas(status.voters),
            observers=_replicas(status.observers),
            nodes=_nodes(node),
            node_id=node.node_id,
            is_leader=node.is_leader,
            log_start_offset=node.log_start.offset,
            log_end_offset=node.log_end.offset,
            position=self._reads.position(node.image),
            directory_id=status.own_directory_id if any(status.own_directory_id) else b"",
            own_endpoints=endpoints_to_pb(status.own_endpoints),
            timestamp_ms=node.wall_ms(),
            pending_change=status.pending_change,
            removed=[
                admin_pb2.RemovedVoter(node_id=key.id, directory_id=key.directory_id)
                for key in status.removed
            ],
            relay_path=status.relay_path,
            divergence_resolution=status.divergence_resolution,
            check_quorum_ms=status.check_quorum_ms,
            relay_low_offset=status.relay_low_offset if status.relay_low_offset >= 0 else None,
            is_relay_low_provisional=status.is_relay_low_provisional,
            replay_stopped=status.replay_stopped,
        )

    async def _describe_features(
        self, request: admin_pb2.DescribeFeaturesRequest, context: Context
    ) -> admin_pb2.DescribeFeaturesResponse:
        image = await self._reads.image(request.read, context)
        return admin_pb2.DescribeFeaturesResponse(
            position=self._reads.position(image),
            features=features(image, self._node.supported_features),
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
        self, request: admin_pb2.DeleteRecordsRequest, _context: Context
    ) -> admin_pb2.DeleteRecordsResponse:
        topic = request.topic or METADATA_TOPIC
        if not _exists(self._node.image, topic, request.partition):
            raise RequestRefusedError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no partition {request.partition} of topic {topic[:_NAME_SHOWN_MAX]!r}",
            )
        raise RequestRefusedError(
            ErrorCode.POLICY_VIOLATION,
            f"records of {request.topic or 'the metadata log'} are not deleted on request: "
            "checkpoints alone move the start of the log",
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


def _replicas(replicas: Iterable[ReplicaStatus]) -> Iterable[admin_pb2.QuorumReplica]:
    for replica in replicas:
        yield admin_pb2.QuorumReplica(
            replica_id=replica.id,
            directory_id=replica.directory_id if any(replica.directory_id) else b"",
            log_end_offset=replica.log_end_offset,
            last_fetch_timestamp_ms=replica.last_fetch_timestamp_ms,
            last_caught_up_timestamp_ms=replica.last_caught_up_timestamp_ms,
            subtree_members=replica.subtree_members,
            subtree_low_offset=replica.subtree_low_offset,
            compared_end_offset=replica.compared_end_offset,
            is_disqualified=replica.is_disqualified,
            below=[
                admin_pb2.ObserverLink(observer_id=observer, fetches_from=source)
                for observer, source in replica.below
            ],
            is_subtree_low_provisional=replica.is_subtree_low_provisional,
        )


def _nodes(node: ServedNode) -> Iterable[admin_pb2.QuorumNode]:
    for node_id, endpoints in node.describe_quorum().endpoints:
        yield admin_pb2.QuorumNode(node_id=node_id, endpoints=endpoints_to_pb(endpoints))
