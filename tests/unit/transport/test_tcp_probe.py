"""What a plain connect proves."""

from __future__ import annotations

import errno
import socket

import pytest

from quorum.transport import probe as probe_module
from quorum.transport.probe import (
    Reachability,
    SocketAddress,
    connect_once,
    resolve,
    split_address,
)
from tests.support.peer_harness import run

V4 = SocketAddress(socket.AF_INET, "127.0.0.1", 1)
OTHER = SocketAddress(socket.AF_INET, "127.0.0.2", 1)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("a:1", "a", 1), ("[::1]:9093", "::1", 9093), ("10.0.0.1:65535", "10.0.0.1", 65535)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    """Host and port, brackets for IPv6."""
    assert split_address(text) == (host, port)


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:-1", "::1:5", "a:x"])
def test_an_invalid_address_is_refused(text: str) -> None:
    """Each raises ValueError naming the text."""
    with pytest.raises(ValueError, match=r"host:port|brackets"):
        split_address(text)


def test_targets_need_no_resolver() -> None:
    """gRPC's own notation for addresses."""
    assert V4.target == "ipv4:127.0.0.1:1"
    assert SocketAddress(socket.AF_INET6, "::1", 2).target == "ipv6:[::1]:2"


def test_a_socket_that_cannot_be_made_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local shortage of descriptors proves nothing about the peer, and ends no request."""

    def no_descriptor(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def scenario() -> None:
        monkeypatch.setattr(probe_module.socket, "socket", no_descriptor)
        found = await connect_once((V4,), 1.0)
        assert found.reachability is Reachability.UNKNOWN
        assert "Too many open files" in found.detail

    run(scenario())


def test_listening_accepts_and_a_free_port_refuses() -> None:
    """Real sockets, by name."""

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            found = await connect_once(await resolve(address), 1.0)
            assert found.reachability is Reachability.ACCEPTED
        found = await connect_once(await resolve(address), 1.0)
        assert found.reachability is Reachability.REFUSED

    run(scenario())


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([errno.ECONNREFUSED], Reachability.REFUSED),
        ([errno.ECONNREFUSED, errno.ECONNREFUSED], Reachability.REFUSED),
        ([errno.ECONNREFUSED, None], Reachability.ACCEPTED),
        ([errno.ECONNREFUSED, errno.EHOSTUNREACH], Reachability.UNKNOWN),
        ([errno.ETIMEDOUT, errno.ECONNREFUSED], Reachability.UNKNOWN),
        ([errno.ECONNRESET], Reachability.RESET),
        ([errno.ECONNRESET, errno.ECONNREFUSED], Reachability.RESET),
        ([errno.ECONNRESET, errno.ETIMEDOUT], Reachability.UNKNOWN),
        ([], Reachability.UNKNOWN),
    ],
)
def test_refused_means_every_address_refused(
    outcomes: list[int | None], expected: Reachability, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One address with another result invalidates the proof."""
    left = list(outcomes)

    async def attempt(*_: object) -> OSError | None:
        number = left.pop(0)
        return None if number is None else OSError(number, "scripted")

    monkeypatch.setattr(probe_module, "_try", attempt)

    async def scenario() -> None:
        addresses = (V4, OTHER)[: len(outcomes)]
        assert (await connect_once(addresses, 1.0)).reachability is expected

    run(scenario())
