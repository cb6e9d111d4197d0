"""Bounds of the peer transport, and the gRPC settings that must match on both sides.

Every queue, message, wait and retry of this package has its maximum here. A pair that only
works together (message sizes, keep-alive) is built from one constant for client and server.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from quorum.config import PAYLOAD_BYTES_MAX

ChannelOption: TypeAlias = tuple[str, int | str]

FRAME_VERSION_MIN: Final = 1
FRAME_VERSION_MAX: Final = 1
"""Frame layouts this release reads and writes, inclusive; agreed in the hello."""

HEADER_BYTES_MAX: Final = 64 << 10
"""Most bytes of a message beside the records or checkpoint bytes in it."""
MESSAGE_BYTES_MAX: Final = PAYLOAD_BYTES_MAX + HEADER_BYTES_MAX
"""Largest message either side accepts: 16 MiB. A Fetch answer holds at least one whole batch (8 MiB
by default), however little was asked for."""

REQUEST_BYTES_MAX: Final = 128 << 10
"""Largest message that the serving side of a stream or call accepts: records travel in answers,
and a request carries its fields alone. A stream may hold as much as that in a message that never
ends, until ``STREAM_SILENCE_S`` shows it: gRPC shows no handler that a message has begun."""

SNAPSHOT_PARTITIONS_MAX: Final = 100
"""Partitions that one FetchSnapshot may name."""

CLUSTER_ID_BYTES_MAX: Final = 255
DIGEST_BYTES_MAX: Final = 64
ENDPOINTS_MAX: Final = 16
HOST_BYTES_MAX: Final = 255
SUCCESSORS_MAX: Final = 128
RANGES_MAX: Final = 64
NAME_CHARACTERS_MAX: Final = 255

OUTBOX_FRAMES_MAX: Final = 1024
OUTBOX_BYTES_MAX: Final = 64 << 20
"""Per stream. A frame that does not fit is dropped and counted: the network may lose."""
OPEN_REQUESTS_MAX: Final = 256
"""Requests of one stream, or to one peer, without an answer yet; the oldest gives way."""
STREAMS_MAX: Final = 10_000
"""Inbound streams at a time (``QuorumConfig.observers_max``); further ones are refused."""
STREAMS_PER_CALLER_MAX: Final = 1024
"""Inbound streams of one caller: one address, or one certificate at one address."""
CHANNELS_OF_HINTS_MAX: Final = 16
"""Peers known from hints alone (a leader that a message named) that are connected to; the one
named first gives way. Voters and configured servers do not count."""
UNARY_CALLS_MAX: Final = 256
"""Unary calls of probes and other clients being answered at a time."""

RECONNECT_BACKOFF_S: Final = 0.05
"""Pause between attempts to reach a peer (ADR 8)."""
RECONNECT_BACKOFF_MAX_S: Final = 1.0
"""Where the pause ends after doubling, for failures that time alone does not mend fast:
names that do not resolve, timeouts."""
REFUSED_BACKOFF_MAX_S: Final = 5.0
"""Where it ends for refusals (another cluster or node, a copied disk): longer, because somebody
has to change something first, and short enough that nobody waits long for the effect."""
CONNECT_TIMEOUT_S: Final = 2.0
HELLO_TIMEOUT_S: Final = 5.0
STREAM_SILENCE_S: Final = 20.0
"""An inbound stream that brought nothing for so long is probed, and ended when it brings nothing
for as long again: its peer is gone, or has stalled in the middle of a message."""
REFUSAL_WINDOW_S: Final = 1.0
"""How long after an established stream broke a refused connect still counts as "immediate"."""
SUSPECT_RETRY_S: Final = 0.005
"""Pause within that window after a connect that was accepted and went no further: a dying
process's listener may outlive its streams by a moment."""
LAPSE_AFTER_S: Final = 60.0
"""An unreachable peer to which nothing was to be sent for this long is left alone until there
is: a removed voter, or this node's own address among the bootstrap servers."""
GOODBYE_S_MAX: Final = 0.2
"""How long an orderly stop waits for its goodbyes to leave."""
UNARY_WAIT_S_MAX: Final = 30.0
"""A unary call without a deadline, or with a longer one, is given up after this."""
REPEATED_LOG_S: Final = 60.0
"""The same complaint about the same peer is logged at most this often."""

STREAM_WINDOW_BYTES: Final = 64 << 10
"""Bytes of one stream that gRPC takes before a handler reads."""
CONNECTION_STREAMS_MAX: Final = 2048
"""Calls and streams of one connection at a time; HTTP/2 makes the client wait with more."""
HANDSHAKE_TIMEOUT_MS: Final = 5000
"""How long a connection may take to become one of TLS and HTTP/2."""

_KEEPALIVE_TIME_MS: Final = 30_000
_KEEPALIVE_TIMEOUT_MS: Final = 10_000
_MIN_PING_INTERVAL_MS: Final = 10_000

_SHARED_OPTIONS: tuple[ChannelOption, ...] = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
)

CLIENT_OPTIONS: tuple[ChannelOption, ...] = (
    *_SHARED_OPTIONS,
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.http2.max_pings_without_data", 0),
    # A peer is reached directly, whatever proxy the environment names for other traffic.
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # Channels to one address otherwise share a connection and its back-off, so that an attempt
    # after a failure would wait for a pause that is not ours.
    ("grpc.use_local_subchannel_pool", 1),
)

BOUNDED_SERVER_OPTIONS: tuple[ChannelOption, ...] = (
    # What a stream may send before anybody reads it. Growing this window by measuring the link
    # would let a stranger fill it on every stream.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", STREAM_WINDOW_BYTES),
    ("grpc.max_concurrent_streams", CONNECTION_STREAMS_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
)
"""What every server of ours, for peers or for clients, grants to a connection."""

SERVER_OPTIONS: tuple[ChannelOption, ...] = (
    *_SHARED_OPTIONS,
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    *BOUNDED_SERVER_OPTIONS,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
    # Without this a second process on the same port would silently take half the connections.
    ("grpc.so_reuseport", 0),
)
