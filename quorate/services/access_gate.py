"""``AccessGate``: every call passes the table of roles before its method runs.

The gate stands around whatever a gRPC server serves, services of other packages included. A method
that the table does not know is refused, so a new one cannot be open by mistake.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import grpc

from quorate.services.access import Access, AccessPolicy
from quorate.services.answers import ANSWERS, HEALTH_AND_REFLECTION
from quorate.services.calls import Context, fail
from quorate.services.errors import RequestRefusedError
from quorate.services.ports import ServedNode
from quorum.errors import QuorateError
from quorum.transport.answers import STATUSES, end
from quorum.transport.served_methods import Behaviour
from statemachine.image import MetadataImage

_PEERS = "quorum.v1.RaftService"


class AccessGate:
    """Checks the caller of every call of a server. Owned by the event loop."""

    def __init__(self, node: ServedNode, policy: AccessPolicy) -> None:
        self._node = node
        self._policy = policy

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

    async def _access(self, context: Context, image: MetadataImage) -> Access:
        """Return what a caller may do; a wrong token is refused slowly, since it may be a guess.

        Raises:
            RequestRefusedError: SASL_AUTHENTICATION_FAILED.
        """
        try:
            return self._policy.access_of(context, image)
        except RequestRefusedError:
            await asyncio.sleep(self._policy.refusal_delay_s)
            raise

    async def _check(self, method: str, context: Context) -> None:
        """End the call unless its caller may make it."""
        try:
            image = self._node.image
            access = await self._access(context, image)
            access.check_method(method, image)
        except QuorateError as error:
            service, _, name = method.lstrip("/").rpartition("/")
            if service == _PEERS and name in STATUSES:
                await end(context, name, grpc.StatusCode.PERMISSION_DENIED, str(error))
            is_ours = service.startswith("quorum.") and name in ANSWERS
            shown = name if is_ours else HEALTH_AND_REFLECTION
            await fail(context, shown, error, self._node.cluster_id)
