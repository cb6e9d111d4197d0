"""Rights that are removed while a stream of each kind, or a waiting call, is open."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import grpc
import pytest

from quorate.client import BROKER, Client
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import common_pb2, metadata_pb2, metadata_pb2_grpc
from tests.support.bound_node import bound_node
from tests.support.certificates import authority, caller, node

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

UNKNOWN = common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
DENIED = common_pb2.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
PATIENCE_S = 60
LATER = b"1234567"
"""A value that is written after the rights have gone."""


def entry(name: str) -> wire.AclEntry:
    return wire.AclEntry(
        resource_type=wire.ACL_RESOURCE_TYPE_TOPIC,
        resource_name=name,
        pattern_type=wire.ACL_PATTERN_TYPE_LITERAL,
        principal="User:app.test",
        host="*",
        operation=wire.ACL_OPERATION_ALL,
        permission_type=wire.ACL_PERMISSION_TYPE_ALLOW,
    )


def alteration(tag: int) -> metadata_pb2.WriteStreamRequest:
    """Return a change of a topic that does not exist: only a caller with rights learns that."""
    change = wire.IncrementalAlterConfigs(
        resource_type=wire.CONFIG_RESOURCE_TYPE_TOPIC, resource_name="orders"
    )
    change.alterations.add(name="retention.ms", value="7")
    group = metadata_pb2.ProducerCommands(
        commands=[wire.Command(tag=tag, incremental_alter_configs=change)]
    )
    return metadata_pb2.WriteStreamRequest(groups=[group])


def description(tag: int) -> metadata_pb2.ReadStreamRequest:
    query = metadata_pb2.ReadQuery(
        tag=tag, describe_topics=metadata_pb2.DescribeTopicsRequest(names=["orders"])
    )
    return metadata_pb2.ReadStreamRequest(queries=[query])


async def in_time(awaited: Any) -> Any:
    return await asyncio.wait_for(awaited, PATIENCE_S)


async def written(stream: Any, tag: int) -> Any:
    await stream.write(alteration(tag))
    (answer,) = (await in_time(stream.read())).answers
    assert answer.tag == tag
    return answer.error_code


async def read(stream: Any, tag: int) -> Any:
    await stream.write(description(tag))
    (answer,) = (await in_time(stream.read())).answers
    assert (answer.tag, answer.error_code) == (tag, 0)
    (topic,) = answer.describe_topics.topics
    return topic.error_code


async def end_of(watch: Any) -> None:
    """Read a watch to its end; nothing that was written later may come."""
    while True:
        assert LATER not in (await in_time(watch.read())).SerializeToString()


async def refusal_of(ending: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await in_time(ending)
    assert ended.value.code() is grpc.StatusCode.PERMISSION_DENIED
    return str(ended.value.details())


def test_every_open_stream_notices_that_its_rights_have_gone(tmp_path: Path) -> None:
    """A write or read stream stays open, and refuses from its next command or query on.

    A watch ends before the next change, and a waiting FetchLog before the next record.
    """
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    admin, app = (caller(tmp_path, "ours", name, f"DNS:{name}.test") for name in ("admin", "app"))

    def credentials(files: Any) -> grpc.ChannelCredentials:
        paths = (files.authorities, files.key, files.certificate)
        return grpc.ssl_channel_credentials(*(each.read_bytes() for each in paths))

    async def run() -> None:
        async with (
            bound_node(tmp_path, server) as (address, _, made),
            Client([address], credentials=credentials(admin)) as operator,
            grpc.aio.secure_channel(address, credentials(app)) as channel,
        ):
            await operator.create_acls([entry("orders"), entry("__cluster_metadata")])
            stub = metadata_pb2_grpc.MetadataServiceStub(channel)
            writes, reads = stub.WriteStream(), stub.ReadStream()
            await writes.write(metadata_pb2.WriteStreamRequest(hello=metadata_pb2.WriterIdentity()))
            assert (await in_time(writes.read())).HasField("accepted")
            assert await written(writes, 1) == UNKNOWN
            assert await read(reads, 1) == UNKNOWN
            watch = stub.Watch(metadata_pb2.WatchRequest())
            assert (await in_time(watch.read())).state.is_last

            gone = [wire.AclFilter(
                resource_type=wire.ACL_RESOURCE_TYPE_TOPIC, resource_name=name,
                pattern_type=wire.ACL_PATTERN_TYPE_LITERAL, operation=wire.ACL_OPERATION_ALL,
                permission_type=wire.ACL_PERMISSION_TYPE_ALLOW,
            ) for name in ("orders", "__cluster_metadata")]  # fmt: skip
            # The removal itself is the record that the call waits for.
            waiting = stub.FetchLog(
                metadata_pb2.FetchLogRequest(
                    offset=made.replica.node.log_end_offset, max_wait_ms=30_000
                ),
                timeout=PATIENCE_S,
            )
            while not made._services.held.places.open_count:
                assert not waiting.done()
                await asyncio.sleep(0.01)
            await operator.delete_acls(gone)
            await operator.set_config(BROKER, "", "log.retention.ms", LATER.decode())

            assert "READ TOPIC __cluster_metadata" in await refusal_of(waiting)
            assert "READ TOPIC __cluster_metadata" in await refusal_of(end_of(watch))
            assert await written(writes, 2) == DENIED
            assert await read(reads, 2) == DENIED
            await operator.create_acls([entry("orders")])
            assert await written(writes, 3) == UNKNOWN
            assert await read(reads, 3) == UNKNOWN
            writes.cancel()
            reads.cancel()

    asyncio.run(run())
