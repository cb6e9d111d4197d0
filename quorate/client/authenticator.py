"""Proves a password to each node, and adds the token that a node gave to all calls to it.

gRPC asks for the metadata of every call, in threads of its own (``Authenticator.__call__``). The
exchange itself runs on the client's event loop, over a channel that carries no token.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import grpc

from quorate.client.credentials import DEFAULT_MECHANISM
from quorate.client.errors import ClientError, ProtocolError, RefusedError, from_rpc
from quorate.client.limits import CLIENT_OPTIONS
from quorum.scram import MECHANISMS, ClientExchange, ScramError
from quorum.v1 import common_pb2
from quorum.v1.authentication_pb2 import AuthenticateRequest, AuthenticateResponse
from quorum.v1.authentication_pb2_grpc import AuthenticationServiceStub

EXCHANGE_SECONDS_MAX: Final = 10.0
"""How long one exchange may take; a refusal takes as long as the node wants."""
RENEWED_AT: Final = 0.8
"""Part of a token's lifetime after which the next call gets a new one."""
REFUSED_SECONDS: Final = 5.0
"""After a refusal no other exchange with that node is tried for so long."""
_NONCE_BYTES: Final = 24
_FAILED: Final = common_pb2.ERROR_CODE_SASL_AUTHENTICATION_FAILED
_LOG = logging.getLogger(__name__)
_Waiting = Callable[[Sequence[tuple[str, str]], Exception | None], None]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    renewed_at: float
    """On the loop's clock."""


class Authenticator(grpc.AuthMetadataPlugin):  # type: ignore[misc]  # grpc has no types
    """One client's proofs. Constructed and used on its event loop, and called in gRPC's threads."""

    def __init__(
        self,
        credentials: grpc.ChannelCredentials,
        *,
        user: str,
        password: str,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> None:
        """``credentials`` are those of TLS.

        Raises:
            ValueError: The mechanism is unknown.
        """
        if mechanism not in MECHANISMS:
            raise ValueError(f"unknown mechanism {mechanism!r}; there are {', '.join(MECHANISMS)}")
        self._credentials = credentials
        self._user = user
        self._password = password
        self._mechanism = MECHANISMS[mechanism]
        self._loop = asyncio.get_running_loop()
        self._tokens: dict[str, _Token] = {}
        """By address. Written on the loop, read in any thread."""
        self._refusals: dict[str, RefusedError] = {}
        self._refused_at: dict[str, float] = {}
        self._exchanges: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[str, list[_Waiting]] = {}

    def __call__(self, context: Any, callback: _Waiting) -> None:
        """Hand over the token for a call, at once or after an exchange. In any thread."""
        address = urlsplit(context.service_url).netloc
        token = self._tokens.get(address)
        if token is not None and self._loop.time() < token.renewed_at:
            callback(token_metadata(token.text), None)
            return
        try:
            self._loop.call_soon_threadsafe(self._begin, address, callback)
        except RuntimeError as error:
            callback((), error)

    async def prepare(self, address: str) -> None:
        """Get a token for the next call to the node, if that needs one; a refusal is not raised.

        Raises:
            Exception: The exchange failed, as the call would.
        """
        token = self._tokens.get(address)
        if token is not None and self._loop.time() < token.renewed_at:
            return
        done: asyncio.Future[Exception | None] = self._loop.create_future()

        def ended(_metadata: object, failure: Exception | None) -> None:
            if not done.done():
                done.set_result(failure)

        self._begin(address, ended)
        if (failure := await done) is not None:
            raise failure

    def explained(self, address: str, error: ClientError) -> ClientError:
        """Return why this node refused the client's password, in place of its refusal of a call."""
        if isinstance(error, RefusedError) and error.code == _FAILED:
            return self._refusals.get(address, error)
        return error

    def forget(self, address: str, error: ClientError) -> bool:
        """Whether asking again may help: the node has given a token that it knows no more."""
        if not isinstance(error, RefusedError) or error.code != _FAILED:
            return False
        return self._tokens.pop(address, None) is not None

    async def close(self) -> None:
        """End the exchanges; the calls that wait for one fail."""
        for task in self._exchanges.values():
            task.cancel()
        await asyncio.gather(*self._exchanges.values(), return_exceptions=True)

    def _begin(self, address: str, callback: _Waiting) -> None:
        refused_at = self._refused_at.get(address)
        if refused_at is not None and self._loop.time() < refused_at + REFUSED_SECONDS:
            callback((), None)
            return
        self._waiting.setdefault(address, []).append(callback)
        if address not in self._exchanges:
            self._exchanges[address] = self._loop.create_task(self._serve(address))

    async def _serve(self, address: str) -> None:
        """Make one exchange for all calls that wait for its token."""
        token: _Token | None = None
        failure: Exception | None = None
        try:
            token = await self._token(address)
        except RefusedError as error:
            # Without a token the node refuses the call itself: ``explained`` says why.
            self._refusals[address] = error
            self._refused_at[address] = self._loop.time()
            _LOG.info("not authenticated at %s: %s", address, error)
        except (ClientError, OSError, TimeoutError) as error:
            failure = error
        except asyncio.CancelledError:
            failure = ConnectionAbortedError("the client was closed")
            raise
        finally:
            del self._exchanges[address]
            if token is not None:
                self._tokens[address] = token
                self._refusals.pop(address, None)
                self._refused_at.pop(address, None)
            metadata = () if token is None else token_metadata(token.text)
            for callback in self._waiting.pop(address, ()):
                callback(metadata, failure)

    async def _token(self, address: str) -> _Token:
        """Prove the password to one node.

        Raises:
            ClientError: It refused, or is no node.
        """
        began = self._loop.time()
        client = ClientExchange(
            self._mechanism, self._user, self._password, secrets.token_urlsafe(_NONCE_BYTES)
        )
        async with grpc.aio.secure_channel(
            address, self._credentials, options=CLIENT_OPTIONS
        ) as channel:
            stub: Any = AuthenticationServiceStub(channel)  # type: ignore[no-untyped-call]
            call = stub.Authenticate(timeout=EXCHANGE_SECONDS_MAX)
            try:
                request = AuthenticateRequest(mechanism=self._mechanism.name, data=client.first())
                challenge = await _asked(call, request)
                proof = await asyncio.to_thread(client.final, challenge.data)
                answer = await _asked(call, AuthenticateRequest(data=proof))
                client.verify(answer.data)
            except grpc.RpcError as error:
                raise from_rpc(error) from error
            except ScramError as error:
                raise ProtocolError(f"{address}: {error}") from error
            finally:
                call.cancel()
        return _Token(answer.token, began + answer.lifetime_ms / 1000 * RENEWED_AT)


async def _asked(call: Any, request: AuthenticateRequest) -> AuthenticateResponse:
    await call.write(request)
    response = await call.read()
    if response is grpc.aio.EOF:
        raise ScramError("the node ended the exchange early")
    found: AuthenticateResponse = response
    return found


def token_metadata(token: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata of a call that carries a token."""
    return (("authorization", f"Bearer {token}"),)
