"""Counters of the transport, as plain numbers that metrics read on scrape."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TransportCounters:
    """Monotonic counts of one process. Owned by the event loop; any thread may read.

    A lost message is counted exactly once, under the reason of its loss.
    """

    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    malformed: int = 0
    """Bytes or messages that violate the protocol; each ends its stream or call."""
    hellos_refused: int = 0
    """Streams ended for a wrong cluster, node, digest or version, on either side."""
    refused_by_peers: int = 0
    """Outgoing streams that the peer ended with a refusal after the hellos."""
    clones_refused: int = 0
    """Streams of a second live process with one replica key: a copied disk."""
    impostors_refused: int = 0
    """Streams ended because the peer's certificate is another node's, on either side."""
    connects: int = 0
    """Outgoing streams that completed their hello."""
    tcp_connects: int = 0
    """Those of them that are TCP streams."""
    tcp_fallbacks: int = 0
    """Peers whose port of TCP streams could not be used, so that gRPC was."""
    connects_failed: int = 0
    hints_forgotten: int = 0
    """Channels closed because hints named more peers than the bound."""
    refusals: int = 0
    """Established streams that broke and whose reconnect was refused (ADR 8)."""
    requests_failed: int = 0
    responses_unmatched: int = 0
    """Responses to requests that were never sent, or are answered or abandoned."""
    responses_unroutable: int = 0
    """Responses whose stream or call was gone."""
    outbox_dropped: int = 0
    """Frames that were dropped because their stream's queue was full or they were too large."""
    routes_evicted: int = 0
    """Requests dropped because their sender had too many open."""
    streams_silent: int = 0
    """Inbound streams ended for silence: not even a probe was answered."""
    streams_rejected: int = 0
    """Streams and unary calls beyond their maximum number."""
