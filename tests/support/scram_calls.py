"""One exchange with a node, message by message, as any client may send them."""

from __future__ import annotations

from typing import Any

import grpc

from quorum.scram import SHA_512, ClientExchange, Mechanism
from quorum.v1.authentication_pb2 import AuthenticateRequest
from quorum.v1.authentication_pb2_grpc import AuthenticationServiceStub


async def token_of(
    address: str, credentials: grpc.ChannelCredentials, name: str, password: str
) -> str:
    """Return the token that a node gives for a password.

    Raises:
        grpc.aio.AioRpcError: It gives none.
    """
    _, token = await exchange(address, credentials, name, password)
    return token


async def exchange(
    address: str,
    credentials: grpc.ChannelCredentials,
    name: str,
    password: str,
    *,
    mechanism: Mechanism = SHA_512,
) -> tuple[bytes, str]:
    """Return the salt and the token of an exchange; the token is empty if the node refuses.

    Raises:
        grpc.aio.AioRpcError: The node refuses before its challenge.
    """
    client = ClientExchange(mechanism, name, password, "a" * 24)
    async with grpc.aio.secure_channel(address, credentials) as channel:
        stub: Any = AuthenticationServiceStub(channel)  # type: ignore[no-untyped-call]
        call = stub.Authenticate(timeout=20)
        await call.write(AuthenticateRequest(mechanism=mechanism.name, data=client.first()))
        challenge = await call.read()
        await call.write(AuthenticateRequest(data=client.final(challenge.data)))
        answer = await call.read()
        client.verify(answer.data)
        return challenge.data, answer.token
