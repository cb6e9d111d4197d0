"""Whether a server that speaks HTTP/2 is the port for clients of a node.

A node's `listeners.peer`, a proxy and any other gRPC server take connections as a node's port for
clients does. They differ in what they serve, so one call is made that every node answers.
"""

from __future__ import annotations

from quorate import client as library
from quorate.cli.reachability import SERVES_NO_CLIENTS, Obstacle
from quorate.cli.session import Session
from quorate.cli.tls_files import credentials_of

LIMIT_S = 0.5
"""How long the call may take; what is late is taken for a node."""


async def client_port_obstacle(session: Session, server: str) -> Obstacle | None:
    """Return what is wrong with a server that answers HTTP/2; None if it serves clients.

    The call proves no password: a node's refusal shows as well that it serves clients.
    """
    credentials = credentials_of(session)
    client = library.Client((server,), credentials=credentials, timeout_seconds=LIMIT_S)
    async with client:
        try:
            await client.describe_cluster()
        except library.NotServedError:
            return SERVES_NO_CLIENTS
        except library.ClientError:
            return None
    return None
