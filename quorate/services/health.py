"""Health v1: one service name for each question of a prober.

``""`` is the process, ``"quorate.readiness"`` the readiness of this node for clients, and the name
of a gRPC service that service. A draining node reports NOT_SERVING before its listener closes.
"""

from __future__ import annotations

from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from quorate.services.foreign import ForeignServices

PROCESS = ""
READINESS = "quorate.readiness"

_Status = health_pb2.HealthCheckResponse.ServingStatus


class HealthBoard:
    """The state of the health service. Owned by the composition root, on the event loop."""

    def __init__(self, service_names: tuple[str, ...]) -> None:
        self._service_names = service_names
        self._servicer = health.aio.HealthServicer()

    def register(self, server: ForeignServices) -> None:
        """Add the health service to a server that has not started."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def start(self) -> None:
        """Report the process and its services as SERVING; readiness is set separately."""
        for name in (PROCESS, *self._service_names):
            await self._servicer.set(name, _Status.SERVING)
        await self._servicer.set(READINESS, _Status.NOT_SERVING)

    async def set_ready(self, *, is_ready: bool) -> None:
        """Set whether clients should use this node."""
        status = _Status.SERVING if is_ready else _Status.NOT_SERVING
        await self._servicer.set(READINESS, status)

    async def drain(self) -> None:
        """Report NOT_SERVING for everything from now on, whatever is set later."""
        await self._servicer.enter_graceful_shutdown()
