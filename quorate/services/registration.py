"""Registers the client services on a gRPC server: options, handlers, health, reflection."""

from __future__ import annotations

from collections.abc import Sequence

from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from quorate.client.limits import SERVER_OPTIONS
from quorate.services import admin, authentication, metadata
from quorate.services.access import AccessPolicy
from quorate.services.admin import AdminService
from quorate.services.admission import Gate, ServiceLimits
from quorate.services.authentication import AuthenticationService, OnOutcome
from quorate.services.calls import CallPolicy, OnFailure
from quorate.services.channelz import add_channelz
from quorate.services.closing import Closing
from quorate.services.foreign import ForeignServices
from quorate.services.health import HealthBoard
from quorate.services.metadata import MetadataService
from quorate.services.ports import ServedNode
from quorate.services.reads import Reads
from quorum.errors import ErrorCode
from quorum.fair_share import FairShare
from quorum.transport.message_reads import MessageReads
from quorum.transport.served_methods import ServedMethods

HEALTH_WATCHES_MAX = 256
"""Maximum open streams of Health.Watch; one prober needs one or two."""
ENDING_SECONDS_MAX = 1.0
"""Time, in seconds, that a stop waits for open calls before it cancels them."""
HELD_SHARE = 2
"""One in ``HELD_SHARE`` places of calls may be held by waiting reads."""
HEALTH_SERVICE_NAME: str = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name


def _ignore_failure(_method: str, _code: ErrorCode) -> None:
    """Ignore a failure; the default of ``on_failure``."""


def _ignore_outcome(_mechanism: str, _outcome: str) -> None:
    """Ignore the end of an exchange; the default of ``on_authentication``."""


class ClientServices:
    """All services that clients can call on one node.

    Life-cycle: construct on the loop, ``register`` before the server starts, ``start`` after,
    ``drain`` and ``stop`` before it stops, ``close``.
    """

    def __init__(
        self,
        node: ServedNode,
        *,
        limits: ServiceLimits = ServiceLimits(),  # noqa: B008 - immutable
        on_failure: OnFailure = _ignore_failure,
        other_service_names: Sequence[str] = (),
        policy: AccessPolicy | None = None,
        on_authentication: OnOutcome = _ignore_outcome,
    ) -> None:
        """``policy``: what callers may do; None: everything. An ``AccessGate`` with the same policy
        must stand around the server's methods. Passwords are accepted if the policy has tokens.
        """
        self.closing = Closing(node.node_id)
        self.held = Gate("held reads", max(1, limits.unary_calls_max // HELD_SHARE))
        reads = Reads(node, self.held)
        self.metadata = MetadataService(node, limits, self.closing, reads, policy)
        self.admin = AdminService(node, reads, policy)
        self.authentication: AuthenticationService | None = None
        if policy is not None and policy.tokens is not None:
            self.authentication = AuthenticationService(
                node,
                policy.tokens,
                refusal_delay_s=policy.refusal_delay_s,
                on_outcome=on_authentication,
            )
        self.calls = Gate("unary calls", limits.unary_calls_max)
        self._health_watches = Gate("health watches", HEALTH_WATCHES_MAX)
        self._reads = MessageReads("client_messages", limits.message_seconds_max)
        self._policy = CallPolicy(
            node.cluster_id, self.calls, self._reads, self.closing, on_failure
        )
        own = [metadata.SERVICE_NAME, admin.SERVICE_NAME]
        if self.authentication is not None:
            own.append(authentication.SERVICE_NAME)
        self._service_names = (*own, *other_service_names)
        self.health = HealthBoard(self._service_names)

    def register(
        self, methods: ServedMethods, *, with_reflection: bool = True, with_channelz: bool = False
    ) -> None:
        """Add every service; the server needs ``SERVER_OPTIONS``.

        Raises:
            ConfigError: Channelz is not installed.
        """
        methods.add_generic_rpc_handlers(
            (self.metadata.handlers(self._policy), self.admin.handlers(self._policy))
        )
        if self.authentication is not None:
            methods.add_generic_rpc_handlers((self.authentication.handlers(self._policy),))
        foreign = ForeignServices(
            methods, self._policy.cluster_id, self._reads, self._health_watches
        )
        self.health.register(foreign)
        if with_channelz:
            add_channelz(foreign)
        if with_reflection:
            names = (*self._service_names, HEALTH_SERVICE_NAME, reflection.SERVICE_NAME)
            add_ServerReflectionServicer_to_server(
                reflection.aio.ReflectionServicer(names), foreign
            )

    def quotas(self) -> tuple[FairShare, ...]:
        """Return the quotas that callers share, for metrics."""
        return (
            self.calls.places,
            self._reads.places,
            self.metadata.write_streams.places,
            self.metadata.read_streams.places,
            self.metadata.watches.open.places,
            self.held.places,
            self._health_watches.places,
            *([] if self.authentication is None else [self.authentication.exchanges.places]),
        )

    async def start(self) -> None:
        """Report the services as SERVING; the node is not ready until readiness is set."""
        await self.health.start()

    async def drain(self) -> None:
        """Report NOT_SERVING to probers: this node is stopping."""
        await self.health.drain()

    async def stop(self, seconds: float = ENDING_SECONDS_MAX) -> None:
        """End all calls with a status that directs their clients to other nodes; bounded in time.

        New calls are refused from now on.
        """
        self.closing.begin()
        await self.closing.all_ended(seconds)

    def close(self) -> None:
        """Release the node."""
        self.metadata.close()


__all__ = ["SERVER_OPTIONS", "ClientServices"]
