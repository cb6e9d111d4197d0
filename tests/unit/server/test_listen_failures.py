"""A port that a node cannot listen on: the true cause, and no words of gRPC."""

from __future__ import annotations

import asyncio
import re
import socket

import grpc
import pytest

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
