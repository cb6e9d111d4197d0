"""``security.reflection``: whether a node describes its services to whoever asks."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig
from quorate.config.security import SecurityConfig
from quorate.config.server_config import ServerConfig
from quorate.demo.ports import free_ports
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from quorum.types import Endpoint, ReplicaKey, Voter

ME = ReplicaKey(1, b"d" * 16)


@pytest.mark.parametrize("reflection", [True, False])
def test_a_node_describes_its_services_only_if_it_is_told_to(
    tmp_path: Path, reflection: bool
) -> None:
    fs = OsFileSystem()
    (port,) = free_ports(1)
    voters = (Voter(ME, (Endpoint("CONTROLLER", "127.0.0.1", port),)),)
    plan = FormatPlan(tmp_path / "n1", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, ME.directory_id, voters)
    format_directory(fs, plan)
    config = ServerConfig(
        node=NodeConfig(id=1, data_dir=tmp_path / "n1"),
        listeners=ListenerConfig(client=f"127.0.0.1:{port}"),
        metrics=MetricsConfig(listen=""),
        security=SecurityConfig(reflection=reflection),
    )

    async def services_listed() -> set[str]:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await ask.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            answer = await ask.read()
            ask.cancel()
            return {each.name for each in answer.list_services_response.service}

    async def live() -> None:
        failures: list[BaseException] = []
        node = ServerNode(config, fs, rng=random.Random(1), on_failure=failures.append)
        await node.start()
        try:
            if reflection:
                assert "quorum.v1.RaftService" in await services_listed()
                return
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await services_listed()
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        finally:
            await node.stop()
            assert failures == []

    asyncio.run(live())
