"""The client library. Depends on nothing of ours but the generated stubs in ``quorum.v1``.

Importing it changes nothing in the process. It loads a module only when something of it is used,
because a server needs the client's limits, and not the client.

A program that wants the faster of gRPC's I/O engines chooses it itself, before anything imports
``grpc`` (``quorum.transport.poller``; docs/operations/client.md has an example).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from quorate.client.batches import LogRecord
    from quorate.client.blocking import BlockingClient
    from quorate.client.client import Client
    from quorate.client.errors import (
        ClientError,
        LogTruncationError,
        OffsetOutOfRangeError,
        OutcomeUnknownError,
        ProtocolError,
        RefusedError,
        UnavailableError,
        WatchLaggedError,
    )
    from quorate.client.log_consumer import LogConsumer, LogPosition, ResetPolicy
    from quorate.client.pending import Applied
    from quorate.client.queries import LINEARIZABLE, LOCAL, at_least
    from quorate.client.watch import Watch, WatchEvent
    from quorate.client.writes import BROKER, TOPIC

__all__ = [
    "BROKER",
    "LINEARIZABLE",
    "LOCAL",
    "TOPIC",
    "Applied",
    "BlockingClient",
    "Client",
    "ClientError",
    "LogConsumer",
    "LogPosition",
    "LogRecord",
    "LogTruncationError",
    "OffsetOutOfRangeError",
    "OutcomeUnknownError",
    "ProtocolError",
    "RefusedError",
    "ResetPolicy",
    "UnavailableError",
    "Watch",
    "WatchEvent",
    "WatchLaggedError",
    "at_least",
]

_PLACES: Final = {
    "Applied": "pending",
    "BROKER": "writes",
    "BlockingClient": "blocking",
    "Client": "client",
    "ClientError": "errors",
    "LINEARIZABLE": "queries",
    "LOCAL": "queries",
    "LogConsumer": "log_consumer",
    "LogPosition": "log_consumer",
    "LogRecord": "batches",
    "LogTruncationError": "errors",
    "OffsetOutOfRangeError": "errors",
    "OutcomeUnknownError": "errors",
    "ProtocolError": "errors",
    "RefusedError": "errors",
    "ResetPolicy": "log_consumer",
    "TOPIC": "writes",
    "UnavailableError": "errors",
    "Watch": "watch",
    "WatchEvent": "watch",
    "WatchLaggedError": "errors",
    "at_least": "queries",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
