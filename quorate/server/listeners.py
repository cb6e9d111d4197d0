"""The gRPC servers of a node: one port for peers and clients, or one each."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from grpc import aio

from quorate.client.limits import REQUEST_BYTES_MAX
from quorate.services.registration import SERVER_OPTIONS as CLIENT_SERVER_OPTIONS
from quorate.services.registration import ClientServices
from quorum.errors import ListenError
from quorum.transport.limits import BOUNDED_SERVER_OPTIONS
from quorum.transport.limits import REQUEST_BYTES_MAX as PEER_REQUEST_BYTES_MAX
from quorum.transport.limits import SERVER_OPTIONS as PEER_SERVER_OPTIONS
from quorum.transport.running_calls import RunningCalls
from quorum.transport.server import RaftService

_STOP_GRACE_S = 0.2


class Listeners:
    """Owned by the event loop. Life-cycle: construct, ``start``, ``stop``.

    With equal addresses one server serves both, and gRPC's limit of a message is the larger one of
    peers and clients.
    """

    def __init__(
        self,
        raft: RaftService,
        services: ClientServices,
        *,
        client_address: str,
        peer_address: str,
        credentials: grpc.ServerCredentials | None,
        client_message_bytes_max: int = REQUEST_BYTES_MAX,
        interceptors: Sequence[aio.ServerInterceptor] = (),
    ) -> None:
        """Bind the addresses.

        Raises:
            ListenError: An address cannot be listened on.
        """
        self._services = services
        self._raft = raft
        self._running = RunningCalls()
        interceptors = (self._running, *interceptors)
        is_shared = peer_address == client_address
        options = dict((*CLIENT_SERVER_OPTIONS, *BOUNDED_SERVER_OPTIONS))
        if is_shared:
            options |= dict(PEER_SERVER_OPTIONS)
        options["grpc.max_receive_message_length"] = max(
            client_message_bytes_max, PEER_REQUEST_BYTES_MAX if is_shared else 0
        )
        server = aio.server(options=tuple(options.items()), interceptors=interceptors)
        services.register(server)
        self._servers = [server]
        if is_shared:
            server.add_generic_rpc_handlers((raft.handlers(),))
        else:
            peers = aio.server(options=PEER_SERVER_OPTIONS, interceptors=interceptors)
            peers.add_generic_rpc_handlers((raft.handlers(),))
            self._servers.append(peers)
            _bind(peers, peer_address, credentials)
        _bind(server, client_address, credentials)

    async def start(self) -> None:
        """Accept calls."""
        for server in self._servers:
            await server.start()
        await self._services.start()

    async def stop(self) -> None:
        """Say goodbye to peers, then end everything within a moment."""
        await self._raft.send_goodbye()
        for server in self._servers:
            await self._running.stop(server, _STOP_GRACE_S)


def _bind(server: aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> None:
    try:
        if credentials is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise ListenError(
            f"cannot listen on {address}: {error}; is another process using the port?"
        ) from error
