"""Bounds of the peer transport, and the gRPC settings that must match on both sides.

Every queue, message, wait and retry of this package has its maximum here. Values that only
work together (message sizes, keep-alive) are built from one constant for client and server.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from quorum.config import PAYLOAD_BYTES_MAX

ChannelOption: TypeAlias = tuple[str, int | str]

FRAME_VERSION_MIN: Final = 1
FRAME_VERSION_MAX: Final = 1
"""Frame layouts that this release reads and writes, inclusive; agreed in the hello."""

HEADER_BYTES_MAX: Final = 64 << 10
"""Bound of a message's bytes besides its records or checkpoint bytes."""
MESSAGE_BYTES_MAX: Final = PAYLOAD_BYTES_MAX + HEADER_BYTES_MAX
"""Largest message either side accepts: 16 MiB. A Fetch answer holds at least one whole batch (8 MiB
by default), whatever limit the request names."""

REQUEST_BYTES_MAX: Final = 128 << 10
"""Largest message that the serving side of a stream or call accepts: records travel in answers, so
requests are small. A stream may hold this much of an incomplete message until ``STREAM_SILENCE_S``
ends it: gRPC does not report the start of a message to handlers."""

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
"""Per stream. A frame that does not fit is dropped and counted; the core repairs losses."""
OPEN_REQUESTS_MAX: Final = 256
"""Unanswered requests of one stream, or to one peer; a further one evicts the oldest."""
STREAMS_MAX: Final = 10_000
"""Concurrent inbound streams (``QuorumConfig.observers_max``); further ones are refused."""
STREAMS_PER_CALLER_MAX: Final = 1024
"""Inbound streams of one caller: one address, or one certificate at one address."""
CHANNELS_OF_HINTS_MAX: Final = 16
"""Connections to peers known from hints alone (a leader that a message named); a further one
closes the oldest. Voters and configured servers do not count."""
UNARY_CALLS_MAX: Final = 256
"""Concurrent unary calls of probes and other clients."""

RECONNECT_BACKOFF_S: Final = 0.05
"""Pause between attempts to reach a peer (ADR 8)."""
RECONNECT_BACKOFF_MAX_S: Final = 1.0
"""Maximum of the doubled pause for failures that may end at any moment: names that do not
resolve, timeouts."""
REFUSED_BACKOFF_MAX_S: Final = 5.0
"""Maximum for refusals (another cluster or node, a copied disk). It is longer because an operator
must act first, and short enough that the effect shows soon."""
CONNECT_TIMEOUT_S: Final = 2.0
HELLO_TIMEOUT_S: Final = 5.0
STREAM_SILENCE_S: Final = 20.0
"""An inbound stream that was silent for this long is probed, and ended after as much silence
again: its peer is gone, or has stalled in the middle of a message."""
REFUSAL_WINDOW_S: Final = 1.0
"""How long after the break of an established stream a refused connect proves a death."""
SUSPECT_RETRY_S: Final = 0.005
"""Pause in that window after a connect that was accepted and went no further: the listener of a
dying process may outlive its streams by a moment."""
LAPSE_AFTER_S: Final = 60.0
"""An unreachable peer without requests for this long is not retried until the next request: a
removed voter, or this node's own address among the bootstrap servers."""
GOODBYE_S_MAX: Final = 0.2
"""Bound of the wait for goodbyes in an orderly stop."""
UNARY_WAIT_S_MAX: Final = 30.0
"""Bound of a unary call without a deadline, or with a longer one."""
REPEATED_LOG_S: Final = 60.0
"""Minimum interval of the same log line about the same peer."""

STREAM_WINDOW_BYTES: Final = 64 << 10
"""Bytes of one stream that gRPC buffers before a handler reads."""
CONNECTION_STREAMS_MAX: Final = 2048
"""Concurrent calls and streams of one connection; HTTP/2 makes the client wait with more."""
HANDSHAKE_TIMEOUT_MS: Final = 5000
"""Bound of the TLS and HTTP/2 handshake of a connection."""
HANDSHAKES_MAX: Final = 512
"""TLS handshakes under way at the port of TCP streams; further connections are closed at once."""
CERTIFICATE_CHECKED_S: Final = 1.0
"""How often the certificate at the other end of an open stream is compared with the list of revoked
ones, where there is one."""
STATUS_BYTES_MAX: Final = 1024
"""Words of a status on a TCP stream."""
TCP_RETRY_S: Final = 60.0
"""How long gRPC is used for a process whose port of TCP streams could not be used."""
KEEPALIVE_TIME_MS: Final = 30_000
KEEPALIVE_TIMEOUT_MS: Final = 10_000
"""An idle connection is checked after the first, and ended after the second without an answer."""

_MIN_PING_INTERVAL_MS: Final = 10_000

_SHARED_OPTIONS: tuple[ChannelOption, ...] = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
)

CLIENT_OPTIONS: tuple[ChannelOption, ...] = (
    *_SHARED_OPTIONS,
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.http2.max_pings_without_data", 0),
    # Peers are reached directly, even if the environment names a proxy for other traffic.
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # Channels to one address otherwise share a connection and its back-off, and an attempt after a
    # failure would wait for gRPC's pause.
    ("grpc.use_local_subchannel_pool", 1),
)

BOUNDED_SERVER_OPTIONS: tuple[ChannelOption, ...] = (
    # Bytes that a stream may send before a handler reads. With probing, a stranger could grow this
    # window on every stream.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", STREAM_WINDOW_BYTES),
    ("grpc.max_concurrent_streams", CONNECTION_STREAMS_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
)
"""Limits of a connection to any server of ours, for peers or for clients."""

SERVER_OPTIONS: tuple[ChannelOption, ...] = (
    *_SHARED_OPTIONS,
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    *BOUNDED_SERVER_OPTIONS,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
    # Otherwise a second process on the same port would silently get half the connections.
    ("grpc.so_reuseport", 0),
)
