"""TLS handshakes of peers: why one failed, and the certificate that a server shows."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Final

import grpc

from quorum.transport.limits import (
    HANDSHAKE_TIMEOUT_MS,
    KEEPALIVE_TIME_MS,
    KEEPALIVE_TIMEOUT_MS,
)
from quorum.transport.probe import SocketAddress
from quorum.transport.security import TlsIdentity
from quorum.transport.streams import EndStatus

HANDSHAKE_TIMEOUT_S: Final = HANDSHAKE_TIMEOUT_MS / 1000
_NAME_MISMATCH: Final = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_PLAIN_TEXT: Final = frozenset({"HTTP_REQUEST", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons for first bytes that are no TLS."""


def tune(connected: socket.socket) -> None:
    """Send small frames at once, and let the kernel find a machine that is gone."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The first probe is as early as gRPC's ping, and two lost ones as late as its time limit.
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_TIME_MS // 1000)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_TIMEOUT_MS // 2000)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)


async def connect(
    protocol: asyncio.Protocol,
    address: SocketAddress,
    context: ssl.SSLContext | None,
    certificate_name: str,
) -> asyncio.Transport:
    """Connect ``protocol``, and complete the handshake if there is a ``context``.

    Raises:
        OSError: No connection; ``ssl.SSLError`` is one.
    """
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        sock = stack.enter_context(socket.socket(address.family, socket.SOCK_STREAM))
        sock.settimeout(0)
        tune(sock)
        await loop.sock_connect(sock, (address.host, address.port))
        transport, _ = await loop.create_connection(
            lambda: protocol,
            sock=sock,
            ssl=context,
            server_hostname=certificate_name if context else None,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if context else None,
        )
        stack.pop_all()
    return transport


async def shown_at(address: SocketAddress, certificate_name: str, tls: TlsIdentity) -> bytes:
    """Return the certificate (DER) that a gRPC server shows, from a handshake of its own.

    gRPC for Python does not show a caller the server's certificate.

    Raises:
        OSError: No handshake; ``ssl.SSLError`` is one.
    """
    transport = await connect(asyncio.Protocol(), address, tls.looking_context(), certificate_name)
    try:
        return certificate_of(transport)
    finally:
        transport.abort()


def certificate_of(transport: asyncio.BaseTransport | None) -> bytes:
    """Return the certificate (DER) that the other end has shown; empty without one."""
    shown = transport.get_extra_info("ssl_object") if transport is not None else None
    return (shown.getpeercert(binary_form=True) or b"") if shown is not None else b""


def handshake_problem(error: BaseException) -> str:
    """Return in words why no connection came about."""
    if isinstance(error, ssl.SSLError) and error.reason in _PLAIN_TEXT:
        return f"no TLS handshake, the other end seems to speak plain text ({error.reason})"
    if isinstance(error, ssl.SSLError):
        return f"no TLS handshake: {error.reason or error}"
    if isinstance(error, TimeoutError) or "handshake is taking longer" in str(error):
        return f"no TLS handshake within {HANDSHAKE_TIMEOUT_S:g} s"
    return f"no connection: {str(error) or type(error).__name__}"


def connect_status(error: BaseException) -> EndStatus | None:
    """Return what an error of ``connect`` means for the stream; None if it is none."""
    match error:
        case ssl.SSLCertVerificationError():
            is_impostor = error.verify_code in _NAME_MISMATCH
            words = error.verify_message
            return EndStatus(grpc.StatusCode.UNAVAILABLE, words, is_impostor=is_impostor)
        case OSError() if not isinstance(error, TimeoutError):
            return EndStatus(grpc.StatusCode.UNAVAILABLE, handshake_problem(error))
    return None
