"""A server for the peer service alone, on a port of its own."""

from __future__ import annotations

from grpc import aio

from quorum.transport.limits import SERVER_OPTIONS
from quorum.transport.link import Link
from quorum.transport.security import TlsIdentity
from quorum.transport.served_methods import ServedMethods
from quorum.transport.server import RaftService
from quorum.transport.tcp_server import TcpServer

_STOP_GRACE_S = 0.2


class PeerServer:
    """A server for RaftService alone, where peers have a port of their own."""

    def __init__(
        self,
        service: RaftService,
        address: str,
        tls: TlsIdentity | None = None,
    ) -> None:
        """Bind ``host:port``; port 0 takes a free one.

        Raises:
            RuntimeError: The address cannot be bound.
        """
        self._service = service
        self._methods = ServedMethods()
        self._methods.add_generic_rpc_handlers((service.handlers(),))
        self._server = aio.server(options=SERVER_OPTIONS)
        self._server.add_generic_rpc_handlers((self._methods,))
        self.tcp: TcpServer | None = None
        if tls is None:
            self.port: int = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, tls.server_credentials())

    def add_tcp(self, link: Link, address: str) -> None:
        """Bind a port of TCP streams as well."""
        self.tcp = TcpServer(self._service.exchange, address, link)

    async def start(self) -> None:
        """Accept streams and calls."""
        await self._server.start()
        if self.tcp is not None:
            await self.tcp.start()

    async def stop(self) -> None:
        """Send the end of the stream, then stop everything at once."""
        await self._service.send_goodbye()
        await self.stop_without_goodbye(_STOP_GRACE_S)

    async def stop_without_goodbye(self, grace_s: float = 0.0) -> None:
        """Stop without the announcement."""
        if self.tcp is not None:
            await self.tcp.stop()
        await self._methods.stop(self._server, grace_s)
