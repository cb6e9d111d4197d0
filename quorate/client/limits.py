"""Bounds and keep-alive settings that client and server must agree on, named once.

The server's options live here too, because each is one half of a pair: a server that thinks a
client pings too often closes good connections (``too_many_pings``), and a message limit holds
only as far as the smaller side allows.
"""

from __future__ import annotations

from typing import TypeAlias

ChannelOption: TypeAlias = tuple[str, int | str]

IMPORT_BYTES_MAX = 8 << 20
"""Largest command that copies a batch of another cluster's metadata, which cannot be split."""

FRAMING_BYTES = 64 << 10
"""Upper bound, in bytes, of everything in a message besides records and other large contents."""

MESSAGE_BYTES_MAX = IMPORT_BYTES_MAX + FRAMING_BYTES
"""Largest message in either direction: the largest batch and its overhead."""

COMMAND_BYTES_MAX = 1 << 20
"""Largest command, as encoded for the wire."""

REQUEST_BYTES_MAX = COMMAND_BYTES_MAX + FRAMING_BYTES
"""Largest message that a server takes from a client, unless ``limits.client_message_bytes_max``
says more, as an import of larger batches needs it."""

FETCH_BYTES_MAX = 1 << 20
"""Most record bytes in one answer, beyond the one batch that is always given."""

COMMANDS_PER_MESSAGE_MAX = 1024
"""Most commands in one message of a write stream."""

COMMANDS_PER_STREAM_MAX = 8192
"""Most unanswered commands of one write stream."""

READS_PER_MESSAGE_MAX = 1024
"""Most queries in one message of a read stream."""

READ_MESSAGE_BYTES_MAX = 128 << 10
"""Largest message of a read stream; a larger query is a call of its own."""

READS_PER_STREAM_MAX = 4096
"""Maximum of unanswered queries of one read stream; at it, the server stops reading the stream."""

PRODUCER_WINDOW = 32
"""Most open commands of one producer: ``sequence < oldest_open + PRODUCER_WINDOW``."""

EPOCH_EXHAUSTED = 32_766
"""Last epoch of a producer id; after it the cluster replaces the id."""

WRITER_NAME_MAX = 255
"""Longest name of a writer, in characters."""

REQUEST_ID_BYTES_MAX = 255
"""Longest request id of a named writer, because it is kept."""

SEQUENCE_MAX = (1 << 31) - 1
"""Largest sequence number; a producer that has used it up is replaced."""

TEXT_BYTES_MAX = 1024
"""Longest client id, reason, request id or trace context."""

KEEPALIVE_TIME_MS = 30_000
KEEPALIVE_TIMEOUT_MS = 10_000
SERVER_PING_INTERVAL_MIN_MS = 10_000
"""The server tolerates pings this far apart: well below ``KEEPALIVE_TIME_MS``."""

CONNECT_TIMEOUT_MS = 2_000
"""gRPC calls this the minimal reconnect backoff, but bounds a connection attempt by it."""
RECONNECT_BACKOFF_MIN_MS = 20
RECONNECT_BACKOFF_MAX_MS = 250
RESOLUTION_PAUSE_MS = 500
"""Least time between two look-ups of a name. gRPC's own is 30 s, for which a client would try the
old address of a pod that came back with another one."""

_SHARED_OPTIONS: tuple[ChannelOption, ...] = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

CLIENT_OPTIONS: tuple[ChannelOption, ...] = (
    *_SHARED_OPTIONS,
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", RECONNECT_BACKOFF_MIN_MS),
    ("grpc.min_reconnect_backoff_ms", CONNECT_TIMEOUT_MS),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_BACKOFF_MAX_MS),
    ("grpc.dns_min_time_between_resolutions_ms", RESOLUTION_PAUSE_MS),
    # Each client has its own channel, not one that gRPC shares within the process.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)

SERVER_OPTIONS: tuple[ChannelOption, ...] = (
    *_SHARED_OPTIONS,
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.http2.min_ping_interval_without_data_ms", SERVER_PING_INTERVAL_MIN_MS),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", SERVER_PING_INTERVAL_MIN_MS),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.so_reuseport", 0),
)
