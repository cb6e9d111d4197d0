"""The peer stream on a TCP connection of its own: both ends, and what they share.

A stream is the frames of ``framing.py``, each behind its length. The served end may end it with a
status frame, as gRPC does with its trailers. Any other end of the connection counts as a break.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

import grpc
from grpc import aio

from quorum.errors import PeerProtocolError
from quorum.transport.framing import STATUS
from quorum.transport.handshake import certificate_of, connect, connect_status
from quorum.transport.limits import MESSAGE_BYTES_MAX, STATUS_BYTES_MAX
from quorum.transport.packing import HEADER
from quorum.transport.probe import SocketAddress
from quorum.transport.security import TlsIdentity
from quorum.transport.streams import EndStatus
from quorum.transport.tcp_connection import ConnectionEndedError, FrameConnection

_STATUS_OF: Final = {status.value[0]: status for status in grpc.StatusCode}


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
    certificate = certificate_of(transport)
    return {
        "x509_pem_cert": [ssl.DER_cert_to_PEM_cert(certificate).encode()] if certificate else [],
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
        """Return the caller's certificate and the names in it."""
        return self._auth

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """Return nothing: such a stream carries no metadata, and so no token."""
        return ()


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
        self._transport: asyncio.Transport | None = None

    async def open(self) -> None:
        """Connect, and complete the TLS handshake.

        Raises:
            OSError: No connection; ``ssl.SSLError`` is one.
        """
        context = self._tls.client_context() if self._tls else None
        connection = FrameConnection(MESSAGE_BYTES_MAX)
        self._transport = await connect(connection, self._address, context, self.certificate_name)
        self._connection = connection

    async def certificate(self) -> bytes:
        """Return the certificate that the other end has shown."""
        return certificate_of(self._transport)

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
        return connect_status(error)


def _decode_status(frame: bytes) -> EndStatus:
    if not HEADER.size <= len(frame) <= HEADER.size + STATUS_BYTES_MAX:
        raise PeerProtocolError(f"status frame of {len(frame)} bytes")
    _, _, _, number = HEADER.unpack_from(frame)
    code = _STATUS_OF.get(number, grpc.StatusCode.UNKNOWN)
    return EndStatus(code, frame[HEADER.size :].decode("utf-8", "replace"))
