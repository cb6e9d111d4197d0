"""What the peer stream needs of its carrier: one stream of frames, as its two ends see it.

There are two carriers: a call of gRPC's Exchange (``grpc_stream``, grpc.aio's context), and a TCP
connection (``tcp_stream``). The served end has grpc.aio's names, so gRPC's context needs no
adapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

import grpc
from grpc import aio

EOF: Final = aio.EOF
"""What ``read`` returns when the other end has ended the stream in order."""


class ServedStream(Protocol):
    """The end that answers. ``grpc.aio.ServicerContext`` is one."""

    async def read(self) -> Any:
        """Return the next frame, or ``EOF``; one call at a time.

        Raises:
            PeerProtocolError: The bytes are no frame; the stream is useless.
            Exception: One of ``STREAM_ERRORS``: the connection is gone.
        """

    async def write(self, frame: bytes) -> None:
        """Send a frame; return when there is room for more. One call at a time.

        Raises:
            Exception: One of ``STREAM_ERRORS``.
        """

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> NoReturn:
        """End the stream with a status. Always raises, to end the handler."""

    def peer(self) -> str:
        """Return the caller's address in gRPC's form, ``ipv4:host:port``."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Return what the caller's certificate says; without certificates nothing about names."""

    def invocation_metadata(self) -> Any:
        """Return the pairs of key and value that came with the call; none over TCP."""


@dataclass(frozen=True, slots=True)
class EndStatus:
    """How a stream ended, as the end that opened it sees it."""

    code: grpc.StatusCode
    details: str
    is_broken: bool = False
    """The other end's kernel closed or reset the connection, without any announcement."""
    is_impostor: bool = False
    """Its certificate lacks the expected name."""


class OpenedStream(Protocol):
    """The end that asks. Used once: ``open``, then ``read`` and ``write``, finally ``close``."""

    certificate_name: str
    """The name that the other end's certificate must carry, if there are certificates."""

    async def open(self) -> None:
        """Connect, or prepare to. May be cancelled."""

    async def certificate(self) -> bytes:
        """Return the certificate (DER) of the other end of an open stream; empty without TLS.

        Raises:
            OSError: The other end cannot be asked for it.
        """

    async def read(self) -> Any:
        """As ``ServedStream.read``; a status of the other end is raised."""

    async def write(self, frame: bytes) -> None:
        """As ``ServedStream.write``."""

    def cancel(self) -> None:
        """End the stream from our side; a ``read`` that waits ends."""

    async def close(self) -> None:
        """Release everything; never raises."""

    def status_of(self, error: BaseException) -> EndStatus | None:
        """Return what an exception of this stream means; None if it is not this carrier's."""
