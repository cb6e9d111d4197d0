"""What is in the way of a command, told apart at real sockets: one true line, and soon."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from quorate.cli.connection import _unavailable
from quorate.cli.exits import CliError
from quorate.cli.quorum_places import find_place
from quorate.cli.session import Session
from quorum.transport.security import TlsFiles
from tests.support import certificates, fork_server
from tests.support.dead_ends import (
    closed_port,
    foreign_http2_server,
    grpc_server,
    http_server,
    metrics_server,
    silent_server,
)
from tests.support.served_node import cluster, serving

SECONDS_MAX = 2.0
NOISE = (
    "ipv4:", "UNAVAILABLE", "UNSUPPORTED", "DNS resolution failed", "ListTopics", "Traceback"
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TlsFiles]:
    folder = tmp_path_factory.mktemp("tls")
    certificates.authority(folder, "ca")
    certificates.authority(folder, "other")
    return {
        "node": certificates.node(folder, "ca", "node"),
        "elsewhere": certificates.caller(folder, "ca", "elsewhere", "DNS:elsewhere.example"),
        "stranger": certificates.node(folder, "other", "stranger"),
    }


def ran(*arguments: str) -> tuple[int, str, str, float]:
    """A command in a process of its own: what gRPC writes goes past Python."""
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    began = time.perf_counter()
    done = fork_server.run("quorate", arguments, environment=environment, timeout=60)
    return done.returncode, done.stdout, done.stderr, time.perf_counter() - began


@pytest.fixture(scope="module", autouse=True)
def start_seconds() -> float:
    """What a command takes that reaches nothing; the machine may be busy."""
    seconds = max(ran("topic", "list", "--help")[3] for _ in range(2))
    _STARTS.append(seconds)
    return seconds


_STARTS: list[float] = []


def line(address: str, *options: str, command: tuple[str, ...] = ("topic", "list")) -> str:
    """What the command says about ``address``: a single line, soon.

    Asked again if it came late: only the machine makes one of three answers late.
    """
    for _ in range(3):
        status, out, err, spent = ran(*command, "--bootstrap", address, *options)
        assert (status, out) == (7, "")
        assert err.count("\n") == 1, err
        if spent < SECONDS_MAX + 2 * _STARTS[-1]:
            break
    else:
        pytest.fail(f"three times late, at last {spent:.1f} s")
    for noise in NOISE:
        assert noise not in err
    return err


def test_a_refused_connection() -> None:
    address = closed_port()
    assert line(address) == (
        f"error: cannot reach the cluster through {address}: connection refused: nothing listens "
        "there (start the node, or name another with --bootstrap)\n"
    )


def test_where_a_new_voter_is_not() -> None:
    """`add-voter --at`: the leader answers, and the node that it asks about does not."""
    address = closed_port()
    with pytest.raises(CliError) as found:
        asyncio.run(find_place(Session(), address, 4, b"", ()))
    assert found.value.message == (
        f"node 4 does not answer at {address}: connection refused: nothing listens there"
    )


@pytest.mark.parametrize("address", ["n4", "n4:port", "n4:70000"])
def test_no_address_of_a_new_voter(address: str) -> None:
    status, _, err, _ = ran("quorum", "add-voter", "4", "--at", address)
    assert (status, repr(address) in err) == (2, True)


def test_an_unknown_name() -> None:
    """Where no name server answers at all, there is no answer to tell."""
    said = line("no-such-host.invalid:9093")
    assert "no-such-host.invalid has no address (DNS: " in said or "no connection in time" in said


def test_a_port_that_speaks_http1() -> None:
    with http_server() as address:
        assert "an HTTP/1 server answers there, no node's client port" in line(address)


@pytest.mark.parametrize("server", [metrics_server, http_server])
def test_tls_to_a_port_that_speaks_http1(
    files: dict[str, TlsFiles], server: Callable[[], AbstractContextManager[str]]
) -> None:
    """As the port of metrics beside a secured port of clients: no hint to leave out TLS."""
    with server() as address:
        said = line(address, "--tls-ca", str(files["node"].authorities))
    assert "an HTTP/1 server answers there, no node's client port" in said


def test_tls_to_a_port_that_says_nothing(files: dict[str, TlsFiles]) -> None:
    with silent_server() as address:
        said = line(address, "--tls-ca", str(files["node"].authorities))
    assert "connected, but there is no answer" in said


NO_CLIENT_PORT = "an HTTP/2 server answers there, which is no node's client port"
CALLS = {
    "reads": ("topic", "list"),
    "writes": ("topic", "create", "x"),
    "one node": ("snapshot", "now"),
}


@pytest.mark.parametrize("command", CALLS.values(), ids=CALLS)
def test_a_port_of_http2_that_is_no_node(command: tuple[str, ...]) -> None:
    with foreign_http2_server() as address:
        assert line(address, command=command) == (
            f"error: cannot reach the cluster through {address}: {NO_CLIENT_PORT} (name that of "
            "`listeners.client`)\n"
        )


@pytest.mark.parametrize("command", CALLS.values(), ids=CALLS)
def test_a_grpc_port_that_serves_no_clients(command: tuple[str, ...]) -> None:
    """As `listeners.peer` of a node."""
    with grpc_server() as address:
        assert line(address, command=command) == (
            f"error: cannot reach the cluster through {address}: {NO_CLIENT_PORT} (name that of "
            "`listeners.client`)\n"
        )


def test_health_of_a_grpc_port_that_serves_no_clients() -> None:
    with grpc_server() as address:
        status, out, err, _ = ran("health", "--bootstrap", address)
    assert (status, err) == (7, "error: no node answers\n")
    assert NO_CLIENT_PORT in " ".join(out.split())


def test_a_port_that_says_nothing() -> None:
    with silent_server() as address:
        assert "connected, but there is no answer" in line(address)


def test_plaintext_to_tls(files: dict[str, TlsFiles]) -> None:
    with grpc_server(files["node"]) as address:
        said = line(address)
    assert "the node expects TLS, and this command uses none (give --tls-ca)" in said


def test_plaintext_to_tls_that_asks_for_certificates(files: dict[str, TlsFiles]) -> None:
    with grpc_server(files["node"], asks_clients=True) as address:
        assert "the node expects TLS, and this command uses none" in line(address)


def test_tls_to_plaintext(files: dict[str, TlsFiles]) -> None:
    with grpc_server() as address:
        said = line(address, "--tls-ca", str(files["node"].authorities))
    assert "the node uses no TLS, and this command does (leave out --tls-ca)" in said


@pytest.mark.parametrize("name", ["stranger", "elsewhere"])
def test_a_certificate_of_another_issuer_or_name(files: dict[str, TlsFiles], name: str) -> None:
    with grpc_server(files[name]) as address:
        said = line(address, "--tls-ca", str(files["node"].authorities))
    assert "its certificate is not accepted: " in said


def test_a_node_that_asks_for_a_certificate(files: dict[str, TlsFiles]) -> None:
    tls = files["node"]
    with grpc_server(tls, asks_clients=True) as address:
        said = line(address, "--tls-ca", str(tls.authorities))
        assert (
            "hangs up after the TLS handshake, as one does that asks for a client's certificate"
            in said
        )
        assert "(give --tls-cert and --tls-key)" in said
        stranger = files["stranger"]
        said = line(
            address, "--tls-ca", str(tls.authorities),
            "--tls-cert", str(stranger.certificate), "--tls-key", str(stranger.key),
        )  # fmt: skip
        assert "as one does that refuses the client's certificate" in said


def test_each_of_several_servers_has_its_cause() -> None:
    refused = closed_port()
    with http_server() as other:
        said = line(f"{refused},{other}")
    assert f"{refused}: connection refused" in said
    assert f"{other}: an HTTP/1 server" in said
    assert "start the node" not in said, "a hint that is true for one of them only"


def test_a_server_that_can_be_reached_is_named_with_what_it_lacks() -> None:
    """One node of three is left: it answers, and finds no leader."""
    with grpc_server(is_node=True) as well:
        gone = closed_port()
        error = asyncio.run(_unavailable(Session(), (gone, well), "no leader was found"))
    assert str(error) == (
        f"cannot reach the cluster through {gone}: connection refused: nothing listens there; "
        f"{well}: no leader was found"
    )
    assert error.hint == ""


@pytest.mark.parametrize("leader", [None, 1])
def test_a_node_that_answers_and_knows_no_leader_says_so(leader: int | None) -> None:
    """A write waits for a leader until its deadline; that is what stood in its way."""

    async def scenario() -> None:
        _, (node,) = cluster(1, leader=leader)
        async with serving(node):
            error = await _unavailable(Session(), (node.address,), "no answer in time")
            lack = "no answer in time" if leader else "no leader is known there; no answer in time"
            assert str(error) == f"cannot reach the cluster through {node.address}: {lack}"
            assert error.hint == ("" if leader else "`quorate health` asks every node")

    asyncio.run(scenario())


def test_a_server_that_answers_is_not_examined_away() -> None:
    """A node that refuses is named by its refusal, though the other connection is refused."""
    with grpc_server(is_node=True) as address:
        status, _, err, _ = ran("topic", "list", "--bootstrap", f"{closed_port()},{address}")
    assert status == 6
    assert "CLUSTER_AUTHORIZATION_FAILED: not for you" in err


def test_a_port_that_serves_no_clients_beside_one_that_is_closed() -> None:
    closed = closed_port()
    with grpc_server() as address:
        for command in (CALLS["reads"], CALLS["writes"]):
            said = line(f"{closed},{address}", command=command)
            assert f"{closed}: connection refused: nothing listens there; " in said
            assert f"{address}: {NO_CLIENT_PORT}" in said


def test_a_written_timeout_waits_for_a_node_that_starts() -> None:
    status, _, err, spent = ran("topic", "list", "--bootstrap", closed_port(), "--timeout", "2")
    assert status == 7
    assert spent > 1.6
    assert "connection refused" in err
