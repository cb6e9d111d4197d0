"""In mode bound the methods of peers are for those who may call them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc import aio

from quorate.services.access import AccessPolicy
from quorate.services.access_gate import AccessGate
from quorum.transport.node_names import NodeNames
from quorum.transport.served_methods import ServedMethods
from quorum.transport.server import RaftService
from statemachine.image import EMPTY_IMAGE
from tests.support.peer_harness import replica

POLICY = AccessPolicy(NodeNames("node-{id}.test"), frozenset())


@pytest.mark.parametrize("method", ["Fetch", "FetchSnapshot", "ChainDigest"])
def test_a_client_without_rights_is_refused(method: str) -> None:
    async def run() -> None:
        node: Any = SimpleNamespace(image=EMPTY_IMAGE, cluster_id="c")
        async with replica(1) as peer:
            service: RaftService = peer.network.service
            methods = ServedMethods(AccessGate(node, POLICY))
            methods.add_generic_rpc_handlers((service.handlers(),))
            server = aio.server()
            server.add_generic_rpc_handlers((methods,))
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                with pytest.raises(aio.AioRpcError, match="User:ANONYMOUS may not") as refused:
                    await channel.unary_unary(f"/quorum.v1.RaftService/{method}")(b"", timeout=20)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
            await server.stop(None)

    asyncio.run(run())
