"""``MetadataService``: writes, the log, watches and queries, one method per RPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

import grpc

from quorate.services.admission import Gate, ServiceLimits
from quorate.services.answers import name_refusal
from quorate.services.calls import (
    CallPolicy,
    Context,
    bidirectional_stream,
    server_stream,
    unary,
)
from quorate.services.closing import Closing
from quorate.services.describe import (
    DESCRIBED_CONFIG_BYTES_MAX,
    DESCRIBED_PARTITIONS_MAX,
    LISTED_TOPICS_MAX,
    TopicNames,
    listed_topics,
    resource_configs,
    topic_by_id,
    topic_by_name,
)
from quorate.services.errors import RequestRefusedError
from quorate.services.log_reads import LogReads
from quorate.services.ports import ServedNode
from quorate.services.reads import Reads
from quorate.services.watch import Watches
from quorate.services.write_stream import WriteSession, write_once
from quorum.answered import Form
from quorum.errors import ErrorCode
from quorum.transport.callers import caller_of
from quorum.v1 import metadata_pb2

SERVICE_NAME: str = metadata_pb2.DESCRIPTOR.services_by_name["MetadataService"].full_name
RESOURCES_PER_REQUEST_MAX = 10_000
"""Most topics or resources that one request may name."""


class MetadataService:
    """Serves one node's clients. Used on the event loop only."""

    def __init__(
        self, node: ServedNode, limits: ServiceLimits, closing: Closing, reads: Reads
    ) -> None:
        self._node = node
        self._closing = closing
        self._reads = reads
        self._log = LogReads(node, reads.held)
        self._limits = limits
        self._topic_names = TopicNames()
        self.watches = Watches(node, watches_max=limits.watches_max, closing=closing)
        self.write_streams = Gate(
            "write streams",
            limits.write_streams_max,
            caller_most=limits.write_streams_per_caller_max,
        )

    def close(self) -> None:
        """Release the node."""
        self.watches.close()

    def handlers(self, policy: CallPolicy) -> grpc.GenericRpcHandler[Any, Any]:
        """What to register with a server."""
        wire = metadata_pb2
        methods = {
            "Write": unary(
                self._write,
                wire.WriteRequest,
                name="Write",
                policy=policy,
                is_change=True,
            ),
            "WriteStream": bidirectional_stream(
                self._write_stream,
                wire.WriteStreamRequest,
                name="WriteStream",
                policy=policy,
            ),
            "Watch": server_stream(
                self.watches.serve,
                wire.WatchRequest,
                name="Watch",
                policy=policy,
            ),
        }
        queries: dict[str, tuple[Callable[[Any, Context], Awaitable[Any]], Any]] = {
            "FetchLog": (self._fetch_log, wire.FetchLogRequest),
            "ListOffsets": (self._list_offsets, wire.ListOffsetsRequest),
            "OffsetForLeaderEpoch": (
                self._offset_for_leader_epoch,
                wire.OffsetForLeaderEpochRequest,
            ),
            "ListTopics": (self._list_topics, wire.ListTopicsRequest),
            "DescribeTopics": (self._describe_topics, wire.DescribeTopicsRequest),
            "DescribeConfigs": (self._describe_configs, wire.DescribeConfigsRequest),
        }
        for name, (method, request_type) in queries.items():
            methods[name] = unary(
                method,
                request_type,
                name=name,
                policy=policy,
            )
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def _write(
        self, request: metadata_pb2.WriteRequest, context: Context
    ) -> metadata_pb2.WriteResponse:
        return await write_once(self._node, request, context)

    async def _write_stream(self, context: Context) -> None:
        with self.write_streams.passing(caller_of(context)):
            await WriteSession(self._node, context, self._limits, self._closing).run()

    async def _fetch_log(
        self, request: metadata_pb2.FetchLogRequest, context: Context
    ) -> metadata_pb2.FetchLogResponse:
        return await self._log.fetch(request, caller_of(context))

    async def _list_offsets(
        self, request: metadata_pb2.ListOffsetsRequest, _context: Context
    ) -> metadata_pb2.ListOffsetsResponse:
        return await self._log.list_offsets(request)

    async def _offset_for_leader_epoch(
        self, request: metadata_pb2.OffsetForLeaderEpochRequest, _context: Context
    ) -> metadata_pb2.OffsetForLeaderEpochResponse:
        return self._log.offset_for_leader_epoch(request)

    async def _list_topics(
        self, request: metadata_pb2.ListTopicsRequest, context: Context
    ) -> metadata_pb2.ListTopicsResponse:
        image = await self._reads.image(request.read, context)
        limit = LISTED_TOPICS_MAX
        if request.limit > 0:
            limit = min(limit, request.limit)
        names, has_more = self._topic_names.after(image, request.after_name, limit)
        return metadata_pb2.ListTopicsResponse(
            position=self._reads.position(image),
            topics=listed_topics(image, names),
            has_more=has_more,
        )

    async def _describe_topics(
        self, request: metadata_pb2.DescribeTopicsRequest, context: Context
    ) -> metadata_pb2.DescribeTopicsResponse:
        _bound(len(request.names) + len(request.topic_ids), RESOURCES_PER_REQUEST_MAX, "topics")
        image = await self._reads.image(request.read, context)
        response = metadata_pb2.DescribeTopicsResponse(position=self._reads.position(image))
        topics = chain(
            (topic_by_name(image, name) for name in request.names),
            (topic_by_id(image, topic_id) for topic_id in request.topic_ids),
        )
        partitions = 0
        for topic in topics:
            partitions += len(topic.partitions)
            _bound(partitions, DESCRIBED_PARTITIONS_MAX, "partitions")
            name_refusal("DescribeTopics", Form.PART, topic.error_code)
            response.topics.append(topic)
        return response

    async def _describe_configs(
        self, request: metadata_pb2.DescribeConfigsRequest, context: Context
    ) -> metadata_pb2.DescribeConfigsResponse:
        _bound(len(request.resources), RESOURCES_PER_REQUEST_MAX, "resources")
        image = await self._reads.image(request.read, context)
        response = metadata_pb2.DescribeConfigsResponse(position=self._reads.position(image))
        size = 0
        for resource in request.resources:
            found = resource_configs(image, resource, include_defaults=request.include_defaults)
            size += found.ByteSize()
            # Checked after each resource: ten thousand large ones do not fit in memory.
            _bound(size, DESCRIBED_CONFIG_BYTES_MAX, "bytes of configurations")
            name_refusal("DescribeConfigs", Form.PART, found.error_code)
            response.resources.append(found)
        return response


def _bound(count: int, most: int, what: str) -> None:
    if count > most:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{count} {what} in one request, more than {most}; ask for fewer at a time",
        )
