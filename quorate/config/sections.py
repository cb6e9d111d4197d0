"""The sections of a server's configuration, one frozen class each, with the rules about them.

``problems`` of every section returns one sentence per impossible setting, naming the key as it
is written in the file. A field is declared once, with its range and its text for people
(``quorum.setting``); the command line and the documents show that.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from quorate.client.limits import IMPORT_BYTES_MAX, MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX
from quorate.config.addresses import address_problems
from quorate.config.listener_config import ListenerConfig as ListenerConfig
from quorate.config.voter_addresses import parse_voter
from quorum.errors import ConfigError
from quorum.setting import (
    BYTES_MAX,
    CENTURY_MS,
    COUNT,
    HOUR_MS,
    WAIT_OR_NONE,
    Range,
    out_of_range,
    setting,
)
from quorum.transport.node_names import names_by
from statemachine.sections.producers import PRODUCER_WINDOW

RECORD_CODECS = ("native", "kafka")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
RELAYS_MAX = 64
BATCH_BYTES_MAX_MIN = 64 << 10
BATCH_BYTES_MAX_MAX = IMPORT_BYTES_MAX
"""Beyond it an answer with one batch no longer fits a message to a client that reads the log."""
NODE_ID_MAX = (1 << 31) - 1
"""Node ids travel in 32 bits with a sign."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Settings that every node must have equal: they decide what bytes mean or how they are cut.

    ``digest`` is compared when peers meet, so a node that differs is refused by name instead of
    writing other bytes than the rest.
    """

    record_codec: str = setting(
        "native",
        "How metadata records are written: native (msgpack) or kafka; fixed when a directory is "
        "formatted.",
    )
    producer_window: int = setting(
        PRODUCER_WINDOW, "Commands one producer may have open.",
        Range(1, PRODUCER_WINDOW), kafka="max.in.flight.requests.per.connection",
    )  # fmt: skip
    batch_bytes_max: int = setting(
        BATCH_BYTES_MAX_MAX, "Largest batch of one command.",
        Range(BATCH_BYTES_MAX_MIN, BATCH_BYTES_MAX_MAX),
        kafka="internal.metadata.max.batch.size.in.bytes",
    )  # fmt: skip

    def digest(self) -> bytes:
        """BLAKE2b-128 over names and values of all settings, 16 bytes."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return blake2b(canonical.encode(), digest_size=16, person=b"quorate-cluster").digest()

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = _one_of("cluster.record_codec", self.record_codec, RECORD_CODECS)
        return found + out_of_range(self, "cluster.")


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The identity of this node and the place of its files."""

    id: int = setting(
        -1, "Number of this node, unique in the cluster.", Range(0, NODE_ID_MAX), kafka="node.id"
    )
    data_dir: Path = setting(Path(), "Folder made by `quorate format`.", kafka="metadata.log.dir")
    filesystem: str = setting("", "module:Class that replaces the file system, for fault tests.")
    huge_pages: bool = setting(
        True, "Move what was loaded at the start into huge pages (Linux 6.1 and later)."
    )

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        if self.id < 0:
            found = ["node.id must be set, to a number of 0 or above"]
        else:
            found = out_of_range(self, "node.")
        if self.data_dir == Path():
            found.append("node.data_dir must be set, to the folder formatted for this node")
        module, colon, name = self.filesystem.partition(":")
        if self.filesystem and not (colon and _is_dotted(module) and name.isidentifier()):
            found.append(f"node.filesystem must be module:Class, not {self.filesystem!r}")
        return found


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """How to find the quorum before its voters are known from the log."""

    servers: tuple[str, ...] = setting(
        (), "host:port of nodes to ask for the leader.", kafka="controller.quorum.bootstrap.servers"
    )
    voters: tuple[str, ...] = setting(
        (), "id@host:port of a fixed voter set, until one is in the log.",
        kafka="controller.quorum.voters",
    )  # fmt: skip
    unsafe_bootstrap_without: tuple[str, ...] = setting(
        (),
        "Ids of voters that epoch 1 does not wait for. If one of them has ever voted, two "
        "leaders and lost records.",
    )

    @property
    def missing_bootstrap_voters(self) -> tuple[int, ...]:
        """``unsafe_bootstrap_without`` as numbers."""
        return tuple(int(text) for text in self.unsafe_bootstrap_without)

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = [
            f"bootstrap.unsafe_bootstrap_without: {text!r} is not a node id"
            for text in self.unsafe_bootstrap_without
            if not text.isdecimal()
        ]
        for text in self.servers:
            found += address_problems("bootstrap.servers", text)
        ids = []
        for text in self.voters:
            try:
                ids.append(parse_voter(text).key.id)
            except ValueError as error:
                found.append(f"bootstrap.voters: {error}")
        if len(set(ids)) != len(ids):
            found.append("bootstrap.voters names a node id twice")
        return found


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """Observers behind observers. Both keys are ignored by a voter."""

    enable: bool = setting(False, "Serve other observers from this one; a voter ignores it.")
    fetch_from: tuple[str, ...] = setting(
        (), "host:port of relays to fetch from, best first; empty: the leader."
    )

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = []
        for text in self.fetch_from:
            found += address_problems("relay.fetch_from", text)
        if len(set(self.fetch_from)) != len(self.fetch_from):
            found.append("relay.fetch_from names an address twice")
        if len(self.fetch_from) > RELAYS_MAX:
            found.append(f"relay.fetch_from names more than {RELAYS_MAX} relays")
        return found


@dataclass(frozen=True, slots=True)
class ScrubConfig:
    """Reading the own files again in the background, to find what has rotted."""

    bytes_per_second: int = setting(
        1 << 20, "How fast the node reads its own files again in the background; 0: not at all.",
        Range(0, BYTES_MAX),
    )  # fmt: skip
    pause_ms: int = setting(
        24 * 3600 * 1000, "Pause between two such passes; drawn from its upper half.",
        Range(1000, CENTURY_MS),
    )  # fmt: skip

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        return out_of_range(self, "scrub.")


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """The endpoint of /metrics, /livez and /readyz."""

    listen: str = setting(
        "127.0.0.1:9191", "host:port of /metrics, /livez and /readyz; empty: none."
    )
    tls: bool = setting(False, "Serve it with TLS, by the files of tls.*.")
    token_file: Path = setting(Path(), "File with the bearer token for /metrics; empty: none.")

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        return address_problems("metrics.listen", self.listen) if self.listen else []


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS of both gRPC listeners and of connections to peers. Empty paths: no TLS."""

    cert_file: Path = setting(
        Path(), "PEM certificate chain of this node; empty: no TLS.",
        kafka="ssl.keystore.certificate.chain",
    )  # fmt: skip
    key_file: Path = setting(Path(), "PEM private key of this node.", kafka="ssl.keystore.key")
    ca_file: Path = setting(
        Path(), "PEM certificates that peers and clients are verified with.",
        kafka="ssl.truststore.certificates",
    )  # fmt: skip
    require_client_cert: bool = setting(
        False, "Refuse clients without a certificate.", kafka="ssl.client.auth"
    )
    node_name: str = setting(
        "", "Name in the certificate of node {id}, as node-{id}.example; empty: ids are believed."
    )
    observer_name: str = setting(
        "", "Name in the certificate of a node that must never vote, as observer-{id}.example."
    )
    key_password_file: Path = setting(
        Path(), "File of mode 0600 with the password of an encrypted key.", kafka="ssl.key.password"
    )
    crl_file: Path = setting(
        Path(), "PEM lists of revoked certificates, one for each authority; read again when it "
        "changes.",
    )  # fmt: skip

    @property
    def is_enabled(self) -> bool:
        """Whether listeners use TLS."""
        return self.cert_file != Path()

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = []
        if (self.cert_file == Path()) != (self.key_file == Path()):
            found.append("tls.cert_file and tls.key_file must be set together")
        if self.is_enabled and self.ca_file == Path():
            found.append("tls.ca_file must be set with tls.cert_file, to verify peers")
        found += [
            f"tls.{key} needs tls.cert_file"
            for key in ("key_password_file", "crl_file")
            if getattr(self, key) != Path() and not self.is_enabled
        ]
        if self.require_client_cert and not self.is_enabled:
            found.append("tls.require_client_cert needs tls.cert_file")
        if self.node_name and not self.require_client_cert:
            found.append("tls.node_name needs tls.require_client_cert: callers show nothing else")
        if self.observer_name and not self.node_name:
            found.append("tls.observer_name needs tls.node_name: without it every node may vote")
        if self.observer_name and self.observer_name.lower() == self.node_name.lower():
            found.append("tls.observer_name and tls.node_name must differ")
        for key, template in (("node", self.node_name), ("observer", self.observer_name)):
            try:
                names_by(template)
            except ConfigError as error:
                found += [f"tls.{key}_name: {problem}" for problem in error.problems]
        return found


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """Bounds of this process beyond those of the quorum and the controller."""

    streams_max: int = setting(
        1024,
        "Write streams open at the same time, and as many read streams.",
        COUNT,
        kafka="max.connections",
    )
    watches_max: int = setting(1024, "Watches open at the same time.", COUNT)
    unary_calls_max: int = setting(1024, "Calls of clients being answered at the same time.", COUNT)
    streams_per_caller_max: int = setting(
        128,
        "Write streams, and read streams, of one address, or of one certificate at one address.",
        COUNT,
    )
    client_message_bytes_max: int = setting(
        REQUEST_BYTES_MAX,
        "Largest message that is taken from a client; an import may need the most there is.",
        Range(REQUEST_BYTES_MAX, MESSAGE_BYTES_MAX),
        kafka="socket.request.max.bytes",
    )
    message_ms_max: int = setting(
        5000, "How long a client's request, or the first message of a stream, may take to arrive.",
        Range(100, HOUR_MS),
    )  # fmt: skip
    stream_idle_ms_max: int = setting(
        600_000,
        "A stream that brings nothing and is owed nothing for this long is ended; 0: never.",
        Range(0, CENTURY_MS),
        kafka="connections.max.idle.ms",
    )
    disk_free_bytes_min: int = setting(
        256 << 20,
        "Free space below which the node is not ready; it still writes.",
        Range(0, 1 << 62),
    )
    shutdown_ms_max: int = setting(
        5000, "How long a stopping node transfers leadership and drains.", WAIT_OR_NONE
    )

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        return out_of_range(self, "limits.")


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """The process log on standard error."""

    level: str = setting("info", "debug, info, warning or error.", kafka="log4j2 level")
    format: str = setting(
        "text",
        "text, or json: an object a line, with the fields of the event.",
        kafka="log4j2 layout",
    )

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = _one_of("logging.level", self.level, LOG_LEVELS)
        return found + _one_of("logging.format", self.format, LOG_FORMATS)


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> list[str]:
    return [] if value in allowed else [f"{key} must be one of {', '.join(allowed)}, not {value!r}"]


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
