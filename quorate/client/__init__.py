"""The client library. Depends on nothing of ours but the generated stubs in ``quorum.v1``.

Importing it changes nothing in the process. A program that wants the faster of gRPC's I/O engines
chooses it itself, before anything imports ``grpc`` (``quorum.transport.poller``;
docs/operations/client.md has an example).
"""

from quorate.client.batches import LogRecord
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
