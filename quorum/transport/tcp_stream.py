"""The peer stream on a TCP connection of its own: both ends, and what they share.

A stream is the frames of ``framing.py``, each behind its length. The served end may end it with a
status frame, as gRPC does with its trailers. Any other end of the connection counts as a break.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

import grpc
from grpc import aio

from quorum.errors import PeerProtocolError
from quorum.transport.framing import STATUS
from quorum.transport.limits import (
    HANDSHAKE_TIMEOUT_MS,
    KEEPALIVE_TIME_MS,
    KEEPALIVE_TIMEOUT_MS,
    MESSAGE_BYTES_MAX,
    STATUS_BYTES_MAX,
)
from quorum.transport.packing import HEADER
from quorum.transport.probe import SocketAddress
from quorum.transport.security import TlsIdentity
from quorum.transport.streams import EndStatus
from quorum.transport.tcp_connection import ConnectionEndedError, FrameConnection

HANDSHAKE_TIMEOUT_S: Final = HANDSHAKE_TIMEOUT_MS / 1000
_NAME_MISMATCH: Final = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_STATUS_OF: Final = {status.value[0]: status for status in grpc.StatusCode}
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


def handshake_problem(error: BaseException) -> str:
    """Return in words why no connection came about."""
    if isinstance(error, ssl.SSLError) and error.reason in _PLAIN_TEXT:
        return f"no TLS handshake, the other end seems to speak plain text ({error.reason})"
    if isinstance(error, ssl.SSLError):
        return f"no TLS handshake: {error.reason or error}"
    if isinstance(error, TimeoutError) or "handshake is taking longer" in str(error):
        return f"no TLS handshake within {HANDSHAKE_TIMEOUT_S:g} s"
    return f"no connection: {str(error) or type(error).__name__}"


def auth_of(transport: asyncio.BaseTransport) -> dict[str, list[bytes]]:
    """Return the caller's certificate in the form of gRPC's authentication context."""
    if transport.get_extra_info("ssl_object") is None:
        return {}
    shown = transport.get_extra_info("peercert") or {}
    names = [value.encode() for _, value in shown.get("subjectAltName", ())]
    common = [
        value.encode()
        for part in shown.get("subject", ())
        for field, value in part
        if field == "commonName"
    ]
    return {
        "transport_security_type": [b"ssl"],
        "x509_subject_alternative_name": names,
        "x509_common_name": common,
    }


class StreamAbortedError(aio.AbortError):  # type: ignore[misc]  # grpc has no types
    """Ends a handler whose stream got its status; gRPC's own for a call."""


class TcpContext:
    """The served end (``streams.ServedStream``)."""

    def __init__(self, connection: FrameConnection, transport: asyncio.BaseTransport) -> None:
        self._connection = connection
        self._auth = auth_of(transport)
        host, port = transport.get_extra_info("peername")[:2]
        self._peer = f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
        self._code: grpc.StatusCode | None = None
        self.read = connection.read
        self.write = connection.write

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),  # noqa: ARG002 - gRPC's form
    ) -> NoReturn:
        """Send the status behind what is queued, and close."""
        self.finish(code, details)
        raise StreamAbortedError

    def finish(self, code: grpc.StatusCode, details: str) -> None:
        """Send a status behind what is queued, and close."""
        if self._code is None:
            self._code = code
            words = details.encode()[:STATUS_BYTES_MAX]
            self._connection.push(HEADER.pack(STATUS, 0, HEADER.size, code.value[0]) + words)
            self._connection.close()

    def code(self) -> grpc.StatusCode | None:
        """Return the status that ``abort`` sent."""
        return self._code

    def peer(self) -> str:
        """Return the caller's address as gRPC writes it."""
        return self._peer

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Return the names in the caller's certificate."""
        return self._auth


class _StatusError(Exception):
    """The served end ended the stream with a status."""

    def __init__(self, status: EndStatus) -> None:
        super().__init__(status.details)
        self.status = status


class TcpStream:
    """The end that opens (``streams.OpenedStream``)."""

    def __init__(
        self, address: SocketAddress, certificate_name: str, tls: TlsIdentity | None
    ) -> None:
        self.certificate_name = certificate_name
        self._address = address
        self._tls = tls
        self._connection: FrameConnection | None = None

    async def open(self) -> None:
        """Connect, and complete the TLS handshake.

        Raises:
            OSError: No connection; ``ssl.SSLError`` is one.
        """
        loop = asyncio.get_running_loop()
        address, tls = self._address, self._tls
        with contextlib.ExitStack() as stack:
            sock = stack.enter_context(socket.socket(address.family, socket.SOCK_STREAM))
            sock.settimeout(0)
            tune(sock)
            await loop.sock_connect(sock, (address.host, address.port))
            _, self._connection = await loop.create_connection(
                lambda: FrameConnection(MESSAGE_BYTES_MAX),
                sock=sock,
                ssl=tls.client_context() if tls else None,
                server_hostname=self.certificate_name if tls else None,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls else None,
            )
            stack.pop_all()

    async def read(self) -> Any:
        """Return the next frame. The end of the stream is raised."""
        frame = await self._opened().read()
        if frame and frame[0] == STATUS:
            raise _StatusError(_decode_status(frame))
        return frame

    async def write(self, frame: bytes) -> None:
        """Send a frame."""
        await self._opened().write(frame)

    def _opened(self) -> FrameConnection:
        if self._connection is None:
            raise ConnectionEndedError("not connected", is_broken=False)
        return self._connection

    def cancel(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.abort()

    async def close(self) -> None:
        """Close the connection, and wait until it is over."""
        if self._connection is not None:
            self._connection.abort()
            await asyncio.wait({self._connection.lost})

    def status_of(self, error: BaseException) -> EndStatus | None:
        """Return the status that arrived, or what the loss of the connection means."""
        match error:
            case _StatusError():
                return error.status
            case ConnectionEndedError():
                last = self._opened().last_frame
                if last and last[0] == STATUS:
                    # A write failed before the status was read.
                    return _decode_status(last)
                return EndStatus(grpc.StatusCode.UNAVAILABLE, str(error), error.is_broken)
            case ssl.SSLCertVerificationError():
                is_impostor = error.verify_code in _NAME_MISMATCH
                words = error.verify_message
                return EndStatus(grpc.StatusCode.UNAVAILABLE, words, is_impostor=is_impostor)
            case OSError() if not isinstance(error, TimeoutError):
                return EndStatus(grpc.StatusCode.UNAVAILABLE, handshake_problem(error))
        return None


def _decode_status(frame: bytes) -> EndStatus:
    if not HEADER.size <= len(frame) <= HEADER.size + STATUS_BYTES_MAX:
        raise PeerProtocolError(f"status frame of {len(frame)} bytes")
    _, _, _, number = HEADER.unpack_from(frame)
    code = _STATUS_OF.get(number, grpc.StatusCode.UNKNOWN)
    return EndStatus(code, frame[HEADER.size :].decode("utf-8", "replace"))
