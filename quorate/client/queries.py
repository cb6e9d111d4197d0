"""One method per query; answers are values of the services' messages, with their position.

Read levels: ``LOCAL`` asks any node for what it has, ``at_least(offset)`` waits until the node
has applied that much (an ``Applied.offset``, to read one's own write anywhere), and
``LINEARIZABLE`` shows every write acknowledged before. Any node can answer that; the leader is
asked first, because it needs one message less.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from quorate.client.arguments import message, message_of, pairs
from quorate.client.caller import BACKOFF_SECONDS, Caller
from quorate.client.channels import Nodes
from quorate.client.errors import ClientError, RefusedError, UnavailableError
from quorate.client.node_addresses import address_of, leader_in
from quorate.client.positions import CommittedPosition, committed
from quorate.client.results.admin import (
    DescribeAclsResponse,
    DescribeClusterResponse,
    DescribeFeaturesResponse,
    DescribeImageResponse,
    DescribeQuorumResponse,
    DescribeUserScramCredentialsResponse,
)
from quorate.client.results.metadata import (
    DescribeConfigsResponse,
    DescribeTopicsResponse,
    FetchLogResponse,
    ListOffsetsResponse,
    ListTopicsResponse,
    OffsetForLeaderEpochResponse,
)
from quorum.v1 import admin_pb2, metadata_pb2
from quorum.v1.commands_pb2 import AclFilter, ConfigResourceType
from quorum.v1.metadata_pb2 import ReadOptions

LOCAL = ReadOptions(level=metadata_pb2.READ_LEVEL_LOCAL)
LINEARIZABLE = ReadOptions(level=metadata_pb2.READ_LEVEL_LINEARIZABLE)

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

OTHERS_MAX = 20
"""Most voters that are asked at once who leads, when a node knows no leader that answers it."""
OTHERS_SECONDS_MAX = 2.0
"""Time in seconds that they may take."""


def at_least(offset: int) -> ReadOptions:
    """Read a state that contains everything below ``offset`` (exclusive)."""
    return ReadOptions(level=metadata_pb2.READ_LEVEL_AT_LEAST, at_least_offset=offset)


class Queries:
    """The queries of a client. All raise ``ClientError`` and may be repeated freely."""

    def __init__(self, nodes: Nodes, caller: Caller, *, timeout_seconds: float) -> None:
        self._nodes = nodes
        self._caller = caller
        self._query_timeout = timeout_seconds

    async def list_topics(
        self, *, after_name: str = "", limit: int = 0, read: ReadOptions = LOCAL
    ) -> ListTopicsResponse:
        """Topics in order of their names, one page (``limit`` 0: the server's)."""
        request = message_of(
            metadata_pb2.ListTopicsRequest, read=read, after_name=after_name, limit=limit
        )
        return ListTopicsResponse.of(await self._ask("metadata", "ListTopics", request, read))

    async def describe_topics(
        self,
        names: Iterable[str] = (),
        *,
        topic_ids: Iterable[bytes] = (),
        read: ReadOptions = LOCAL,
    ) -> DescribeTopicsResponse:
        """Topics with their partitions; an unknown one has an ``error_code``."""
        request = message_of(
            metadata_pb2.DescribeTopicsRequest, read=read, names=names, topic_ids=topic_ids
        )
        return DescribeTopicsResponse.of(
            await self._ask("metadata", "DescribeTopics", request, read)
        )

    async def describe_configs(
        self,
        resources: Iterable[tuple[ConfigResourceType, str]],
        *,
        include_defaults: bool = False,
        read: ReadOptions = LOCAL,
    ) -> DescribeConfigsResponse:
        """Configurations by resource type and name."""
        request = message_of(
            metadata_pb2.DescribeConfigsRequest,
            read=read,
            resources=[
                message_of(metadata_pb2.ConfigResource, type=kind, name=name)
                for kind, name in pairs(resources, "resources")
            ],
            include_defaults=include_defaults,
        )
        return DescribeConfigsResponse.of(
            await self._ask("metadata", "DescribeConfigs", request, read)
        )

    async def fetch_positions(
        self, groups: Iterable[str], *, read: ReadOptions = LINEARIZABLE
    ) -> dict[str, CommittedPosition | None]:
        """The positions that groups have committed; None where there is none, or it has expired.

        They name the incarnation of the log that answers, so a consumer of one reads no older log.

        Raises:
            RefusedError: GROUP_AUTHORIZATION_FAILED, one of the groups may not be seen.
        """
        newest = self._caller.newest_incarnation
        request = message_of(
            metadata_pb2.FetchPositionsRequest,
            read=read,
            groups=groups,
            log_incarnation_number=newest.number,
        )
        response: metadata_pb2.FetchPositionsResponse = await self._ask(
            "metadata", "FetchPositions", request, read
        )
        # A former release names none.
        newest.know(response.log_incarnation_number)
        for each in response.positions:
            if each.error_code:
                raise RefusedError(each.error_code, f"the position of group {each.group!r}")
        return {each.group: committed(each, newest.number) for each in response.positions}

    async def describe_cluster(self, *, read: ReadOptions = LOCAL) -> DescribeClusterResponse:
        """Brokers, quorum nodes and the leader."""
        request = admin_pb2.DescribeClusterRequest(read=read)
        return DescribeClusterResponse.of(
            await self._ask("admin", "DescribeCluster", request, read)
        )

    async def describe_quorum(
        self, *, from_leader: bool = True, wait_seconds: float = 0.0
    ) -> DescribeQuorumResponse:
        """Voters and observers with their progress.

        Any node answers, also without a leader. With ``from_leader`` the answer is the leader's,
        who alone knows everybody's progress, if the leader can be found and reached; that is tried
        again for ``wait_seconds``.
        """
        deadline = asyncio.get_running_loop().time() + wait_seconds
        answer = await self._describe_once(from_leader=from_leader)
        try:
            async with asyncio.timeout_at(deadline):
                while from_leader and not answer.is_leader and wait_seconds > 0:
                    await asyncio.sleep(BACKOFF_SECONDS[1])
                    answer = await self._describe_once(from_leader=True)
        except (TimeoutError, UnavailableError):
            # No leader was found in time: the last node's answer is the best one.
            return answer
        return answer

    async def _describe_once(self, *, from_leader: bool) -> DescribeQuorumResponse:
        answer = await self._describe_quorum(to_leader=from_leader)
        if answer.is_leader or not from_leader:
            return answer
        if answer.leader_id < 0:
            return await self._described_by_another(answer)
        if self._nodes.learn(leader_in(answer)) is None:
            return answer
        try:
            return await self._describe_quorum(to_leader=True)
        except ClientError:
            return answer

    async def _described_by_another(self, answer: DescribeQuorumResponse) -> DescribeQuorumResponse:
        """Return the leader's answer if another voter leads, else ``answer``.

        The node that answered may be the only one that the leader does not answer.
        """
        voters = {each.replica_id for each in answer.voters} - {answer.node_id}
        found = await asyncio.gather(
            *(
                self._caller.ask_at(
                    address_of(node),
                    "admin",
                    "DescribeQuorum",
                    admin_pb2.DescribeQuorumRequest(),
                    seconds=min(OTHERS_SECONDS_MAX, self._query_timeout),
                )
                for node in answer.nodes[:OTHERS_MAX]
                if node.node_id in voters and node.endpoints
            ),
            return_exceptions=True,
        )
        leaders = [
            DescribeQuorumResponse.of(each)
            for each in found
            if isinstance(each, admin_pb2.DescribeQuorumResponse) and each.is_leader
        ]
        newest = max(leaders, key=lambda each: each.leader_epoch, default=answer)
        if newest is not answer:
            self._nodes.learn(leader_in(newest))
        return newest

    async def _describe_quorum(self, *, to_leader: bool) -> DescribeQuorumResponse:
        answer = await self._caller.call(
            "admin",
            "DescribeQuorum",
            admin_pb2.DescribeQuorumRequest(),
            timeout_seconds=self._query_timeout,
            to_leader=to_leader,
        )
        return DescribeQuorumResponse.of(answer)

    async def describe_features(self, *, read: ReadOptions = LOCAL) -> DescribeFeaturesResponse:
        """Supported ranges of the answering node and finalised levels."""
        request = admin_pb2.DescribeFeaturesRequest(read=read)
        return DescribeFeaturesResponse.of(
            await self._ask("admin", "DescribeFeatures", request, read)
        )

    async def describe_acls(
        self, wanted: AclFilter | None = None, *, read: ReadOptions = LOCAL
    ) -> DescribeAclsResponse:
        """ACLs that a filter selects (None: all), and whether the answering node enforces them."""
        request = message_of(
            admin_pb2.DescribeAclsRequest, {"filter": "wanted"}, read=read, filter=wanted
        )
        return DescribeAclsResponse.of(await self._ask("admin", "DescribeAcls", request, read))

    async def describe_user_scram_credentials(
        self,
        users: Iterable[str] = (),
        *,
        after_name: str = "",
        limit: int = 0,
        read: ReadOptions = LOCAL,
    ) -> DescribeUserScramCredentialsResponse:
        """Users and the mechanisms of their credentials; without names, one page of all users."""
        request = message_of(
            admin_pb2.DescribeUserScramCredentialsRequest,
            read=read,
            users=users,
            after_name=after_name,
            limit=limit,
        )
        return DescribeUserScramCredentialsResponse.of(
            await self._ask("admin", "DescribeUserScramCredentials", request, read)
        )

    async def describe_image(self, *, read: ReadOptions = LOCAL) -> DescribeImageResponse:
        """The digest of a node's image, to compare replicas with."""
        request = admin_pb2.DescribeImageRequest(read=read)
        return DescribeImageResponse.of(await self._ask("admin", "DescribeImage", request, read))

    async def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Always refused with POLICY_VIOLATION (630.7).

        Raises:
            RefusedError: Always.
        """
        request = admin_pb2.DeleteRecordsRequest(
            topic=topic, partition=partition, before_offset=before_offset
        )
        await self._ask("admin", "DeleteRecords", request, LOCAL)

    async def list_offsets(self, timestamp: int, *, leader_epoch: int = -1) -> ListOffsetsResponse:
        """The first offset at or after a time, or one of the special ones, with its epoch."""
        newest = self._caller.newest_incarnation
        request = message_of(
            metadata_pb2.ListOffsetsRequest,
            {"current_leader_epoch": "leader_epoch"},
            timestamp=timestamp,
            current_leader_epoch=leader_epoch,
            log_incarnation_number=newest.number,
        )
        answer = await self._ask("metadata", "ListOffsets", request, LINEARIZABLE)
        newest.meet(answer)
        return ListOffsetsResponse.of(answer)

    async def offset_for_leader_epoch(
        self,
        epoch: int,
        *,
        leader_epoch: int = -1,
        digest_offset: int | None = None,
        log_incarnation_number: int = 0,
    ) -> OffsetForLeaderEpochResponse:
        """The largest epoch at or below ``epoch`` and where it ends; -1/-1 when there is none.

        With ``digest_offset`` the answer also has the log digest there, if the leader knows it.
        From now on no answer of an incarnation below ``log_incarnation_number`` counts.
        """
        newest = self._caller.newest_incarnation
        newest.know(log_incarnation_number)
        request = message_of(
            metadata_pb2.OffsetForLeaderEpochRequest,
            {"leader_epoch": "epoch", "current_leader_epoch": "leader_epoch"},
            leader_epoch=epoch,
            current_leader_epoch=leader_epoch,
            digest_offset=digest_offset,
            log_incarnation_number=newest.number,
        )
        return OffsetForLeaderEpochResponse.of(
            await self._ask("metadata", "OffsetForLeaderEpoch", request, LINEARIZABLE)
        )

    async def fetch_log(self, request: metadata_pb2.FetchLogRequest) -> FetchLogResponse:
        """Raw committed batches from one offset on. See ``LogConsumer`` for reading records.

        An answer without a leader is that of a node that may be cut off: another one is asked next.
        """
        newest = self._caller.newest_incarnation
        newest.know(
            message(request, metadata_pb2.FetchLogRequest, "request").log_incarnation_number
        )
        request.log_incarnation_number = newest.number
        answer = await self._caller.call(
            "metadata",
            "FetchLog",
            request,
            timeout_seconds=self._query_timeout + request.max_wait_ms / 1000,
            to_leader=True,
            is_local=lambda answer: answer.leader_id < 0,
        )
        newest.meet(answer)
        return FetchLogResponse.of(answer)

    async def _ask(self, service: str, method: str, request: Message, read: ReadOptions) -> Any:
        return await self._caller.call(
            service,
            method,
            request,
            timeout_seconds=self._query_timeout,
            to_leader=read.level == metadata_pb2.READ_LEVEL_LINEARIZABLE,
        )
