"""The sections of a server's configuration, one frozen class each, with the rules about them.

``problems`` of every section returns one sentence per impossible setting, naming the key as it
is written in the file. What each key is for stands in ``quorate.config.settings``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from quorate.client.limits import IMPORT_BYTES_MAX, MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX
from quorate.config.addresses import WILDCARD_HOSTS, parse_address, parse_voter
from quorum.errors import ConfigError
from quorum.ranges import BYTES_MAX, CENTURY_MS, COUNT_MAX, HOUR_MS, Range, out_of_range
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

RANGES: Final[Mapping[str, Mapping[str, Range]]] = {
    "node": {"id": Range(0, NODE_ID_MAX)},
    "cluster": {
        "producer_window": Range(1, PRODUCER_WINDOW),
        "batch_bytes_max": Range(BATCH_BYTES_MAX_MIN, BATCH_BYTES_MAX_MAX),
    },
    "scrub": {
        "bytes_per_second": Range(0, BYTES_MAX),
        "pause_ms": Range(1000, CENTURY_MS),
    },
    "limits": {
        "write_streams_max": Range(1, COUNT_MAX),
        "watches_max": Range(1, COUNT_MAX),
        "unary_calls_max": Range(1, COUNT_MAX),
        "write_streams_per_caller_max": Range(1, COUNT_MAX),
        "client_message_bytes_max": Range(REQUEST_BYTES_MAX, MESSAGE_BYTES_MAX),
        "message_ms_max": Range(100, HOUR_MS),
        "write_stream_idle_ms_max": Range(0, CENTURY_MS),
        "disk_free_bytes_min": Range(0, 1 << 62),
        "shutdown_ms_max": Range(0, HOUR_MS),
    },
}
"""Every number of each section in this module."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Settings that every node must have equal: they decide what bytes mean or how they are cut.

    ``digest`` is compared when peers meet, so a node that differs is refused by name instead of
    writing other bytes than the rest.
    """

    record_codec: str = "native"
    producer_window: int = PRODUCER_WINDOW
    batch_bytes_max: int = BATCH_BYTES_MAX_MAX

    def digest(self) -> bytes:
        """BLAKE2b-128 over names and values of all settings, 16 bytes."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return blake2b(canonical.encode(), digest_size=16, person=b"quorate-cluster").digest()

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = _one_of("cluster.record_codec", self.record_codec, RECORD_CODECS)
        return found + out_of_range(self, RANGES["cluster"], "cluster.")


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Who this node is and where its files lie."""

    id: int = -1
    data_dir: Path = Path()
    filesystem: str = ""
    """``module:Class`` of a ``quorum.ports.FileSystem`` instead of the real one (fault tests)."""
    huge_pages: bool = True
    """Whether what was loaded at the start is moved into huge pages, where Linux can do that."""

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        if self.id < 0:
            found = ["node.id must be set, to a number of 0 or above"]
        else:
            found = out_of_range(self, RANGES["node"], "node.")
        if self.data_dir == Path():
            found.append("node.data_dir must be set, to the folder formatted for this node")
        module, colon, name = self.filesystem.partition(":")
        if self.filesystem and not (colon and _is_dotted(module) and name.isidentifier()):
            found.append(f"node.filesystem must be module:Class, not {self.filesystem!r}")
        return found


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Addresses listened on, and those told to others. All ``host:port``; port 0 picks one."""

    client: str = "127.0.0.1:9190"
    peer: str = ""
    """Empty: peers use the client port."""
    advertised_client: str = ""
    advertised_peer: str = ""
    """Empty: as listened on (the client's, when peers use the client port)."""

    @property
    def peer_address(self) -> str:
        """Where peers are listened for."""
        return self.peer or self.client

    @property
    def reached_by_clients_at(self) -> str:
        """What clients are told."""
        return self.advertised_client or self.client

    @property
    def reached_by_peers_at(self) -> str:
        """What peers are told."""
        if self.advertised_peer:
            return self.advertised_peer
        return self.peer or self.reached_by_clients_at

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = []
        for key in ("client", "peer", "advertised_client", "advertised_peer"):
            text = getattr(self, key)
            if text or key == "client":
                found += _address(f"listeners.{key}", text)
        for audience, text in (
            ("client", self.reached_by_clients_at),
            ("peer", self.reached_by_peers_at),
        ):
            if not _address("", text) and parse_address(text)[0] in WILDCARD_HOSTS:
                found.append(
                    f"listeners.advertised_{audience} must be set, because nobody can reach {text}"
                )
        return found


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """How to find the quorum before its voters are known from the log."""

    servers: tuple[str, ...] = ()
    voters: tuple[str, ...] = ()
    unsafe_bootstrap_without: tuple[str, ...] = ()
    """Ids of bootstrap voters that epoch 1 does not wait for."""

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
            found += _address("bootstrap.servers", text)
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

    enable: bool = False
    """Serve other observers."""
    fetch_from: tuple[str, ...] = ()
    """``host:port`` of relays, the preferred one first; empty: fetch from the leader."""

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = []
        for text in self.fetch_from:
            found += _address("relay.fetch_from", text)
        if len(set(self.fetch_from)) != len(self.fetch_from):
            found.append("relay.fetch_from names an address twice")
        if len(self.fetch_from) > RELAYS_MAX:
            found.append(f"relay.fetch_from names more than {RELAYS_MAX} relays")
        return found


