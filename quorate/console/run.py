"""Runs the console until it is stopped: the follower and the web server on one loop."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import uvicorn

from quorate.client import Client
from quorate.console.alerts import AlertStates
from quorate.console.app import make_app
from quorate.console.binding import Binding
from quorate.console.follower import Explain, Follower
from quorate.console.index import Index
from quorate.console.views import Sources
from quorum.errors import ListenError
from quorum.listen_problem import listen_problem, open_sockets

CONNECTIONS_MAX = 200
_SHUTDOWN_SECONDS = 3


async def run_console(
    make_client: Callable[[], Client],
    binding: Binding,
    *,
    explain: Explain | None = None,
    prometheus: str = "",
    on_listening: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve until SIGTERM or SIGINT. Nodes that cannot be reached are tried for ever.

    ``explain`` says in words why none can be reached.

    Raises:
        ListenError: The port cannot be opened.
    """
    with tempfile.TemporaryDirectory(prefix="quorate-console-") as folder:
        index = Index(Path(folder))
        try:
            async with make_client() as client:
                sources = Sources(Follower(client, index, explain), index, AlertStates(prometheus))
                await _serve(sources, binding, on_listening)
        finally:
            index.close()


async def _serve(sources: Sources, binding: Binding, on_listening: Callable[[str], None]) -> None:
    server = _Server(
        uvicorn.Config(
            make_app(sources, binding),
            host=binding.host,
            port=binding.port,
            ssl_certfile=binding.certificate,
            ssl_keyfile=binding.key,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ),
        binding,
        on_listening,
    )
    try:
        sockets = open_sockets(binding.host, binding.port)
    except OSError as error:
        raise ListenError(
            f"cannot listen on {binding.host}:{binding.port}: {listen_problem(error)}"
        ) from error
    try:
        async with asyncio.TaskGroup() as tasks:
            # A failure of either, which is a mistake in this program, ends the console.
            following = (
                tasks.create_task(sources.follower.run()),
                tasks.create_task(sources.alerts.run()),
            )
            await server.serve(sockets)
            for each in following:
                each.cancel()
    finally:
        for opened in sockets:
            opened.close()


class _Server(uvicorn.Server):
    """Reports the address once the port is open."""

    def __init__(
        self, config: uvicorn.Config, binding: Binding, on_listening: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._binding = binding
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port, and report it."""
        await super().startup(sockets)
        if not self.started:
            return
        port = self.servers[0].sockets[0].getsockname()[1]
        host = self._binding.host
        host = f"[{host}]" if ":" in host else host
        self._on_listening(f"{'https' if self._binding.certificate else 'http'}://{host}:{port}/")
