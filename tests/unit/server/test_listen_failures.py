"""A port that a node cannot listen on: the true cause, and no words of gRPC."""

from __future__ import annotations

import asyncio
import errno
import re
import socket

import grpc
import pytest

from quorate.cli.exits import Exit, exit_for, hint_for
from quorate.server.listeners import _bind
from quorum.errors import ListenError


def bind(address: str) -> None:
    async def scenario() -> None:
        _bind(grpc.aio.server(options=(("grpc.so_reuseport", 0),)), address, None)

    asyncio.run(scenario())


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = f"cannot listen on {address}: Address already in use; is another process using the"
        with pytest.raises(ListenError, match=f"^{re.escape(said)} port\\?$"):
            bind(address)


def test_a_name_without_an_address() -> None:
    said = r"^cannot listen on nohost\.invalid:1: the name has no address \(DNS: [^()]*\)$"
    with pytest.raises(ListenError, match=said):
        bind("nohost.invalid:1")


def test_an_address_of_another_machine() -> None:
    """192.0.2.0/24 is for documents only."""
    with pytest.raises(ListenError, match=r"is the address one of this machine\?$"):
        bind("192.0.2.1:9093")


@pytest.mark.parametrize("address", ["192.0.2.1:9093", "nohost.invalid:1"])
def test_a_wrong_address_is_a_mistake_in_the_configuration(address: str) -> None:
    """A supervisor must not try it again; a port in use may be free the next time."""
    with pytest.raises(ListenError) as wrong:
        bind(address)
    if isinstance(wrong.value.__cause__, socket.gaierror):
        # Where no name server answers, nobody knows whether the name exists.
        is_known = wrong.value.__cause__.errno != socket.EAI_AGAIN
        assert exit_for(wrong.value) is (Exit.USAGE if is_known else Exit.FAILED)
    else:
        assert exit_for(wrong.value) is Exit.USAGE
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ListenError) as busy:
        bind(f"127.0.0.1:{taken.getsockname()[1]}")
    assert exit_for(busy.value) is Exit.FAILED


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), Exit.USAGE),
        (socket.gaierror(socket.EAI_AGAIN, "later"), Exit.FAILED),
        (PermissionError(errno.EACCES, "a port below 1024"), Exit.USAGE),
        (OSError(errno.EADDRNOTAVAIL, "foreign"), Exit.USAGE),
        (OSError(errno.EADDRINUSE, "in use"), Exit.FAILED),
    ],
)
def test_only_what_may_change_is_tried_again(cause: OSError, status: Exit) -> None:
    error = ListenError("x")
    error.__cause__ = cause
    assert exit_for(error) is status
    assert hint_for(error) == "", "no file is concerned"
