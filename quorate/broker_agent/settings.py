"""What an agent is told about its broker, and its times; defaults as in Kafka."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.features import SUPPORTED_FEATURES
from quorum.types import NodeId, Uuid
from quorum.v1.commands_pb2 import BrokerListener, RegisterBroker, SupportedFeature
from statemachine.sections.cluster import NO_EPOCH


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """One process run of a broker. Times are in seconds."""

    broker_id: NodeId
    cluster_id: str
    incarnation_id: Uuid
    """New at every start: it tells a bounced broker from one that was never away (380.5)."""
    listeners: tuple[BrokerListener, ...]
    log_dirs: tuple[Uuid, ...]
    rack: str | None = None
    previous_broker_epoch: int = NO_EPOCH
    """The epoch of a clean shutdown before this start; -1 after any other end."""
    heartbeat_seconds: float = 2.0
    """``broker.heartbeat.interval.ms``; a session lasts 9 s by default."""
    registration_seconds_max: float = 60.0
    """``initial.broker.registration.timeout.ms``. A broker that was killed is refused until the
    session of its former process has run out."""
    retry_seconds: float = 1.0
    """Between two attempts to register."""
    shutdown_seconds_max: float = 60.0
    """How long a controlled shutdown may take; then the process ends without it."""
    shutdown_beat_seconds: float = 0.2
    """Between two heartbeats of a controlled shutdown."""

    def registration(self) -> RegisterBroker:
        """Return the request to register."""
        return RegisterBroker(
            broker_id=self.broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=self.listeners,
            features=[
                SupportedFeature(
                    name=each.name, min_version=each.min_level, max_version=each.max_level
                )
                for each in SUPPORTED_FEATURES
            ],
            rack=self.rack,
            log_dirs=self.log_dirs,
            previous_broker_epoch=self.previous_broker_epoch,
        )
