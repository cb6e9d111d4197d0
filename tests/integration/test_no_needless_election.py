"""Events that must not cause an election: connections closed for age, renewed certificates, and
names that stop resolving.

Three production nodes in this process, on loopback sockets, with default timers. Writes continue
meanwhile; the epoch must stay the same, and no node may have requested a vote.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from quorate.client.client import Client
from quorate.config.load import load_config
from quorate.server import listeners
from quorate.server.node import ServerNode
from quorum.core.contract.events import CampaignRefused, Event, LeaderLost, RoleChanged, VoteDecided
from quorum.log.filesystem import OsFileSystem
from quorum.transport import channel
from quorum.transport.security import TlsFiles
from quorum.v1 import commands_pb2 as wire
from tests.integration.processes import Processes

pytestmark = [pytest.mark.integration, pytest.mark.long]

AGE_MS = 300
GRACE_MS = 50
PATIENCE_S = 60.0
RECONNECTS = 12
"""So many streams must have been opened again: two per node and age, for some ages."""
CLIENT_TIMEOUT_S = 20.0
CONFIG = "log.retention.ms"


class WatchedNode(ServerNode):
    """A node that records its log lines about elections."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.votes: list[str] = []
        super().__init__(*arguments, **named)
        report = self.host.on_event

        def watch(event: Event) -> None:
            if isinstance(event, RoleChanged | VoteDecided | LeaderLost | CampaignRefused):
                self.votes.append(f"{self.node_id}: {event}")
            report(event)

        self.host.on_event = watch  # type: ignore[method-assign]


class Trio:
    """Three nodes on one event loop."""

    def __init__(self, nodes: list[WatchedNode], failures: list[BaseException]) -> None:
        self.nodes = nodes
        self.failures = failures

    def forget_votes(self) -> None:
        """Drop the lines so far, which belong to the first election."""
        for node in self.nodes:
            assert node.votes
            node.votes.clear()

    def votes(self) -> list[str]:
        return [vote for node in self.nodes for vote in node.votes]

    def epochs(self) -> set[int]:
        return {node.replica.node.epoch for node in self.nodes}

    def connects(self) -> int:
        return sum(node._network._link.counters.connects for node in self.nodes)

    def leader(self) -> WatchedNode | None:
        return next((node for node in self.nodes if node.replica.node.can_write), None)


async def until(what: str, is_so: Callable[[], object]) -> None:
    """Poll for something that has no event."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def trio(folder: Path, settings: dict[str, object]) -> AsyncIterator[Trio]:
    """Format three directories, start three nodes, and wait for a leader."""
    cluster = Processes(folder, settings=settings)
    cluster.format_all()
    failures: list[BaseException] = []
    made = [
        WatchedNode(
            load_config(node.config_path, environment={}).config,
            OsFileSystem(),
            rng=random.Random(node.id),
            on_failure=failures.append,
        )
        for node in cluster.voters
    ]
    found = Trio(made, failures)
    try:
        await asyncio.gather(*(each.start() for each in made))
        await until("a leader", found.leader)
        await until(
            "followers", lambda: all(each.replica.node.leader_id > 0 for each in found.nodes)
        )
        yield found
    finally:
        await asyncio.gather(*(each.stop() for each in made))


async def write_until(
    trio: Trio, is_over: Callable[[], object], credentials: grpc.ChannelCredentials | None = None
) -> int:
    """Write all the while; how many writes were acknowledged."""
    addresses = [node.client_address for node in trio.nodes]
    done = 0
    async with (
        Client(addresses, credentials=credentials, timeout_seconds=CLIENT_TIMEOUT_S) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        while not is_over():
            done += 1
            await client.set_config(wire.CONFIG_RESOURCE_TYPE_BROKER, "", CONFIG, str(done))
    return done


def run(test: Awaitable[None]) -> None:
    async def go() -> None:
        await test

    asyncio.run(go())


def let_connections_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection gets a GOAWAY at this age, and is cut a moment later."""
    options = (
        ("grpc.max_connection_age_ms", AGE_MS),
        ("grpc.max_connection_age_grace_ms", GRACE_MS),
    )
    monkeypatch.setattr(
        listeners, "PEER_SERVER_OPTIONS", (*listeners.PEER_SERVER_OPTIONS, *options)
    )


