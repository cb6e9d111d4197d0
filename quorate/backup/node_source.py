"""A running cluster as the source of a backup, by the calls that any client may make.

The log comes from the leader by FetchLog, the state digest from its image by DescribeImage. If the
log was trimmed, the checkpoint comes by FetchSnapshot from the leader's port for nodes, as a plain
consumer, which is served but never tracked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from quorate.backup.errors import BackupGapError, OtherHistoryError
from quorate.backup.source import SourceState
from quorate.client import LINEARIZABLE, Client, OffsetOutOfRangeError
from quorate.client.errors import ProtocolError, UnavailableError
from quorate.client.queries import EARLIEST_TIMESTAMP
from quorate.client.results.admin import DescribeImageResponse
from quorate.client.results.metadata import FetchLogResponse
from quorum.batch import scan_batches
from quorum.types import METADATA_PARTITION, METADATA_TOPIC, OffsetAndEpoch, SnapshotId
from quorum.v1 import common_pb2, raft_pb2
from quorum.v1.metadata_pb2 import FetchLogRequest
from quorum.v1.raft_pb2_grpc import RaftServiceStub

CHUNK_BYTES = 1 << 20
"""Bytes of a checkpoint that are asked for at once."""

LOOKS_MAX = 3
"""Attempts to look at the log start, which may move meanwhile."""
EPOCHS_MAX = 1000
"""Epochs below that of the first record that are tried."""

Connect = Callable[[str], grpc.aio.Channel]
"""Opens a channel to ``host:port``, with the credentials of the client."""


class NodeSource:
    """The leader of a running cluster."""

    def __init__(self, client: Client, connect: Connect, *, timeout_seconds: float) -> None:
        self._client = client
        self._connect = connect
        self._timeout = timeout_seconds
        self._state: SourceState
        self._leader_addresses: tuple[str, ...] = ()
        self._leader_epoch = -1

    async def state(self) -> SourceState:
        """As ``Source.state``; raises ``ClientError`` if no leader answers."""
        quorum = await self._client.describe_quorum()
        self._leader_addresses = tuple(
            f"{each.host}:{each.port}"
            for node in quorum.nodes
            if node.node_id == quorum.leader_id
            for each in node.endpoints
        )
        self._leader_epoch = quorum.leader_epoch
        for _ in range(LOOKS_MAX - 1):
            try:
                image, found = await self._look()
                break
            except OffsetOutOfRangeError:
                # A checkpoint was written and the log trimmed to it between the two calls.
                continue
        else:
            image, found = await self._look()
        position = image.position.offset
        self._state = SourceState(
            f"cluster {quorum.cluster_id}",
            quorum.cluster_id,
            found.log_start_offset,
            max(position, found.high_watermark),
            position,
            image.state_digest,
        )
        return self._state

    async def _look(self) -> tuple[DescribeImageResponse, FetchLogResponse]:
        image = await self._client.describe_image(read=LINEARIZABLE)
        request = FetchLogRequest(offset=image.position.offset, max_bytes=1)
        return image, await self._client.fetch_log(request)

    async def check_continues(self, end: OffsetAndEpoch, digest: str) -> None:
        """As ``Source.check_continues``: by the last record's epoch, and the digest if known."""
        name = self._state.name
        try:
            found = await self._client.fetch_log(
                FetchLogRequest(offset=end.offset, last_fetched_epoch=end.epoch, max_bytes=1)
            )
        except OffsetOutOfRangeError as error:
            if self._state.log_start > end.offset:
                begin = self._state.log_start
                raise BackupGapError(f"{name}: its log begins at offset {begin}") from error
            raise OtherHistoryError(f"{name}: ends before the backup: {error}") from error
        if (hint := found.diverging) is not None:
            raise OtherHistoryError(
                f"{name}: its log differs from that of the backup, at offset "
                f"{hint.offset} or before"
            )
        # The epochs of two incarnations of a log may be the same by chance; digests are not.
        answer = await self._client.offset_for_leader_epoch(end.epoch, digest_offset=end.offset)
        if digest and answer.log_digest and answer.log_digest.hex() != digest:
            raise OtherHistoryError(
                f"{name}: its log below offset {end.offset} is not that of the backup"
            )

    async def checkpoint(self) -> tuple[SnapshotId, AsyncIterator[bytes]]:
        """As ``Source.checkpoint``: the one at which the leader's log begins.

        Raises:
            UnavailableError: None of the leader's addresses serves it.
        """
        failure: Exception | None = None
        why = ", ".join(self._leader_addresses)
        for address in self._leader_addresses:
            channel = self._connect(address)
            # The generated stubs are untyped.
            stub: Any = RaftServiceStub(channel)  # type: ignore[no-untyped-call]
            try:
                found = await self._find_checkpoint(stub)
            except grpc.aio.AioRpcError as error:
                if failure is None:
                    # The port for nodes comes first; those for clients know no such call.
                    failure, why = error, f"{address}: {error.details()}"
                found = None
            if found is not None:
                return found, self._chunks(channel, stub, found)
            await channel.close()
        raise UnavailableError(
            "the log was trimmed, and the leader's port for nodes, where no password counts, does "
            f"not serve the checkpoint at which it begins ({why}): run it with a certificate, "
            "or name a data directory"
        ) from failure

    async def _find_checkpoint(self, stub: Any) -> SnapshotId | None:
        """Return the id of the checkpoint at the log start; None if the leader has none there.

        No call names it: its offset is the log start, and its epoch is that of the first record, or
        an earlier one.
        """
        for _ in range(LOOKS_MAX):
            first = await self._client.list_offsets(EARLIEST_TIMESTAMP)
            log = await self._client.fetch_log(
                FetchLogRequest(offset=max(first.offset, 0), max_bytes=1)
            )
            newest = first.leader_epoch if first.leader_epoch >= 0 else log.leader_epoch
            for epoch in range(newest, max(newest - EPOCHS_MAX, -1), -1):
                snapshot_id = SnapshotId(log.log_start_offset, epoch)
                request = self._request(snapshot_id, 0)
                answer = await stub.FetchSnapshot(request, timeout=self._timeout)
                if answer.topics and not answer.topics[0].partitions[0].error_code:
                    return snapshot_id
        return None

    async def _chunks(
        self, channel: grpc.aio.Channel, stub: Any, snapshot_id: SnapshotId
    ) -> AsyncIterator[bytes]:
        position = 0
        try:
            while True:
                answer = await stub.FetchSnapshot(
                    self._request(snapshot_id, position),
                    timeout=self._timeout,
                )
                part = answer.topics[0].partitions[0] if answer.topics else None
                code = answer.error_code if part is None else part.error_code
                if part is None or code:
                    name = common_pb2.ErrorCode.Name(code)
                    raise UnavailableError(f"checkpoint {snapshot_id} is not served: {name}")
                yield part.unaligned_records
                position += len(part.unaligned_records)
                if position >= part.size:
                    return
                if not part.unaligned_records:
                    raise ProtocolError(f"checkpoint {snapshot_id}: an empty chunk")
        except grpc.aio.AioRpcError as error:
            raise UnavailableError(f"FetchSnapshot: {error.details()}") from error
        finally:
            await channel.close()

    def _request(self, snapshot_id: SnapshotId, position: int) -> raft_pb2.FetchSnapshotRequest:
        partition = raft_pb2.FetchSnapshotPartition(
            partition=METADATA_PARTITION,
            current_leader_epoch=self._leader_epoch,
            snapshot_id=common_pb2.OffsetAndEpoch(
                offset=snapshot_id.offset, epoch=snapshot_id.epoch
            ),
            position=position,
        )
        return raft_pb2.FetchSnapshotRequest(
            cluster_id=self._state.cluster_id,
            max_bytes=CHUNK_BYTES,
            topics=[raft_pb2.FetchSnapshotTopic(name=METADATA_TOPIC, partitions=[partition])],
        )

    async def batches(self, offset: int) -> AsyncIterator[bytes]:
        """As ``Source.batches``."""
        end = self._state.end_offset
        while offset < end:
            try:
                found = await self._client.fetch_log(FetchLogRequest(offset=offset))
            except OffsetOutOfRangeError as error:
                raise BackupGapError(
                    f"{self._state.name}: the log was trimmed while it was read"
                ) from error
            for header in scan_batches(found.records):
                if header.base_offset != offset:
                    raise ProtocolError(f"a batch at {header.base_offset} where {offset} follows")
                yield found.records[header.position : header.end_position]
                offset = header.end_offset
                if offset >= end:
                    return
            if not found.records:
                raise UnavailableError(f"the leader has no records at offset {offset} any more")
