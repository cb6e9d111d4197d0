"""``RevocationGate``: no call of a revoked certificate reaches a method."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc

from quorate.log_limit import REPEATED
from quorate.services.calls import Context
from quorate.services.revoked_certificates import RevokedCertificates
from quorum.transport.answers import abort
from quorum.transport.served_methods import Behaviour

_log = logging.getLogger("quorate.audit")


class RevocationGate:
    """Ends every call of a caller whose certificate is on the list. Owned by the event loop."""

    def __init__(self, revoked: RevokedCertificates) -> None:
        self._revoked = revoked

    def wrap(self, method: str, behaviour: Behaviour, _kind: str) -> Behaviour:
        """Return the method behind the check."""
        if inspect.isasyncgenfunction(behaviour):

            async def stream(requests: Any, context: Context) -> AsyncIterator[Any]:
                await self._check(method, context)
                async for answer in behaviour(requests, context):
                    yield answer

            return stream

        async def call(requests: Any, context: Context) -> Any:
            await self._check(method, context)
            return await behaviour(requests, context)

        return call

    async def _check(self, method: str, context: Context) -> None:
        if self._revoked.names(context.auth_context()):
            address = context.peer()
            _log.warning(
                "event=certificate_revoked address=%s what=%s", address, method,
                extra={REPEATED: address.rpartition(":")[0]},
            )  # fmt: skip
            text = "the certificate is revoked"
            await abort(context, grpc.StatusCode.UNAUTHENTICATED, text, ())
