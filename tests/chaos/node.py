"""A node of the chaos cluster: ``quorate`` itself, but it connects to its peers through a proxy.

In production, peer connections ignore the proxy of the environment. Here the proxy injects network
faults, so this process inverts that option before anything reads it. Otherwise faults between two
nodes would have no effect.
"""

from __future__ import annotations

import sys

from quorum.transport import limits

OPTION = "grpc.enable_http_proxy"


def dial_through_proxy() -> None:
    """Make every channel to a peer honour ``grpc_proxy``.

    Raises:
        LookupError: The option does not exist, or was read already: faults would have no effect.
    """
    if "quorum.transport.conversation" in sys.modules:
        raise LookupError("channels have read their options already")
    if (OPTION, 0) not in limits.CLIENT_OPTIONS:
        raise LookupError(f"{OPTION} is not among the options of a channel to a peer")
    limits.CLIENT_OPTIONS = tuple(
        (name, 1 if name == OPTION else value) for name, value in limits.CLIENT_OPTIONS
    )


if __name__ == "__main__":
    dial_through_proxy()
    from quorate.entry import main

    sys.exit(main())
