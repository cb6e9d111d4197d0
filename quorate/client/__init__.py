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
    from quorate.client.credentials import scram_upsertion
    from quorate.client.errors import (
        ClientError,
        InvalidArgumentError,
        LogIncarnationError,
        LogTruncationError,
        NotServedError,
        OffsetOutOfRangeError,
        OutcomeUnknownError,
        PrecedingWriteFailedError,
        ProducerFencedError,
        ProtocolError,
        RefusedError,
        TruncationOffset,
        UnavailableError,
        WatchLaggedError,
    )
    from quorate.client.log_calls import LogState
    from quorate.client.log_consumer import LogConsumer, ResetPolicy
    from quorate.client.pending import Applied
    from quorate.client.positions import CommittedPosition
    from quorate.client.queries import LINEARIZABLE, LOCAL, at_least
    from quorate.client.watch import Watch, WatchEvent
    from quorate.client.writes import BROKER, TOPIC
    from quorum.log_position import LogPosition

__all__ = [
    "BROKER",
    "LINEARIZABLE",
    "LOCAL",
    "TOPIC",
    "Applied",
    "BlockingClient",
    "Client",
    "ClientError",
    "CommittedPosition",
    "InvalidArgumentError",
    "LogConsumer",
    "LogIncarnationError",
    "LogPosition",
    "LogRecord",
    "LogState",
    "LogTruncationError",
    "NotServedError",
    "OffsetOutOfRangeError",
    "OutcomeUnknownError",
    "PrecedingWriteFailedError",
    "ProducerFencedError",
    "ProtocolError",
    "RefusedError",
    "ResetPolicy",
    "TruncationOffset",
    "UnavailableError",
    "Watch",
    "WatchEvent",
    "WatchLaggedError",
    "at_least",
    "scram_upsertion",
]

_PLACES: Final = {
    "Applied": "pending",
    "BROKER": "writes",
    "BlockingClient": "blocking",
    "Client": "client",
    "ClientError": "errors",
    "CommittedPosition": "positions",
    "InvalidArgumentError": "errors",
    "LINEARIZABLE": "queries",
    "LOCAL": "queries",
    "LogConsumer": "log_consumer",
    "LogIncarnationError": "errors",
    "LogRecord": "batches",
    "LogState": "log_calls",
    "LogTruncationError": "errors",
    "NotServedError": "errors",
    "OffsetOutOfRangeError": "errors",
    "OutcomeUnknownError": "errors",
    "PrecedingWriteFailedError": "errors",
    "ProducerFencedError": "errors",
    "ProtocolError": "errors",
    "RefusedError": "errors",
    "ResetPolicy": "log_consumer",
    "TOPIC": "writes",
    "TruncationOffset": "errors",
    "UnavailableError": "errors",
    "Watch": "watch",
    "WatchEvent": "watch",
    "WatchLaggedError": "errors",
    "at_least": "queries",
    "scram_upsertion": "credentials",
}
"""The module of each name."""
_ELSEWHERE: Final = {"LogPosition": "quorum.log_position"}
"""The same, for what audits use as well."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES and name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _ELSEWHERE.get(name) or f"{__name__}.{_PLACES[name]}"
    found = getattr(import_module(place), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
