"""The carrier of one channel's next stream: gRPC, or TCP if both nodes have a port for it.

A peer states the port in its hello (``Hello.tcp_port``), so the first stream to it is gRPC's and
ends there, and the next one is TCP's. A port that cannot be used costs one attempt: the channel
returns to gRPC, which works as long as the process does.

See: ADR 63.
"""

from __future__ import annotations

from dataclasses import replace

from quorum.transport.grpc_stream import GrpcStream
from quorum.transport.hello import Hello
from quorum.transport.limits import TCP_RETRY_S
from quorum.transport.link import Link
from quorum.transport.probe import SocketAddress
from quorum.transport.streams import OpenedStream
from quorum.transport.tcp_stream import TcpStream


class Carrier:
    """The choice of one channel. Owned by the event loop. Times are the loop's seconds."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._port = 0
        """Where the next stream is opened; 0: at the peer's gRPC address."""
        self._process = b""
        self._has_served = False
        """Whether the hello of a TCP stream was accepted, since the port is known."""
        self._serves = False
        """The same of the latest attempt."""
        self._failed_process: bytes | None = None
        self._failed_at = 0.0

    def begin(self) -> None:
        """Note that an attempt to open a stream begins."""
        self._serves = False

    def address(self, resolved: SocketAddress) -> SocketAddress:
        """Return where to connect, for an address of the peer's gRPC server."""
        return replace(resolved, port=self._port) if self._port else resolved

    def stream(self, address: SocketAddress, certificate_name: str) -> OpenedStream:
        """Return the stream to open at ``address``."""
        make = TcpStream if self._port else GrpcStream
        return make(address, certificate_name, self._link.tls)

    def moves(self, theirs: Hello, now: float) -> bool:
        """Take the accepted hello of a stream; return whether it continues as a TCP stream.

        It does if both have a port, unless the port of this very process has just failed.
        """
        if self._port:
            self._serves = self._has_served = True
            self._link.counters.tcp_connects += 1
            return False
        if not theirs.tcp_port or not self._link.hello.tcp_port:
            return False
        has_failed = theirs.process_id == self._failed_process
        if has_failed and now - self._failed_at < TCP_RETRY_S:
            return False
        self._port, self._process, self._has_served = theirs.tcp_port, theirs.process_id, False
        return True

    def leave_tcp(self, now: float) -> bool:
        """Give the port up if the latest attempt got no hello there that both accepted.

        The hello of the next stream, over gRPC, states the present port. If this one never served,
        gRPC is used for that process for a time; one that did belonged to a process that is gone.

        Returns:
            Whether the next stream is gRPC's, and this was not so before.
        """
        if not self._port or self._serves:
            return False
        self._port = 0
        if not self._has_served:
            self._failed_process, self._failed_at = self._process, now
            self._link.counters.tcp_fallbacks += 1
        return True

    @property
    def has_failed(self) -> bool:
        """Whether gRPC is used because a port never served."""
        return self._failed_process is not None and not self._has_served
