"""The configuration of one server: all sections together.

Where the values are read from is ``quorate.config.load``'s work, what each key is for stands
in ``quorate.config.settings``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorate.config.sections import (
    BootstrapConfig,
    ClusterConfig,
    LimitsConfig,
    ListenerConfig,
    LoggingConfig,
    MetricsConfig,
    NodeConfig,
    RelayConfig,
    ScrubConfig,
    TlsConfig,
)
from quorate.config.security import SecurityConfig, exposure_problems, metrics_problems
from quorate.config.tracing import TracingConfig
from quorate.controller.config import ControllerConfig
from quorum.config import QuorumConfig
from quorum.errors import ConfigError
from quorum.log.config import LogConfig
from snapshot.config import SnapshotConfig


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of one server process. Sections are those of the file.

    ``controller.cluster_id`` is empty here: the identity comes from the data directory.
    """

    node: NodeConfig = field(default_factory=NodeConfig)
    listeners: ListenerConfig = field(default_factory=ListenerConfig)
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)
    relay: RelayConfig = field(default_factory=RelayConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    controller: ControllerConfig = field(default_factory=lambda: ControllerConfig(cluster_id=""))
    log: LogConfig = field(default_factory=LogConfig)
    snapshot: SnapshotConfig = field(default_factory=SnapshotConfig)
    scrub: ScrubConfig = field(default_factory=ScrubConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    tracing: TracingConfig = field(default_factory=TracingConfig)

    def controller_of(self, cluster_id: str) -> ControllerConfig:
        """The controller's settings for the cluster that the data directory belongs to."""
        return replace(
            self.controller,
            cluster_id=cluster_id,
            uses_native_codec=self.cluster.record_codec == "native",
            producer_window=self.cluster.producer_window,
            batch_bytes_max=self.cluster.batch_bytes_max,
        )

    def problems(self) -> list[str]:
        """Every impossible setting of all sections and between them, one sentence each."""
        found = self.node.problems() + self.listeners.problems() + self.bootstrap.problems()
        found += self.relay.problems() + self.cluster.problems()
        for section, part in (
            ("quorum", self.quorum),
            ("log", self.log),
            ("snapshot", self.snapshot),
        ):
            found += [f"{section}.{problem}" for problem in part.problems()]
        found += self.scrub.problems() + self.metrics.problems()
        found += self.tls.problems() + self.limits.problems() + self.logging.problems()
        found += self.security.problems(self.listeners, self.tls)
        found += exposure_problems(self.security, self.metrics)
        found += metrics_problems(self.metrics, self.tls) + self.tracing.problems()
        return found + self._clashes() + self._overdraft() + self._impatience()

    def validate(self) -> None:
        """Check everything at once.

        Raises:
            ConfigError: With every problem found.
        """
        found = self.problems()
        if found:
            raise ConfigError(found)

    def _overdraft(self) -> list[str]:
        """Groups that the controller may have open must fit what the core lets be uncommitted."""
        controller = self.controller
        largest = controller.group_bytes_max + self.cluster.batch_bytes_max
        if controller.groups_in_flight_max * largest <= self.quorum.uncommitted_bytes_max:
            return []
        return [
            f"quorum.uncommitted_bytes_max must be at least controller.groups_in_flight_max times "
            f"(controller.group_bytes_max + cluster.batch_bytes_max), "
            f"{controller.groups_in_flight_max * largest}, not {self.quorum.uncommitted_bytes_max}"
        ]

    def _impatience(self) -> list[str]:
        """A chain of idle relays, each waiting for the next, must not look disconnected. A replica
        whose answer was lost must still find the checkpoint.
        """
        quorum = self.quorum
        least = (quorum.relay_hops_max + 1) * quorum.fetch_max_wait_ms
        found = []
        if self.relay.enable and quorum.relay_age_max_ms < least:
            found.append(
                f"quorum.relay_age_max_ms must be at least (quorum.relay_hops_max + 1) times "
                f"quorum.fetch_max_wait_ms, {least}, not {quorum.relay_age_max_ms}"
            )
        if self.snapshot.lease_ms < quorum.request_timeout_ms:
            found.append(
                f"snapshot.lease_ms ({self.snapshot.lease_ms}) must be at least "
                f"quorum.request_timeout_ms ({quorum.request_timeout_ms}), or a checkpoint goes "
                "while a caller waits for a slice of it"
            )
        return found

    def _clashes(self) -> list[str]:
        used: dict[str, str] = {}
        found = []
        for key, text in (
            ("listeners.client", self.listeners.client),
            ("listeners.peer", self.listeners.peer),
            ("listeners.sasl", self.listeners.sasl),
            ("listeners.peer_tcp", self.listeners.peer_tcp),
            ("metrics.listen", self.metrics.listen),
        ):
            if not text or text.endswith(":0"):
                continue
            if text in used:
                found.append(f"{key} and {used[text]} cannot both listen on {text}")
            used[text] = key
        return found
