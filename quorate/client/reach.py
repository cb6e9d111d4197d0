"""How long a call waits for a connection to one node while other nodes are known.

A machine that is gone answers nothing, so a call to it would wait for gRPC's whole attempt to
connect (``CONNECT_TIMEOUT_MS``). The attempt goes on after the call was given up: a node that is
only slow to connect to is ready when it is asked the next time. A request that may be sent only
once waits for its connection in ``delivery``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final

from quorate.client.channels import Nodes
from quorate.client.errors import UnavailableError

CONNECT_SECONDS_MAX: Final = 0.25
"""gRPC's own pause, too, before it tries the next address of a name (RFC 8305)."""
_UNLIMITED: Final = nullcontext()


def within_reach(nodes: Nodes, address: str) -> AbstractAsyncContextManager[None]:
    """Return a context that cancels what is awaited if ``address`` is not connected in time.

    Waits on if no other node is known.

    Raises:
        UnavailableError: It was cancelled.
    """
    if nodes.is_connected(address) or len(nodes.addresses) == 1:
        return _UNLIMITED
    return _limited(nodes, address)


@asynccontextmanager
async def _limited(nodes: Nodes, address: str) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)

    def check() -> None:
        if not nodes.is_connected(address):
            limit.reschedule(loop.time())

    timer = loop.call_later(CONNECT_SECONDS_MAX, check)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise UnavailableError(f"no connection to {address} in {CONNECT_SECONDS_MAX} s") from None
    finally:
        timer.cancel()
