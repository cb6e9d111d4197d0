"""A server for the peer service alone, on a port of its own."""

from __future__ import annotations

import grpc
from grpc import aio

from quorum.transport.limits import SERVER_OPTIONS
from quorum.transport.running_calls import RunningCalls
from quorum.transport.server import RaftService

_STOP_GRACE_S = 0.2


class PeerServer:
    """A server for RaftService alone, where peers have a port of their own."""

    def __init__(
        self,
        service: RaftService,
        address: str,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Bind ``host:port``; port 0 takes a free one.

        Raises:
            RuntimeError: The address cannot be bound.
        """
        self._service = service
        self._running = RunningCalls()
        self._server = aio.server(options=SERVER_OPTIONS, interceptors=(self._running,))
        self._server.add_generic_rpc_handlers((service.handlers(),))
        if credentials is None:
            self.port: int = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, credentials)

    async def start(self) -> None:
        """Accept streams and calls."""
        await self._server.start()

    async def stop(self) -> None:
        """Send the end of the stream, then stop everything at once."""
        await self._service.send_goodbye()
        await self._running.stop(self._server, _STOP_GRACE_S)
