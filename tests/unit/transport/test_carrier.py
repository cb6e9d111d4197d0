"""Which carrier a stream uses, and the way back to gRPC."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.demo.ports import free_ports
from quorum.transport.carrier import Carrier
from quorum.transport.hello import Hello, decode_hello, encode_hello
from quorum.transport.limits import TCP_RETRY_S
from quorum.transport.probe import SocketAddress
from quorum.transport.security import TlsIdentity
from quorum.transport.tcp_stream import TcpStream
from tests.support import peer_harness
from tests.support.certificates import authority, node
from tests.support.peer_harness import CLUSTER, fetch, key, replica, run

THEIRS = Hello(CLUSTER, key(1), b"", process_id=b"one", tcp_port=7)


@pytest.fixture
def over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_harness, "CARRIER", peer_harness.TCP)


def test_a_hello_carries_the_port() -> None:
    assert decode_hello(encode_hello(THEIRS)) == THEIRS


@pytest.mark.usefixtures("over_tcp")
def test_a_port_that_does_not_answer_is_left_for_grpc(caplog: pytest.LogCaptureFixture) -> None:
    """No request fails; the reason is one line; the process is not asked again for a time."""
    (nobody,) = free_ports(1)

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            leader.echo()
            object.__setattr__(leader.link, "hello", replace(leader.link.hello, tcp_port=nobody))
            follower.uses_one_carrier = False
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            counters = follower.link.counters
            assert (counters.tcp_connects, counters.tcp_fallbacks, counters.connects) == (0, 1, 1)
            assert follower.handler.failed == follower.handler.refused == []

    with caplog.at_level(logging.WARNING, logger="quorum.transport"):
        run(scenario())
    (line,) = [r.getMessage() for r in caplog.records if "gRPC is used" in r.getMessage()]
    assert line.startswith("TCP stream to 1: ")


@pytest.mark.usefixtures("over_tcp")
def test_a_peer_that_gave_its_port_up_is_reached_over_grpc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A roll back: its next process has gRPC only, at the same address."""

    async def scenario() -> None:
        async with replica(2) as follower:
            follower.uses_one_carrier = False
            async with replica(1) as before:
                before.echo()
                port = before.server.port
                follower.network.set_peers({1: before.address})
                follower.network.send(1, fetch(2, 1))
                await follower.handler.until(lambda: bool(follower.handler.received))
            monkeypatch.setattr(peer_harness, "CARRIER", peer_harness.GRPC)
            async with replica(1, port=port) as after:
                after.echo()
                while not follower.network.statuses()[0].is_connected:
                    follower.network._channels[1].nudge()
                    await asyncio.sleep(0.01)
                follower.network.send(1, fetch(2, 2))
                await follower.handler.until(lambda: len(follower.handler.received) == 2)
            assert follower.link.counters.tcp_connects == 1
            assert follower.link.counters.tcp_fallbacks == 0
            assert follower.handler.refused == []

    run(scenario())


@pytest.mark.parametrize("ports", [(0, 7), (7, 0), (0, 0)])
def test_tcp_needs_a_port_on_both_sides(ports: tuple[int, int]) -> None:
    async def scenario() -> None:
        async with replica(2) as ours:
            link = replace(ours.link, hello=replace(ours.link.hello, tcp_port=ports[0]))
            assert not Carrier(link).moves(replace(THEIRS, tcp_port=ports[1]), 0.0)

    run(scenario())


def test_a_failed_port_is_tried_again_for_another_process_or_later() -> None:
    async def scenario() -> None:
        async with replica(2) as ours:
            link = replace(ours.link, hello=replace(ours.link.hello, tcp_port=9))
            carrier = Carrier(link)
            assert carrier.moves(THEIRS, 0.0)
            assert carrier.leave_tcp(1.0)
            assert carrier.has_failed
            assert not carrier.moves(THEIRS, 2.0)
            assert Carrier(link).moves(THEIRS, 2.0)
            assert carrier.moves(replace(THEIRS, process_id=b"two"), 2.0)
            assert carrier.leave_tcp(3.0)
            assert carrier.moves(THEIRS, 3.0)
            assert carrier.leave_tcp(4.0)
            assert carrier.moves(THEIRS, 4.0 + TCP_RETRY_S)

    run(scenario())


def test_a_port_that_served_is_left_without_blame() -> None:
    async def scenario() -> None:
        async with replica(2) as ours:
            link = replace(ours.link, hello=replace(ours.link.hello, tcp_port=9))
            carrier = Carrier(link)
            assert carrier.moves(THEIRS, 0.0)
            assert not carrier.moves(THEIRS, 0.0)
            assert not carrier.leave_tcp(1.0), "its hello was accepted: a refusal is a refusal"
            link.counters.tcp_connects = 0

    run(scenario())


@pytest.mark.usefixtures("over_tcp")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize(("shown", "is_impostor"), [("node-1", False), ("node-3", True)])
def test_a_tcp_port_must_show_the_certificate_of_its_node(
    shown: str, is_impostor: bool, tmp_path: Path
) -> None:
    """On its own: gRPC's hello, which comes first, has been accepted. Method: dial the port."""
    authority(tmp_path, "ours")
    served = TlsIdentity(node(tmp_path, "ours", "served", f"DNS:{shown}.quorum.test"))
    dialling = TlsIdentity(node(tmp_path, "ours", "dialling", "DNS:node-2.quorum.test"))

    async def scenario() -> None:
        async with replica(1, tls=served) as server:
            assert server.server.tcp is not None
            address = SocketAddress(socket.AF_INET, "127.0.0.1", server.server.tcp.port)
            stream = TcpStream(address, "node-1.quorum.test", dialling)
            try:
                await stream.open()
            except OSError as error:
                status = stream.status_of(error)
                found = status is not None and status.is_impostor
            else:
                found = False
            await stream.close()
            assert found is is_impostor

    run(scenario())
