"""``MetadataService``: writes, the log, watches and queries, one method per RPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from quorate.services.access import Access, AccessPolicy
from quorate.services.admission import Gate, ServiceLimits
from quorate.services.calls import (
    CallPolicy,
    Context,
    bidirectional_stream,
    server_stream,
    unary,
)
from quorate.services.closing import Closing
from quorate.services.incarnations import check_reader, incarnation_bytes
from quorate.services.log_reads import LogReads
from quorate.services.log_redaction import check_may_read_secrets
from quorate.services.ports import ServedNode
from quorate.services.positions import add_positions
from quorate.services.queries import ImageQueries
from quorate.services.read_stream import ReadSession
from quorate.services.reads import Reads
from quorate.services.watch import Watches
from quorate.services.write_stream import WriteSession, write_once
from quorum.transport.callers import caller_of
from quorum.v1 import metadata_pb2
from statemachine.command_access import READ_LOG

SERVICE_NAME: str = metadata_pb2.DESCRIPTOR.services_by_name["MetadataService"].full_name


class MetadataService:
    """Serves one node's clients. Used on the event loop only."""

    def __init__(
        self,
        node: ServedNode,
        limits: ServiceLimits,
        closing: Closing,
        reads: Reads,
        policy: AccessPolicy | None = None,
    ) -> None:
        """``policy``: what callers may do; None: everything."""
        self._policy = policy
        self._node = node
        self._closing = closing
        self._reads = reads
        self._log = LogReads(node, reads.held)
        self._limits = limits
        self._queries = ImageQueries()
        self.watches = Watches(
            node, watches_max=limits.watches_max, closing=closing, access_of=self._access_of
        )
        self.write_streams = Gate(
            "write streams",
            limits.streams_max,
            caller_most=limits.streams_per_caller_max,
        )
        self.read_streams = Gate(
            "read streams",
            limits.streams_max,
            caller_most=limits.streams_per_caller_max,
        )

    def close(self) -> None:
        """Release the node."""
        self.watches.close()

    def handlers(self, policy: CallPolicy) -> grpc.GenericRpcHandler[Any, Any]:
        """Return the handlers to register with a server."""
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
            "ReadStream": bidirectional_stream(
                self._read_stream,
                wire.ReadStreamRequest,
                name="ReadStream",
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
            "FetchPositions": (self._fetch_positions, wire.FetchPositionsRequest),
        }
        for name, (method, request_type) in queries.items():
            methods[name] = unary(
                method,
                request_type,
                name=name,
                policy=policy,
            )
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    def _access_of(self, context: Context) -> Access | None:
        if self._policy is None:
            return None
        return self._policy.access_of(context, self._node.image)

    async def _write(
        self, request: metadata_pb2.WriteRequest, context: Context
    ) -> metadata_pb2.WriteResponse:
        return await write_once(self._node, request, context, self._access_of(context))

    async def _write_stream(self, context: Context) -> None:
        with self.write_streams.passing(caller_of(context)):
            await WriteSession(
                self._node, context, self._limits, self._closing, self._access_of(context)
            ).run()

    async def _read_stream(self, context: Context) -> None:
        with self.read_streams.passing(caller_of(context)):
            await ReadSession(
                self._node,
                context,
                self._limits,
                self._closing,
                self._reads,
                self._queries,
                self._access_of(context),
            ).run()

    async def _fetch_log(
        self, request: metadata_pb2.FetchLogRequest, context: Context
    ) -> metadata_pb2.FetchLogResponse:
        if request.include_secrets:
            check_may_read_secrets(self._access_of(context))
        answer = await self._log.fetch(request, caller_of(context))
        access = self._access_of(context)
        if access is not None:
            # Again, because ACLs may have changed while the call waited for records.
            access.require(self._node.image, READ_LOG)
        return answer

    async def _list_offsets(
        self, request: metadata_pb2.ListOffsetsRequest, _context: Context
    ) -> metadata_pb2.ListOffsetsResponse:
        return await self._log.list_offsets(request)

    async def _offset_for_leader_epoch(
        self, request: metadata_pb2.OffsetForLeaderEpochRequest, _context: Context
    ) -> metadata_pb2.OffsetForLeaderEpochResponse:
        return await self._log.offset_for_leader_epoch(request)

    async def _list_topics(
        self, request: metadata_pb2.ListTopicsRequest, context: Context
    ) -> metadata_pb2.ListTopicsResponse:
        image = await self._reads.image(request.read, context)
        response = metadata_pb2.ListTopicsResponse(position=self._reads.position(image))
        self._queries.list_topics(image, request, response, self._access_of(context))
        return response

    async def _describe_topics(
        self, request: metadata_pb2.DescribeTopicsRequest, context: Context
    ) -> metadata_pb2.DescribeTopicsResponse:
        image = await self._reads.image(request.read, context)
        response = metadata_pb2.DescribeTopicsResponse(position=self._reads.position(image))
        self._queries.describe_topics(image, request, response, self._access_of(context))
        return response

    async def _describe_configs(
        self, request: metadata_pb2.DescribeConfigsRequest, context: Context
    ) -> metadata_pb2.DescribeConfigsResponse:
        image = await self._reads.image(request.read, context)
        response = metadata_pb2.DescribeConfigsResponse(position=self._reads.position(image))
        self._queries.describe_configs(image, request, response, self._access_of(context))
        return response

    async def _fetch_positions(
        self, request: metadata_pb2.FetchPositionsRequest, context: Context
    ) -> metadata_pb2.FetchPositionsResponse:
        check_reader(self._node, request.log_incarnation_number)
        image = await self._reads.image(request.read, context)
        response = metadata_pb2.FetchPositionsResponse(
            position=self._reads.position(image),
            log_incarnation=incarnation_bytes(self._node),
            log_incarnation_number=self._node.log_incarnation.number,
        )
        add_positions(image, request, response, self._access_of(context))
        return response
