"""What a node listens with: a gRPC port for peers and clients, or one each, and a TCP port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import grpc
from grpc import aio

from quorate.client.limits import REQUEST_BYTES_MAX
from quorate.config.addresses import parse_address
from quorate.services.registration import SERVER_OPTIONS as CLIENT_SERVER_OPTIONS
from quorate.services.registration import ClientServices
from quorum.errors import ListenError
from quorum.fair_share import FairShare
from quorum.listen_problem import listen_problem, open_sockets
from quorum.transport.limits import BOUNDED_SERVER_OPTIONS
from quorum.transport.limits import REQUEST_BYTES_MAX as PEER_REQUEST_BYTES_MAX
from quorum.transport.limits import SERVER_OPTIONS as PEER_SERVER_OPTIONS
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME, Link
from quorum.transport.served_methods import ServedMethods, Wrapper
from quorum.transport.server import RaftService
from quorum.transport.tcp_server import Exchange, TcpServer

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
        credentials: Callable[[], grpc.ServerCredentials] | None,
        client_message_bytes_max: int = REQUEST_BYTES_MAX,
        wrappers: Sequence[Wrapper] = (),
        with_reflection: bool = True,
        with_channelz: bool = False,
    ) -> None:
        """Bind the addresses.

        ``credentials`` makes those of one port: gRPC takes the first certificate of such an object
        once, so a second port of the same object has none.

        Raises:
            ConfigError: Channelz is not installed.
            ListenError: An address cannot be listened on.
        """
        self._services = services
        self._raft = raft
        self._wrappers = wrappers
        self._switches = {"with_reflection": with_reflection, "with_channelz": with_channelz}
        self._client_message_bytes_max = client_message_bytes_max
        self._tcp: TcpServer | None = None
        is_shared = peer_address == client_address
        options = dict((*CLIENT_SERVER_OPTIONS, *BOUNDED_SERVER_OPTIONS))
        if is_shared:
            options |= dict(PEER_SERVER_OPTIONS)
        options["grpc.max_receive_message_length"] = max(
            client_message_bytes_max, PEER_REQUEST_BYTES_MAX if is_shared else 0
        )
        methods = ServedMethods(*wrappers)
        services.register(methods, **self._switches)
        self._servers = [(_server(methods, tuple(options.items())), methods)]
        if not is_shared:
            methods = ServedMethods(*wrappers)
            self._servers.append((_server(methods, PEER_SERVER_OPTIONS), methods))
            _bind(self._servers[1][0], peer_address, credentials and credentials())
        methods.add_generic_rpc_handlers((raft.handlers(),))
        _bind(self._servers[0][0], client_address, credentials and credentials())

    def add_sasl(self, address: str, credentials: grpc.ServerCredentials) -> None:
        """Bind a port for clients only; call it before ``start``.

        Raises:
            ListenError: The address cannot be listened on.
        """
        methods = ServedMethods(*self._wrappers)
        self._services.register(methods, **self._switches)
        options = dict((*CLIENT_SERVER_OPTIONS, *BOUNDED_SERVER_OPTIONS))
        options["grpc.max_receive_message_length"] = self._client_message_bytes_max
        self._servers.append((_server(methods, tuple(options.items())), methods))
        _bind(self._servers[-1][0], address, credentials)

    def add_tcp(self, address: str, link: Link) -> None:
        """Bind a port for TCP streams as well; call it before ``start``.

        Raises:
            ListenError: The address cannot be listened on.
        """
        exchange: Exchange = self._raft.exchange
        for wrapper in reversed(self._wrappers):
            method = f"/{SERVICE_NAME}/{EXCHANGE_METHOD}"
            exchange = wrapper.wrap(method, exchange, "stream_stream")
        try:
            self._tcp = TcpServer(exchange, address, link)
        except OSError as error:
            raise ListenError(f"cannot listen on {address}: {listen_problem(error)}") from error

    def quotas(self) -> tuple[FairShare, ...]:
        """Return the quotas of callers, for metrics."""
        return () if self._tcp is None else (self._tcp.handshakes,)

    async def start(self) -> None:
        """Accept calls."""
        for server, _ in self._servers:
            await server.start()
        if self._tcp is not None:
            await self._tcp.start()
        await self._services.start()

    async def stop(self) -> None:
        """End the peers' streams cleanly, then stop the servers within a moment."""
        await self._raft.send_goodbye()
        if self._tcp is not None:
            await self._tcp.stop()
        for server, methods in self._servers:
            await methods.stop(server, _STOP_GRACE_S)


def _server(methods: ServedMethods, options: Sequence[tuple[str, Any]]) -> aio.Server:
    server = aio.server(options=options)
    server.add_generic_rpc_handlers((methods,))
    return server


def _bind(server: aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> None:
    try:
        if credentials is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, credentials)
    except RuntimeError as error:
        reason = _reason(address)
        text = listen_problem(reason) if reason else "it was in use a moment ago; try again"
        raise ListenError(f"cannot listen on {address}: {text}") from (reason or error)


def _reason(address: str) -> OSError | None:
    """Return why gRPC could not listen on an address: it does not say it itself."""
    try:
        for opened in open_sockets(*parse_address(address)):
            opened.close()
    except OSError as error:
        return error
    return None
