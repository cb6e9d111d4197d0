"""A peer whose certificate is revoked, as the end sees it that opens streams to it."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from pathlib import Path

import pytest

from quorum.transport.node_names import NodeNames
from quorum.transport.security import TlsFiles, TlsIdentity
from tests.support.certificates import authority, node
from tests.support.peer_harness import PATIENCE_S, fetch, replica, run

pytestmark = [
    pytest.mark.usefixtures("carrier"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]

NAMES = NodeNames("node-{id}.quorum.test")
REVOKED = "the certificate is revoked"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("revoked")
    authority(made, "ours")
    for node_id in (1, 2):
        node(made, "ours", f"n{node_id}", f"DNS:{NAMES.of(node_id)}")
    return made


def identity(folder: Path, name: str) -> TlsIdentity:
    return TlsIdentity(
        TlsFiles(folder / f"{name}.pem", folder / f"{name}.key", folder / "ours.pem")
    )


class RevokedOnes:
    """A list that a test changes; it also keeps what it was asked about."""

    def __init__(self) -> None:
        self.listed: set[bytes] = set()
        self.asked: set[bytes] = set()

    def problem(self, certificate: bytes) -> str:
        self.asked.add(certificate)
        return REVOKED if certificate in self.listed else ""


def test_an_open_stream_ends_when_the_list_names_its_peer(folder: Path) -> None:
    """A request that waits for its answer fails with the reason, and so does every later one."""
    ones = RevokedOnes()
    shown = ssl.PEM_cert_to_DER_cert((folder / "n1.pem").read_text())

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n1"), names=NAMES) as leader,
            replica(
                2,
                tls=identity(folder, "n2"),
                names=NAMES,
                timeout_s=600.0,
                certificate_problem=ones.problem,
            ) as follower,
        ):
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            assert ones.asked == {shown}
            leader.handler.on_request = None  # The next answer never comes.
            follower.network.send(1, fetch(2, 2))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            assert follower.handler.failed == []
            ones.listed.add(shown)
            await follower.handler.until(lambda: (1, 2) in follower.handler.failed)
            assert follower.handler.refusals == [REVOKED]
            (status,) = follower.network.statuses()
            assert (status.is_connected, status.problem) == (False, REVOKED)
            # No death of the process: nobody may take its epoch for over (ADR 8).
            assert follower.handler.refused == []
            follower.network.send(1, fetch(2, 3))
            await follower.handler.until(lambda: (1, 3) in follower.handler.failed)
            assert len(leader.handler.received) == 2
            ones.listed.clear()
            leader.echo()
            answers, handler = len(follower.handler.received), follower.handler
            while len(handler.received) == answers:  # Requests of the pause fail at once.
                follower.network._channels[1].nudge()
                known = len(handler.failed)
                follower.network.send(1, fetch(2, 4 + known))
                await handler.until(
                    lambda n=known: len(handler.failed) > n or len(handler.received) > answers
                )

    run(scenario())


def test_a_peer_on_the_list_gets_no_hello(folder: Path) -> None:
    ones = RevokedOnes()
    ones.listed.add(ssl.PEM_cert_to_DER_cert((folder / "n1.pem").read_text()))

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n1"), names=NAMES) as leader,
            replica(
                2, tls=identity(folder, "n2"), names=NAMES, certificate_problem=ones.problem
            ) as follower,
        ):
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: (1, 1) in follower.handler.failed)
            assert follower.handler.refusals == [REVOKED]
            assert leader.handler.received == []
            async with asyncio.timeout(PATIENCE_S):
                while leader.network.service.stream_count:
                    await asyncio.sleep(0.001)  # over TCP it learns of the end later
            assert follower.link.counters.hellos_refused >= 1

    run(scenario())


def test_a_peer_with_another_name_is_an_impostor_with_a_list_as_well(folder: Path) -> None:
    """The look at a certificate checks authority and name, as the stream does."""

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n2"), names=NAMES) as impostor,
            replica(
                2,
                tls=identity(folder, "n2"),
                names=NAMES,
                certificate_problem=RevokedOnes().problem,
            ) as follower,
        ):
            follower.network.set_peers({1: impostor.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: (1, 1) in follower.handler.failed)
            assert "not that of node-1.quorum.test" in follower.network.statuses()[0].problem
            assert follower.link.counters.impostors_refused >= 1

    run(scenario())
