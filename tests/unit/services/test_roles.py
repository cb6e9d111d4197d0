"""Who may call what in mode bound: role by role and method by method, on a node with TLS.

The table is written out here a second time on purpose: a changed rule must be changed twice.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import shutil
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_channelz.v1 import channelz_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

import quorum.v1
from quorate.client import Client, scram_upsertion
from quorate.services.roles import RULES, Role
from quorum.transport.security import TlsFiles
from tests.support.bound_node import bound_node, is_refused_by_role
from tests.support.certificates import authority, caller, node
from tests.support.scram_calls import token_of

EXCHANGE = "/quorum.v1.RaftService/Exchange"
"""The stream of peers, which is in no .proto file."""
ALLOWED = """
RaftService Exchange                voter observer
RaftService Vote                    voter
RaftService BeginQuorumEpoch        voter
RaftService EndQuorumEpoch          voter
RaftService Fetch                   voter observer operator
RaftService FetchSnapshot           voter observer operator
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
AuthenticationService Authenticate  voter observer client operator unknown
Health Check                        voter observer client operator unknown
Health Watch                        voter observer client operator unknown
Health List                         voter observer client operator unknown
ServerReflection ServerReflectionInfo client operator
Channelz GetTopChannels             operator
Channelz GetServers                 operator
Channelz GetServer                  operator
Channelz GetServerSockets           operator
Channelz GetChannel                 operator
Channelz GetSubchannel              operator
Channelz GetSocket                  operator
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
    ours = [importlib.import_module(f"quorum.v1.{each.name}") for each in stubs()]
    modules = (*ours, health_pb2, reflection_pb2, channelz_pb2)
    methods = {
        f"/{service.full_name}/{method}"
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods_by_name
    }
    assert len(ours) >= 8
    assert set(RULES) == methods | {EXCHANGE}
    short = {(path.split("/")[1].rpartition(".")[2], path.split("/")[2]) for path in RULES}
    assert short == set(expected())


def stubs() -> list[pkgutil.ModuleInfo]:
    """The modules with the messages and services of every .proto file."""
    return [each for each in pkgutil.iter_modules(quorum.v1.__path__) if each.name.endswith("_pb2")]


def test_whatever_a_node_serves_is_in_the_table(tmp_path: Path) -> None:
    """Read from the handlers of a node with every listener and switch, not from the protos."""
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")

    async def run() -> None:
        async with bound_node(tmp_path, server, channelz=True) as (_, _, made):
            for _, methods in made._listeners._servers:
                wrapped = [getattr(each, "_inner", each) for each in methods._handlers]
                served.update(*(each._method_handlers for each in wrapped))

    served: set[str] = set()
    asyncio.run(run())
    assert served == set(RULES)


def outcome(channel: grpc.Channel, method: str, metadata: Any = None) -> str:
    """Call a method with an empty message: what it says, or an empty text if it answers.

    A call of ``grpc.aio`` that the node ends while the message is written may say "Internal error
    from Core" in place of what the node said; a blocking call always has the node's status.
    """
    call = channel.unary_stream(method)(b"", timeout=20, metadata=metadata)
    try:
        next(call, None)
    except grpc.RpcError as error:
        return str(error.details())
    finally:
        call.cancel()
    return ""


def credentials_of(files: TlsFiles) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        *(each.read_bytes() for each in (files.authorities, files.key, files.certificate))
    )


async def wrong_outcomes(
    address: str,
    credentials: grpc.ChannelCredentials,
    role: Role,
    *,
    metadata: Any = None,
    not_served: str = "",
) -> list[Any]:
    """Call every method: those whose outcome is not that of the table.

    A service whose name begins with ``not_served`` must be unknown at the address.
    """
    allowed, wrong = expected(), []
    with grpc.secure_channel(address, credentials) as channel:
        for method in RULES:
            said = await asyncio.to_thread(outcome, channel, method, metadata)
            service, name = method.split("/")[1:]
            if not_served and service.startswith(not_served):
                is_right = said == "Method not found!"
            else:
                row = allowed[service.rpartition(".")[2], name]
                is_right = is_refused_by_role(said, method) is not (role.value in row)
            if not is_right:
                wrong.append((role.value, method, said))
    return wrong


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_each_role_may_call_what_its_row_says(tmp_path: Path) -> None:
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    shown = {role: caller(tmp_path, "ours", role.value, name) for role, name in NAMES.items()}
    wrong: list[Any] = []

    async def run() -> None:
        async with bound_node(tmp_path, server, channelz=True) as (address, _, made):
            for role, files in shown.items():
                wrong.extend(await wrong_outcomes(address, credentials_of(files), role))
            metric = "quorate_access_denied_total"
            refused = sum(len(NAMES) - len(roles - {"unknown"}) for roles in expected().values())
            assert made._registry.get_sample_value(metric, {"cause": "role"}) == refused

    asyncio.run(run())
    assert wrong == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_token_makes_a_client_or_an_operator_and_nothing_else(tmp_path: Path) -> None:
    """At both ports, whatever the certificate beside it names; without it nobody is anybody."""
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    admin = credentials_of(caller(tmp_path, "ours", "admin", NAMES[Role.OPERATOR]))
    voter = credentials_of(caller(tmp_path, "ours", "voter", NAMES[Role.VOTER]))
    nobody = grpc.ssl_channel_credentials(server.authorities.read_bytes())
    users = {Role.CLIENT: "node-2.quorum.test", Role.OPERATOR: "admin.test"}
    wrong: list[Any] = []

    async def run() -> None:
        async with bound_node(tmp_path, server, channelz=True) as (address, sasl, _):
            async with Client([address], credentials=admin) as client:
                await client.alter_user_scram_credentials(
                    [scram_upsertion(name, "pencil") for name in users.values()]
                )
            raft = {"not_served": "quorum.v1.RaftService"}
            wrong.extend(await wrong_outcomes(sasl, nobody, Role.UNKNOWN, **raft))
            for role, name in users.items():
                token = await token_of(sasl, nobody, name, "pencil")
                shown = {"metadata": [("authorization", f"Bearer {token}")]}
                wrong.extend(await wrong_outcomes(sasl, nobody, role, **raft, **shown))
                wrong.extend(await wrong_outcomes(address, voter, role, **shown))

    asyncio.run(run())
    assert wrong == []
