"""The peer stream as a call of gRPC's Exchange: the end that opens it."""

from __future__ import annotations

import re
from typing import Any, Final

import grpc
from grpc import aio

from quorum.transport.handshake import connect_status, shown_at
from quorum.transport.limits import CLIENT_OPTIONS
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME
from quorum.transport.probe import SocketAddress
from quorum.transport.security import TlsIdentity
from quorum.transport.streams import EndStatus

_BROKEN_CONNECTION: Final = re.compile(
    r"socket closed|connection reset|broken pipe|connection aborted|end of tcp stream",
    re.IGNORECASE,
)
"""gRPC's words for a connection that the other end's kernel closed. Its status code,
UNAVAILABLE, is not enough: GOAWAY and an expired keep-alive have the same code."""

_WRITE_FAILED: Final = "Internal error from Core"
"""What grpc.aio reports, as INTERNAL, when a write finds the connection closed before a read."""

_WRONG_NAME: Final = "Hostname Verification Check failed"
"""gRPC's words for a certificate without the expected name. Only the report depends on them."""


class GrpcStream:
    """One call of Exchange, on a channel of its own (``streams.OpenedStream``)."""

    def __init__(
        self, address: SocketAddress, certificate_name: str, tls: TlsIdentity | None
    ) -> None:
        self.certificate_name = certificate_name
        self._address = address
        self._tls = tls
        self._channel: Any = None
        self._call: Any = None

    async def open(self) -> None:
        """Begin the call; gRPC connects meanwhile, and the first write or read waits for it."""
        target = self._address.target
        if self._tls is None:
            self._channel = aio.insecure_channel(target, options=CLIENT_OPTIONS)
        else:
            name = ("grpc.ssl_target_name_override", self.certificate_name)
            self._channel = aio.secure_channel(
                target, self._tls.channel_credentials(), options=(*CLIENT_OPTIONS, name)
            )
        self._call = self._channel.stream_stream(f"/{SERVICE_NAME}/{EXCHANGE_METHOD}")()
        # A turn costs less without our frame in between.
        self.read = self._call.read  # type: ignore[method-assign]
        self.write = self._call.write  # type: ignore[method-assign]

    async def certificate(self) -> bytes:
        """Return the certificate of the server, which shows it to a handshake of its own."""
        if self._tls is None:
            return b""
        return await shown_at(self._address, self.certificate_name, self._tls)

    async def read(self) -> Any:
        """Return the next frame, or ``EOF``."""
        return await self._call.read()

    async def write(self, frame: bytes) -> None:
        """Send a frame."""
        await self._call.write(frame)

    def cancel(self) -> None:
        """End the call. It does not wake a task that waits for the connection: cancel the task."""
        if self._call is not None:
            self._call.cancel()

    async def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            await self._channel.close()

    def status_of(self, error: BaseException) -> EndStatus | None:
        """Return the status of the call."""
        if isinstance(error, aio.AioRpcError):
            return status_of(error.code(), error.details() or "")
        return connect_status(error)


def status_of(code: grpc.StatusCode, details: str) -> EndStatus:
    """Return what a status and the words with it mean."""
    is_broken = (
        code is grpc.StatusCode.UNAVAILABLE and _BROKEN_CONNECTION.search(details) is not None
    ) or (code is grpc.StatusCode.INTERNAL and details == _WRITE_FAILED)
    return EndStatus(code, details, is_broken, is_impostor=_WRONG_NAME in details)
