"""Who recorded the messages of a login, and sends them again, proves nothing."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import grpc
import pytest

from quorate.client import Client, scram_upsertion
from quorum.scram import SHA_512, ClientExchange
from quorum.v1.authentication_pb2 import AuthenticateRequest
from quorum.v1.authentication_pb2_grpc import AuthenticationServiceStub
from tests.support.bound_node import bound_node
from tests.support.certificates import authority, caller, node

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def test_the_messages_of_an_exchange_prove_nothing_a_second_time(tmp_path: Path) -> None:
    """Neither as they are nor with the nonce of the new exchange in them."""
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    admin = caller(tmp_path, "ours", "admin", "DNS:admin.test")
    nobody = grpc.ssl_channel_credentials(server.authorities.read_bytes())
    shown = grpc.ssl_channel_credentials(
        *(each.read_bytes() for each in (admin.authorities, admin.key, admin.certificate))
    )

    async def replay(sasl: str) -> None:
        client = ClientExchange(SHA_512, "alice", "pencil", "a" * 24)
        first = AuthenticateRequest(mechanism=SHA_512.name, data=client.first())
        async with grpc.aio.secure_channel(sasl, nobody) as channel:
            stub: Any = AuthenticationServiceStub(channel)  # type: ignore[no-untyped-call]
            calls = [stub.Authenticate(timeout=20) for _ in range(3)]
            challenges: list[bytes] = []
            for call in calls:
                await call.write(first)
                challenges.append((await call.read()).data)
            nonces = [each.split(b",")[0].removeprefix(b"r=") for each in challenges]
            assert len(set(nonces)) == 3
            final = client.final(challenges[0])
            assert nonces[0] in final
            await calls[0].write(AuthenticateRequest(data=final))
            assert (await calls[0].read()).token
            for call, data in (
                (calls[1], final),
                (calls[2], final.replace(nonces[0], nonces[2])),
            ):
                await call.write(AuthenticateRequest(data=data))
                with pytest.raises(grpc.aio.AioRpcError, match="unknown user or wrong password"):
                    await call.read()

    async def run() -> None:
        async with bound_node(tmp_path, server, failed_authentication_delay_ms=50) as place:
            address, sasl, _ = place
            async with Client([address], credentials=shown) as client:
                await client.alter_user_scram_credentials([scram_upsertion("alice", "pencil")])
            await replay(sasl)

    asyncio.run(run())
