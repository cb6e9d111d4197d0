"""A replica in a process of its own, to be killed: prints its port, then answers all requests."""

from __future__ import annotations

import asyncio
import sys

from tests.support import peer_harness
from tests.support.peer_harness import replica


async def main(node_id: int) -> None:
    async with replica(node_id) as node:
        node.echo()
        sys.stdout.write(f"{node.server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    peer_harness.CARRIER = sys.argv[2]
    asyncio.run(main(int(sys.argv[1])))
