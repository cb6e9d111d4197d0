"""Who may call what in mode bound: role by role and method by method, on a node with TLS.

The table is written out here a second time on purpose: a changed rule must be changed twice.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig, TlsConfig
from quorate.config.security import SecurityConfig
from quorate.config.server_config import ServerConfig
from quorate.demo.ports import free_ports
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorate.services.roles import RULES, Role
from quorum.log.filesystem import OsFileSystem
from quorum.transport.security import TlsFiles
from quorum.types import Endpoint, ReplicaKey, Voter
from quorum.v1 import admin_pb2, metadata_pb2, raft_pb2
from tests.support.certificates import authority, caller, node

EXCHANGE = "/quorum.v1.RaftService/Exchange"
"""The stream of peers, which is in no .proto file."""
ALLOWED = """
RaftService Exchange                voter observer
RaftService Vote                    voter
RaftService BeginQuorumEpoch        voter
RaftService EndQuorumEpoch          voter
RaftService Fetch                   voter observer client operator
RaftService FetchSnapshot           voter observer client operator
RaftService ChainDigest             voter observer operator
MetadataService Write               client operator
MetadataService WriteStream         client operator
MetadataService ReadStream          client operator
MetadataService FetchLog            client operator
MetadataService ListOffsets         client operator
MetadataService OffsetForLeaderEpoch client operator
MetadataService Watch               client operator
MetadataService ListTopics          client operator
MetadataService DescribeTopics      client operator
MetadataService DescribeConfigs     client operator
MetadataService FetchPositions      client operator
AdminService DescribeCluster        client operator
AdminService DescribeFeatures       client operator
AdminService DescribeQuorum         client operator
AdminService DescribeImage          client operator
AdminService DescribeAcls           client operator
AdminService DescribeUserScramCredentials client operator
AdminService DeleteRecords          client operator
AdminService CreateSnapshot         operator
AdminService TransferLeadership     operator
AdminService AddVoter               operator
AdminService RemoveVoter            operator
AdminService UpdateVoter            operator
Health Check                        voter observer client operator
Health Watch                        voter observer client operator
Health List                         voter observer client operator
ServerReflection ServerReflectionInfo client operator
"""
NAMES = {
    Role.VOTER: "DNS:node-2.quorum.test",
    Role.OBSERVER: "DNS:observer-3.quorum.test",
    Role.CLIENT: "DNS:app.test",
    Role.OPERATOR: "DNS:admin.test",
}


def expected() -> dict[tuple[str, str], set[str]]:
    rows = [line.split() for line in ALLOWED.strip().splitlines()]
    return {(service, method): set(roles) for service, method, *roles in rows}


def test_every_method_of_every_service_is_in_the_table() -> None:
    """A method that a .proto file gains is missing here until somebody decides who may call it."""
    modules = (raft_pb2, metadata_pb2, admin_pb2, health_pb2, reflection_pb2)
    methods = {
        f"/{service.full_name}/{method}"
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods_by_name
    }
    assert set(RULES) == methods | {EXCHANGE}
    short = {(path.split("/")[1].rpartition(".")[2], path.split("/")[2]) for path in RULES}
    assert short == set(expected())


@asynccontextmanager
async def bound_node(folder: Path, files: TlsFiles) -> AsyncIterator[tuple[str, ServerNode]]:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    me = ReplicaKey(1, b"d" * 16)
    voters = (Voter(me, (Endpoint("CONTROLLER", "127.0.0.1", port),)),)
    plan = FormatPlan(folder / "n1", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, me.directory_id, voters)
    format_directory(OsFileSystem(), plan)
    config = ServerConfig(
        node=NodeConfig(id=1, data_dir=folder / "n1"),
        listeners=ListenerConfig(client=address),
        metrics=MetricsConfig(listen=""),
        tls=TlsConfig(
            files.certificate,
            files.key,
            files.authorities,
            require_client_cert=True,
            node_name="node-{id}.quorum.test",
            observer_name="observer-{id}.quorum.test",
        ),
        security=SecurityConfig(mode="bound", operators=("User:admin.test",)),
    )
    config.validate()
    failures: list[BaseException] = []
    rng = random.Random(1)
    made = ServerNode(config, OsFileSystem(), rng=rng, on_failure=failures.append)
    await made.start()
    try:
        yield address, made
    finally:
        await made.stop()
        assert failures == []


def outcome(channel: grpc.Channel, method: str) -> str:
    """Call a method with an empty message: what it says, or an empty text if it answers.

    A call of ``grpc.aio`` that the node ends while the message is written may say "Internal error
    from Core" in place of what the node said; a blocking call always has the node's status.
    """
    call = channel.unary_stream(method)(b"", timeout=20)
    try:
        next(call, None)
    except grpc.RpcError as error:
        return str(error.details())
    finally:
        call.cancel()
    return ""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_each_role_may_call_what_its_row_says(tmp_path: Path) -> None:
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    shown = {role: caller(tmp_path, "ours", role.value, name) for role, name in NAMES.items()}
    allowed = expected()
    wrong: list[Any] = []

    async def run() -> None:
        async with bound_node(tmp_path, server) as (address, made):
            for role, files in shown.items():
                credentials = grpc.ssl_channel_credentials(
                    *(
                        each.read_bytes()
                        for each in (files.authorities, files.key, files.certificate)
                    )
                )
                with grpc.secure_channel(address, credentials) as channel:
                    for method in RULES:
                        said = await asyncio.to_thread(outcome, channel, method)
                        _, service, name = method.split("/")
                        row = allowed[service.rpartition(".")[2], name]
                        is_refused = said.endswith(f"may not: {method}")
                        if is_refused is (role.value in row):
                            wrong.append((role.value, method, said))
            metric = "quorate_access_denied_total"
            refused = sum(len(Role) - len(roles) for roles in allowed.values())
            assert made._registry.get_sample_value(metric, {"cause": "role"}) == refused

    asyncio.run(run())
    assert wrong == []