def test_connections_that_are_closed_for_their_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GOAWAY again and again, to peers and clients alike."""
    let_connections_age(monkeypatch)

    async def scenario() -> None:
        async with trio(tmp_path, {}) as nodes:
            nodes.forget_votes()
            before, connects = nodes.epochs(), nodes.connects()
            writes = await write_until(nodes, lambda: nodes.connects() >= connects + RECONNECTS)
            assert nodes.epochs() == before
            assert nodes.votes() == []
            assert writes > 0
            assert nodes.failures == []

    run(scenario())


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


def make_authority(folder: Path) -> Path:
    openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca", cwd=folder,
    )  # fmt: skip
    return folder / "ca.pem"


def make_certificate(folder: Path, name: str) -> TlsFiles:
    """For a node on the loopback address."""
    openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", cwd=folder,
    )  # fmt: skip
    (folder / "names.ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(
        "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
        "-CAcreateserial", "-days", "2", "-extfile", "names.ext", "-out", f"{name}.pem",
        cwd=folder,
    )  # fmt: skip
    return TlsFiles(folder / f"{name}.pem", folder / f"{name}.key", folder / "ca.pem")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_certificates_that_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes' files are replaced while they talk; new handshakes show the new certificate."""
    let_connections_age(monkeypatch)
    files = tmp_path / "tls"
    files.mkdir()
    authorities = make_authority(files)
    old, new = make_certificate(files, "old"), make_certificate(files, "new")
    live = TlsFiles(files / "live.pem", files / "live.key", authorities)

    def put(source: TlsFiles) -> None:
        # As a renewal does it: whole new files under the same names.
        for part in ("key", "certificate"):
            fresh = files / "fresh"
            fresh.write_bytes(getattr(source, part).read_bytes())
            fresh.chmod(0o600)
            fresh.rename(getattr(live, part))

    def shown(nodes: Trio) -> list[str]:
        addresses = [node.client_address.rpartition(":") for node in nodes.nodes]
        return [ssl.get_server_certificate((host, int(port))) for host, _, port in addresses]

    put(old)
    settings: dict[str, object] = {
        "security.mode": "tls",
        "tls.cert_file": str(live.certificate),
        "tls.key_file": str(live.key),
        "tls.ca_file": str(authorities),
    }
    credentials = grpc.ssl_channel_credentials(authorities.read_bytes())

    async def scenario() -> None:
        async with trio(tmp_path, settings) as nodes:
            nodes.forget_votes()
            before = nodes.epochs()
            assert await asyncio.to_thread(shown, nodes) == [old.certificate.read_text()] * 3
            put(new)
            connects = nodes.connects()
            await write_until(nodes, lambda: nodes.connects() >= connects + RECONNECTS, credentials)
            # A handshake between the two renames may have kept the old pair a little longer.
            async with asyncio.timeout(30):
                while await asyncio.to_thread(shown, nodes) != [new.certificate.read_text()] * 3:
                    await asyncio.sleep(0.05)
            assert nodes.epochs() == before
            assert nodes.votes() == []
            assert nodes.failures == []

    run(scenario())


def test_names_that_stop_resolving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name service is gone for as long as it takes to open every connection again."""
    let_connections_age(monkeypatch)
    asked: list[str] = []

    async def fails(address: str) -> None:
        asked.append(address)
        raise OSError(f"no such name: {address}")

    async def scenario() -> None:
        async with trio(tmp_path, {}) as nodes:
            await until("all connections", lambda: nodes.connects() >= 6)
            nodes.forget_votes()
            monkeypatch.setattr(channel, "resolve", fails)
            # Also where the resolver is asked first, and not the address of the broken stream.
            monkeypatch.setattr(channel, "REFUSAL_WINDOW_S", 0.0)
            before, connects = nodes.epochs(), nodes.connects()
            await write_until(nodes, lambda: nodes.connects() >= connects + RECONNECTS)
            assert nodes.epochs() == before
            assert nodes.votes() == []
            assert asked
            assert nodes.failures == []

    run(scenario())
