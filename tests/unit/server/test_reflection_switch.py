"""``security.reflection`` and ``security.channelz``: what gRPC itself tells about a node."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig
from quorate.config.security import SecurityConfig
from quorate.config.server_config import ServerConfig
from quorate.demo.ports import free_ports
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.errors import ConfigError
from quorum.log.filesystem import OsFileSystem
from quorum.types import Endpoint, ReplicaKey, Voter
from tests.support.lone_server import lone_config

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


@pytest.mark.parametrize("is_served", [True, False])
def test_a_node_shows_its_connections_only_if_it_is_told_to(
    tmp_path: Path, is_served: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A server of grpc.aio has the data; an unknown number is NOT_FOUND and no traceback."""
    (port,) = free_ports(1)
    config = lone_config(tmp_path, shutdown_ms_max=60_000, port=port)
    config = replace(config, security=SecurityConfig(channelz=is_served))

    async def live() -> None:
        failures: list[BaseException] = []
        rng = random.Random(1)
        node = ServerNode(config, OsFileSystem(), rng=rng, on_failure=failures.append)
        await node.start()
        try:
            async with grpc.aio.insecure_channel(node.client_address) as channel:
                stub = channelz_pb2_grpc.ChannelzStub(channel)
                if not is_served:
                    with pytest.raises(grpc.aio.AioRpcError) as refused:
                        await stub.GetServers(channelz_pb2.GetServersRequest())
                    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
                    return
                listed = await stub.GetServers(channelz_pb2.GetServersRequest())
                numbers = [each.ref.server_id for each in listed.server]
                # Servers of earlier tests may not be gone yet; they listen no more.
                ports = [each.name for server in listed.server for each in server.listen_socket]
                assert any(name.endswith(f":{port}") for name in ports), ports
                sockets = [
                    (await stub.GetServerSockets(
                        channelz_pb2.GetServerSocketsRequest(server_id=each)
                    )).socket_ref
                    for each in numbers
                ]  # fmt: skip
                assert any(sockets)
                with pytest.raises(grpc.aio.AioRpcError) as unknown:
                    await stub.GetServer(channelz_pb2.GetServerRequest(server_id=10**9))
                assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
        finally:
            await node.stop()
            assert failures == []

    asyncio.run(live())
    assert "Traceback" not in caplog.text


def test_channelz_without_its_package_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc_channelz.v1", None)
    config = lone_config(tmp_path, shutdown_ms_max=60_000)
    config = replace(config, security=SecurityConfig(channelz=True))

    async def opened() -> None:
        ServerNode(config, OsFileSystem(), rng=random.Random(1), on_failure=print)

    with pytest.raises(ConfigError, match=r"pip install 'quorate\[channelz\]'"):
        asyncio.run(opened())
