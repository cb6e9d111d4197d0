"""A node of the chaos cluster: ``quorate`` itself, but it connects to its peers through a proxy.

In production, peer connections ignore the proxy of the environment. Here the proxy injects network
faults, so this process inverts that option before anything reads it, and its TCP streams ask the
proxy as well. Otherwise faults between two nodes would have no effect.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
from urllib.parse import urlsplit

from quorum.transport import limits
from quorum.transport.probe import SocketAddress

OPTION = "grpc.enable_http_proxy"
PROXY = "grpc_proxy"
"""gRPC reads the proxy for all its connections from this variable."""


def dial_through_proxy() -> None:
    """Make every channel to a peer honour ``grpc_proxy``.

    Raises:
        LookupError: The option does not exist, or was read already: faults would have no effect.
    """
    if "quorum.transport.conversation" in sys.modules:
        raise LookupError("channels have read their options already")
    if (OPTION, 0) not in limits.CLIENT_OPTIONS:
        raise LookupError(f"{OPTION} is not among the options of a channel to a peer")
    limits.CLIENT_OPTIONS = tuple(
        (name, 1 if name == OPTION else value) for name, value in limits.CLIENT_OPTIONS
    )


async def connect_through_proxy(
    protocol: asyncio.Protocol,
    address: SocketAddress,
    context: ssl.SSLContext | None,
    _certificate_name: str,
) -> asyncio.Transport:
    """Connect a peer's TCP stream as ``handshake.connect`` does, by CONNECT at the proxy."""
    assert context is None, "the chaos cluster has no certificates"
    loop = asyncio.get_running_loop()
    proxy = urlsplit(os.environ[PROXY])
    connected = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        connected.settimeout(0)
        await loop.sock_connect(connected, (proxy.hostname, proxy.port))
        await loop.sock_sendall(connected, f"CONNECT :{address.port} HTTP/1.1\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            # One byte at a time, because what follows belongs to the stream.
            byte = await loop.sock_recv(connected, 1)
            if not byte:
                raise ConnectionResetError("the proxy has no connection")
            answer += byte
        transport, _ = await loop.create_connection(lambda: protocol, sock=connected)
    except BaseException:
        connected.close()
        raise
    return transport


def stream_through_proxy() -> None:
    """Make every TCP stream to a peer honour ``grpc_proxy``. Call it after ``dial_through_proxy``.

    Raises:
        LookupError: A stream does not connect by this function: faults would have no effect.
    """
    from quorum.transport import handshake, tcp_stream

    if tcp_stream.connect is not handshake.connect:  # type: ignore[attr-defined]  # not exported
        raise LookupError("TCP streams connect in another way")
    tcp_stream.connect = connect_through_proxy  # type: ignore[attr-defined]


if __name__ == "__main__":
    dial_through_proxy()
    stream_through_proxy()
    from quorate.entry import main

    sys.exit(main())
