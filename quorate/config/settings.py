"""Every configuration key in one table: section, type, default, meaning, Kafka's equivalent.

Keys, types and defaults come from the section classes; what is added here is the text for
people. docs/reference/configuration.md shows the same table, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import get_args, get_type_hints

from quorate.config import sections
from quorate.config.server_config import ServerConfig
from quorate.controller import config as controller_config
from quorum import config as quorum_config
from quorum.log import config as log_config
from quorum.ranges import Range
from snapshot import config as snapshot_config

Value = int | float | bool | str | Path | tuple[str, ...] | None
_SCALARS = (bool, int, float, str, Path)

TABLE: dict[str, tuple[str, str]] = {
    "node.id": ("Number of this node, unique in the cluster.", "node.id"),
    "node.data_dir": ("Folder made by `quorate format`.", "metadata.log.dir"),
    "node.filesystem": ("module:Class that replaces the file system, for fault tests.", ""),
    "node.huge_pages": ("Move what was loaded at the start into huge pages (Linux 6.1 and later).",
                        ""),
    "listeners.client": ("host:port for clients.", "listeners"),
    "listeners.peer": ("host:port for replicas; empty: the client port serves both.",
                       "controller.listener.names"),
    "listeners.advertised_client": ("host:port that clients are told.", "advertised.listeners"),
    "listeners.advertised_peer": ("host:port that replicas are told.", "advertised.listeners"),
    "bootstrap.servers": ("host:port of nodes to ask for the leader.",
                          "controller.quorum.bootstrap.servers"),
    "bootstrap.unsafe_bootstrap_without": ("Ids of voters that epoch 1 does not wait for. If one "
                                           "of "
                                       "them has ever voted, two leaders and lost records.", ""),
    "bootstrap.voters": ("id@host:port of a fixed voter set, until one is in the log.",
                         "controller.quorum.voters"),
    "relay.enable": ("Serve other observers from this one; a voter ignores it.", ""),
    "relay.fetch_from": ("host:port of relays to fetch from, best first; empty: the leader.", ""),
    "cluster.record_codec": ("How metadata records are written: native (msgpack) or kafka; fixed "
                             "when a directory is formatted.", ""),
    "cluster.producer_window": ("Commands one producer may have open.",
                                "max.in.flight.requests.per.connection"),
    "cluster.batch_bytes_max": ("Largest batch of one command.",
                                "internal.metadata.max.batch.size.in.bytes"),
    "quorum.election_timeout_ms": ("Base of the election timer, drawn from [E, 2E).",
                                   "controller.quorum.election.timeout.ms"),
    "quorum.fetch_timeout_ms": ("Without a successful fetch for this long a voter campaigns.",
                                "controller.quorum.fetch.timeout.ms"),
    "quorum.election_backoff_max_ms": ("Longest pause of a named successor.",
                                       "controller.quorum.election.backoff.max.ms"),
    "quorum.fetch_max_wait_ms": ("How long an empty fetch is held.", "(fixed at 500)"),
    "quorum.fetch_bytes_max": ("Record bytes of one fetch between replicas.",
                               "controller.quorum.fetch.max.bytes"),
    "quorum.snapshot_response_bytes_max": (
        "Checkpoint bytes of one FetchSnapshot answer, all partitions together.",
        "replica.fetch.response.max.bytes"),
    "quorum.snapshot_chunk_bytes": ("Bytes of one slice of a checkpoint.",
                                    "controller.quorum.fetch.snapshot.max.bytes"),
    "quorum.request_timeout_ms": ("A peer's answer is given up after this.",
                                  "controller.quorum.request.timeout.ms"),
    "quorum.retry_backoff_ms": ("Pause after a failed answer.",
                                "controller.quorum.retry.backoff.ms"),
    "quorum.lost_leader_jitter_ms": ("Random pause after the leader's process was found gone.",
                                     ""),
    "quorum.lost_leader_retry_ms": ("Longest pause between fail-fast election rounds.", ""),
    "quorum.transfer_timeout_ms": (
        "How long a leader that hands over may keep writes waiting before it leads on.", ""),
    "quorum.disk_stall_ms": (
        "A disk that completes no write for this long is taken as hung: the node resigns.", ""),
    "quorum.process_pause_ms": (
        "A node this late to its own timer waits a little longer for the others; 0: never.", ""),
    "quorum.auto_join": (
        "An observer asks to become a voter, and removes an older entry of its number first "
        "(without `tls.node_name`: only at an address in `bootstrap.servers` of the leader).",
        "controller.quorum.auto.join.enable"),
    "quorum.observer_session_ms": ("A replica silent for this long no longer counts as live.",
                                   "(fixed at 5 min)"),
    "quorum.start_offset_lag_max_ms": ("Hold the log for slow replicas at most this long.",
                                       "metadata.start.offset.lag.time.max.ms"),
    "quorum.observers_max": ("Observers that a leader keeps track of.", ""),
    "quorum.held_fetches_max": ("Fetches held at the same time.", ""),
    "quorum.uncommitted_bytes_max": ("Bytes a leader appends beyond the high watermark.", ""),
    "quorum.pending_reads_max": ("Linearizable reads waiting for confirmation.", ""),
    "quorum.high_watermark_delay_ms": (
        "How long replicas may wait to hear of a commit that no new records follow, and with "
        "applying it while no read waits.", ""
    ),
    "quorum.append_delay_ms": (
        "How long new records may wait for replicas that no commit waits for.", ""
    ),
    "quorum.high_watermark_store_ms": ("How far the stored high watermark may lag behind.", ""),
    "quorum.snapshot_requests_max": ("FetchSnapshot requests under way at once.", ""),
    "quorum.relay_hops_max": ("Most relays between an observer and the leader.", ""),
    "quorum.relay_age_max_ms": (
        "A relay that cannot tell that the leader led within this time stops serving.", ""),
    "quorum.relay_patience_ms": (
        "An observer whose relays all fail asks the leader after this, at most twice this.", ""),
    "quorum.relay_retry_ms": (
        "While it fetches from the leader an observer tries its relays this often.", ""),
    "quorum.unwritten_chunks_max": ("Downloaded slices that may wait for the disk.", ""),
    "controller.queue_commands_max": ("Commands waiting to be evaluated.", "queued.max.requests"),
    "controller.group_commands_max": ("Commands written as one group.", ""),
    "controller.group_bytes_max": ("Bytes at which a group is closed.", ""),
    "controller.groups_unflushed_max": ("Groups handed to the disk at the same time.", ""),
    "controller.groups_in_flight_max": ("Groups not yet committed.", ""),
    "controller.purgatory_max": ("Reads and waits for an offset held at the same time.", ""),
    "controller.session_timeout_ms": ("A broker silent for this long is fenced.",
                                      "broker.session.timeout.ms"),
    "controller.idle_interval_ms": ("Write a no-op after this much silence; 0: never.",
                                    "metadata.max.idle.interval.ms"),
    "controller.producer_expiration_ms": ("Forget a producer unused for this long.",
                                          "transactional.id.expiration.ms"),
    "controller.producer_expiry_check_ms": ("How often that is looked for.", ""),
    "log.segment_bytes": ("Size at which a log segment is closed.",
                          "metadata.log.segment.bytes"),
    "log.index_interval_bytes": ("Log bytes between two index entries.", "index.interval.bytes"),
    "log.scan_bytes": ("Bytes read at once when a segment is scanned.", ""),
    "snapshot.min_changed_records_ratio": (
        "Share of the newest checkpoint that must have changed before the next.",
        "metadata.snapshot.min.changed_records.ratio"),
    "snapshot.max_bytes_between": (
        "Log bytes since the newest checkpoint; both thresholds must be reached.",
        "metadata.log.max.record.bytes.between.snapshots"),
    "snapshot.interval_ms": ("Checkpoint at least this often if anything is new; 0: off.",
                             "metadata.log.max.snapshot.interval.ms"),
    "snapshot.lease_ms": ("A transfer idle for this long no longer keeps its file.", ""),
    "scrub.bytes_per_second": (
        "How fast the node reads its own files again in the background; 0: not at all.", ""),
    "scrub.pause_ms": ("Pause between two such passes; drawn from its upper half.", ""),
    "metrics.listen": ("host:port of /metrics, /livez and /readyz; empty: none.", ""),
    "tls.cert_file": ("PEM certificate chain of this node; empty: no TLS.",
                      "ssl.keystore.certificate.chain"),
    "tls.key_file": ("PEM private key of this node.", "ssl.keystore.key"),
    "tls.ca_file": ("PEM certificates that peers and clients are verified with.",
                    "ssl.truststore.certificates"),
    "tls.require_client_cert": ("Refuse clients without a certificate.", "ssl.client.auth"),
    "tls.node_name": (
        "Name in the certificate of node {id}, as node-{id}.example; empty: ids are believed.", ""),
    "limits.write_streams_max": ("Write streams open at the same time.", "max.connections"),
    "limits.watches_max": ("Watches open at the same time.", ""),
    "limits.unary_calls_max": ("Calls of clients being answered at the same time.", ""),
    "limits.write_streams_per_caller_max": (
        "Write streams of one address, or of one certificate at one address.",
        "",
    ),
    "limits.client_message_bytes_max": (
        "Largest message that is taken from a client; an import may need the most there is.",
        "socket.request.max.bytes",
    ),
    "limits.message_ms_max": (
        "How long a client's request, or the hello of a write stream, may take to arrive.", ""),
    "limits.write_stream_idle_ms_max": (
        "A write stream that brings nothing and is owed nothing for this long is ended; 0: never.",
        "connections.max.idle.ms"),
    "limits.disk_free_bytes_min": ("Free space below which the node is not ready.", ""),
    "limits.shutdown_ms_max": ("How long a stopping node hands over and drains.", ""),
    "logging.level": ("debug, info, warning or error.", "log4j2 level"),
    "logging.format": ("text or json.", "log4j2 layout"),
}  # fmt: skip
"""Dotted key -> (meaning, nearest key of Kafka)."""

_RANGES: Mapping[str, Mapping[str, Range]] = {
    **sections.RANGES,
    "quorum": quorum_config.RANGES,
    "controller": controller_config.RANGES,
    "log": log_config.RANGES,
    "snapshot": snapshot_config.RANGES,
}

# Identity and kraft.version come from the data directory; the others follow from [cluster].
_DERIVED = {
    "controller.cluster_id",
    "controller.kraft_version",
    "controller.uses_native_codec",
    "controller.producer_window",
    "controller.batch_bytes_max",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: ``section.name``, its type, default and text."""

    section: str
    name: str
    kind: type
    is_optional: bool
    """Whether the value may be absent; written as 0 or as an empty text."""
    default: Value
    help: str
    kafka: str
    range: Range | None = None
    """From where to where a number may lie, both included; None for what is no number."""

    @property
    def key(self) -> str:
        """The dotted key, as in ``--set``."""
        return f"{self.section}.{self.name}"

    @property
    def environment_name(self) -> str:
        """The variable that sets it."""
        return f"QUORATE__{self.section}__{self.name}".upper()


@cache
def settings() -> dict[str, Setting]:
    """All settings by dotted key, in the order of the file's sections."""
    found = {}
    for section, part_type in get_type_hints(ServerConfig).items():
        kinds = get_type_hints(part_type)
        for field in fields(part_type):
            key = f"{section}.{field.name}"
            if key in _DERIVED:
                continue
            if field.default is MISSING:
                raise TypeError(f"{key} has no default")
            meaning, kafka = TABLE.get(key, ("", ""))
            kind, is_optional = _plain_kind(kinds[field.name])
            found[key] = Setting(
                section, field.name, kind, is_optional, field.default, meaning, kafka,
                _RANGES[section].get(field.name) if section in _RANGES else None,
            )  # fmt: skip
    return found


def _plain_kind(annotation: object) -> tuple[type, bool]:
    """The scalar type behind an annotation (``tuple`` for lists), and whether None is allowed."""
    choices = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    for kind in _SCALARS:
        if kind in choices:
            return kind, NoneType in choices
    return tuple, NoneType in choices
