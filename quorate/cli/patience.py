"""How long a command waits for servers that cannot be reached, and what it says then.

A client asks its servers again until its deadline, because a cluster that fails over needs that.
Where no server can be reached at all, that would be ten silent seconds. So a command that takes a
while examines them beside: if every one has a lasting obstacle (a wrong port, TLS, an unknown
name) it ends at once. Otherwise it grants ``PATIENCE_S``, in which a node may start, or all of
``--timeout`` where that was written. A change that was sent before is given all of the timeout: a
node that starts, or one that only the client knows, may still say what became of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from quorate.cli.client_port import client_port_obstacle
from quorate.cli.exits import CliError, Exit
from quorate.cli.reachability import Obstacle, TlsPaths, obstacle_at
from quorate.cli.session import Session

Answer = TypeVar("Answer")

QUIET_S = 0.25
"""Answers that come within this time cost no examination."""
PATIENCE_S = 0.7
"""How long servers may be unreachable before a command without ``--timeout`` ends."""


async def unless_unreachable(
    session: Session,
    servers: Sequence[str],
    work: Awaitable[Answer],
    *,
    patience_s: float | None = None,
    is_in_doubt: Callable[[], bool] = lambda: False,
) -> Answer:
    """Return what ``work`` returns, unless no server can be reached for ``patience_s``.

    None: as the session says. ``is_in_doubt`` says whether a change was sent that was not answered:
    servers that cannot be reached now may have been reached before. Then ``work`` is waited for.

    Raises:
        UnreachableError: No change is in doubt; with what is in the way at each server.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    if patience_s is None:
        patience_s = session.timeout_s if "timeout_s" in session.written else PATIENCE_S
    give_up_at = loop.time() + patience_s
    try:
        await asyncio.wait({task}, timeout=QUIET_S)
        while not task.done():
            found = await obstacles(session, servers)
            if len(found) < len(servers) or is_in_doubt():
                break
            is_hopeless = all(each.is_lasting for each in found.values())
            if not task.done() and (is_hopeless or loop.time() >= give_up_at):
                raise UnreachableError(found)
            await asyncio.wait({task}, timeout=QUIET_S)
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def obstacles(session: Session, servers: Sequence[str]) -> dict[str, Obstacle]:
    """What is in the way, by server; those that answer are left out."""
    tls = tls_paths(session)

    async def examine(server: str) -> Obstacle | None:
        return await obstacle_at(server, tls) or await client_port_obstacle(session, server)

    found = await asyncio.gather(*(examine(server) for server in servers))
    return {server: each for server, each in zip(servers, found, strict=True) if each is not None}


def tls_paths(session: Session) -> TlsPaths | None:
    """The session's TLS files; None without TLS."""
    if session.tls_ca is None and session.tls_cert is None:
        return None
    return TlsPaths(session.tls_ca, session.tls_cert, session.tls_key)


class UnreachableError(CliError):
    """No server is reached; a hint is given if it is true for all of them."""

    def __init__(self, obstacles: Mapping[str, Obstacle]) -> None:
        hints = {each.hint for each in obstacles.values()}
        causes = "; ".join(f"{server}: {each.cause}" for server, each in obstacles.items())
        super().__init__(
            f"cannot reach the cluster through {causes}",
            hint=hints.pop() if len(hints) == 1 else "",
            code=Exit.UNREACHABLE,
        )
        self.obstacles = dict(obstacles)