@dataclass(frozen=True, slots=True)
class ScrubConfig:
    """Reading the own files again in the background, to find what has rotted."""

    bytes_per_second: int = 1 << 20
    """0: off."""
    pause_ms: int = 24 * 3600 * 1000
    """From the end of one pass to the next at most, and half of it at least."""

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        return out_of_range(self, RANGES["scrub"], "scrub.")


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """The endpoint of /metrics, /livez and /readyz."""

    listen: str = "127.0.0.1:9191"
    """Empty: no endpoint."""

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        return _address("metrics.listen", self.listen) if self.listen else []


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS of both gRPC listeners and of connections to peers. Empty paths: no TLS."""

    cert_file: Path = Path()
    key_file: Path = Path()
    ca_file: Path = Path()
    require_client_cert: bool = False
    node_name: str = ""

    @property
    def is_enabled(self) -> bool:
        """Whether listeners speak TLS."""
        return self.cert_file != Path()

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = []
        if (self.cert_file == Path()) != (self.key_file == Path()):
            found.append("tls.cert_file and tls.key_file must be set together")
        if self.is_enabled and self.ca_file == Path():
            found.append("tls.ca_file must be set with tls.cert_file, to verify peers")
        if self.require_client_cert and not self.is_enabled:
            found.append("tls.require_client_cert needs tls.cert_file")
        if self.node_name and not self.require_client_cert:
            found.append("tls.node_name needs tls.require_client_cert: callers show nothing else")
        try:
            names_by(self.node_name)
        except ConfigError as error:
            found += [f"tls.node_name: {problem}" for problem in error.problems]
        return found


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """Bounds of this process beyond those of the quorum and the controller."""

    write_streams_max: int = 1024
    watches_max: int = 1024
    unary_calls_max: int = 1024
    write_streams_per_caller_max: int = 128
    """A caller is an address, or a certificate's name at an address."""
    client_message_bytes_max: int = REQUEST_BYTES_MAX
    message_ms_max: int = 5000
    write_stream_idle_ms_max: int = 600_000
    """0: for ever."""
    disk_free_bytes_min: int = 256 << 20
    """Below it the node is not ready; it goes on writing for as long as it can."""
    shutdown_ms_max: int = 5000

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        return out_of_range(self, RANGES["limits"], "limits.")


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """The process log on standard error."""

    level: str = "info"
    format: str = "text"

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = _one_of("logging.level", self.level, LOG_LEVELS)
        return found + _one_of("logging.format", self.format, LOG_FORMATS)


def _address(key: str, text: str) -> list[str]:
    try:
        parse_address(text)
    except ValueError as error:
        return [f"{key}: {error}"]
    return []


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> list[str]:
    return [] if value in allowed else [f"{key} must be one of {', '.join(allowed)}, not {value!r}"]


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
