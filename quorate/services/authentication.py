"""``AuthenticationService``: SCRAM exchanges with the credentials of the log.

Invariants:
    1. Every refusal of an exchange looks alike, and leaves ``refusal_delay_s`` after the client's
       last message: whether the name is unknown or the password wrong cannot be told.
    2. A caller has few exchanges open at a time, so that it can try a few passwords a second.
    3. Nothing of a message reaches a log but the name, and only of a refused exchange.

An unknown name gets a salt that follows from the decoy (``statemachine.prepare.scram``), so every
node shows the same one, and the same work is done for it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Any, Final

import grpc

from quorate.log_limit import REPEATED
from quorate.services.admission import Gate
from quorate.services.calls import (
    CallPolicy,
    Context,
    Malformed,
    bidirectional_stream,
    next_message,
    well_formed,
)
from quorate.services.errors import RequestRefusedError
from quorate.services.ports import ServedNode
from quorate.services.tokens import Tokens, refused
from quorum.errors import ErrorCode
from quorum.scram import (
    ITERATIONS_MIN,
    MECHANISMS,
    SALT_BYTES,
    Credential,
    Mechanism,
    ScramError,
    ServerExchange,
)
from quorum.transport.callers import caller_of
from quorum.v1 import authentication_pb2
from statemachine.prepare.scram import DECOY
from statemachine.records import UserScramCredentialRecord

_log = logging.getLogger("quorate.audit")

SERVICE_NAME: str = authentication_pb2.DESCRIPTOR.services_by_name[
    "AuthenticationService"
].full_name
EXCHANGES_MAX: Final = 64
"""Open exchanges of all callers."""
EXCHANGES_PER_CALLER_MAX: Final = 4
"""Open exchanges of one caller: it tries so many passwords in ``refusal_delay_s``."""
_NONCE_BYTES: Final = 24
_REFUSAL: Final = "unknown user or wrong password"
OnOutcome = Callable[[str, str], None]
"""Called for every exchange with its mechanism and outcome: ``accepted`` or ``refused``."""


class AuthenticationService:
    """Serves exchanges of clients without a certificate. Used on the event loop only."""

    def __init__(
        self,
        node: ServedNode,
        tokens: Tokens,
        *,
        refusal_delay_s: float,
        on_outcome: OnOutcome = lambda _mechanism, _outcome: None,
    ) -> None:
        self._node = node
        self._tokens = tokens
        self._delay_s = refusal_delay_s
        self._on_outcome = on_outcome
        self._fallback_key = secrets.token_bytes(32)
        """In place of the decoy's, while the log has none."""
        self.exchanges = Gate(
            "authentications", EXCHANGES_MAX, caller_most=EXCHANGES_PER_CALLER_MAX
        )

    def handlers(self, policy: CallPolicy) -> grpc.GenericRpcHandler[Any, Any]:
        """Return the handlers to register with a server."""

        async def authenticate(context: Context) -> None:
            if policy.closing.is_begun:
                raise policy.closing.refusal()
            caller = caller_of(context)
            with self.exchanges.passing(caller):
                await self._authenticate(context, policy, caller)

        method = bidirectional_stream(
            authenticate,
            authentication_pb2.AuthenticateRequest,
            name="Authenticate",
            policy=policy,
        )
        return grpc.method_handlers_generic_handler(SERVICE_NAME, {"Authenticate": method})

    async def _authenticate(self, context: Context, policy: CallPolicy, caller: str) -> None:
        """Serve one exchange.

        Raises:
            RequestRefusedError: SASL_AUTHENTICATION_FAILED, and UNSUPPORTED_SASL_MECHANISM.
            CommandError: INVALID_REQUEST or REQUEST_TIMED_OUT of a message.
        """

        async def message() -> authentication_pb2.AuthenticateRequest:
            found = await next_message(policy.reads, context, caller)
            if found is grpc.aio.EOF:
                found = Malformed("the exchange ended early")
            request: authentication_pb2.AuthenticateRequest = well_formed(
                found, authentication_pb2.AuthenticateRequest
            )
            return request

        loop = asyncio.get_running_loop()
        first = await message()
        mechanism = MECHANISMS.get(first.mechanism)
        if mechanism is None:
            raise RequestRefusedError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                f"the mechanism must be one of {', '.join(MECHANISMS)}",
            )
        received, name = loop.time(), ""
        try:
            exchange = ServerExchange(mechanism, first.data, secrets.token_urlsafe(_NONCE_BYTES))
            name = exchange.name
            record, credential = self._credential(mechanism, name)
            challenge = exchange.challenge(credential.salt, credential.iterations)
            await context.write(authentication_pb2.AuthenticateResponse(data=challenge))
            final = await message()
            received = loop.time()
            proof = exchange.verify(final.data, credential)
            if record is None:
                raise ScramError(_REFUSAL)
        except ScramError:
            self._on_outcome(mechanism.name, "refused")
            address = context.peer()
            _log.warning(
                "event=authentication_refused user=%s mechanism=%s address=%s",
                name, mechanism.name, address,
                extra={REPEATED: f"{name} {address.rpartition(':')[0]}"},
            )  # fmt: skip
            await asyncio.sleep(received + self._delay_s - loop.time())
            raise refused(_REFUSAL) from None
        self._on_outcome(mechanism.name, "accepted")
        await context.write(
            authentication_pb2.AuthenticateResponse(
                data=proof,
                token=self._tokens.give(record),
                lifetime_ms=int(self._tokens.lifetime_s * 1000),
            )
        )

    def _credential(
        self, mechanism: Mechanism, name: str
    ) -> tuple[UserScramCredentialRecord | None, Credential]:
        """Return a user's credential; for an unknown user None, and one that looks like any."""
        scram = self._node.image.security.scram
        record = scram.get((name, mechanism.number))
        if record is not None:
            return record, Credential(
                record.salt, record.stored_key, record.server_key, record.iterations
            )
        decoy = scram.get(DECOY)
        key = self._fallback_key if decoy is None else decoy.server_key
        text = f"{mechanism.name} {name}".encode("utf-8", "surrogateescape")
        salt = hmac.digest(key, b"salt " + text, "sha256")[:SALT_BYTES]
        stored_key = mechanism.hmac(key, b"key " + text)
        return None, Credential(salt, stored_key, stored_key, ITERATIONS_MIN)
