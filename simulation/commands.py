"""Commands of simulated clients: configs, broker registrations, producer ids and topics."""

from __future__ import annotations

import random
from collections.abc import Mapping

from statemachine.commands import (
    AllocateProducerIds,
    BrokerHeartbeat,
    Command,
    ConfigChange,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    FeatureRange,
    IncrementalAlterConfigs,
    Listener,
    RegisterBroker,
    ResourceType,
    UnregisterBroker,
)
from statemachine.records import METADATA_VERSION

RESOURCES = 12
STRANGERS = "strangers"
"""The resource that no client writes to; only other principals do."""
BROKERS = 4
TOPICS = 6


class CommandMix:
    """Draws one client's commands. ``must_apply`` tells which of them must not be refused."""

    def __init__(self, cluster_id: str, rng: random.Random, name: int) -> None:
        self._cluster_id = cluster_id
        self._rng = rng
        self._name = name
        self._count = 0
        self._broker_epochs: dict[int, int] = {}

    @staticmethod
    def must_apply(command: Command) -> bool:
        """Return whether a refusal would be a bug: configs do not depend on other commands."""
        return isinstance(command, IncrementalAlterConfigs)

    def draw(self) -> Command:
        """Return the next command; most set configs."""
        self._count += 1
        roll = self._rng.random()
        if roll < 0.6:
            return self._setting()
        broker_id = 100 + self._rng.randrange(BROKERS)
        topic = f"t{self._rng.randrange(TOPICS)}"
        if roll < 0.68:
            return self._registration(broker_id)
        if roll < 0.73:
            broker_id = self._registered(broker_id)
            return AllocateProducerIds(broker_id, self._broker_epochs.get(broker_id, 0))
        if roll < 0.85:
            epoch = self._broker_epochs.get(broker_id, 0)
            return BrokerHeartbeat(broker_id, epoch, epoch, want_shutdown=self._rng.random() < 0.1)
        if roll < 0.92:
            return CreateTopic(topic, self._rng.randint(1, 3), self._rng.randint(1, 2))
        if roll < 0.96:
            return CreatePartitions(topic, self._rng.randint(2, 5))
        return DeleteTopic(topic) if roll < 0.985 else UnregisterBroker(broker_id)

    def learn(self, command: Command, result: Mapping[str, object]) -> None:
        """Record the parts of a result that later commands need."""
        epoch = result.get("broker_epoch")
        if isinstance(command, RegisterBroker) and isinstance(epoch, int):
            self._broker_epochs[command.broker_id] = epoch

    def _registered(self, broker_id: int) -> int:
        """Return that broker, or the next one that this client has registered, if any.

        Draws nothing.

        A broker requests producer ids only once it is registered. Another client may have
        registered it again since; then the request is refused.
        """
        for distance in range(BROKERS):
            each = 100 + (broker_id - 100 + distance) % BROKERS
            if each in self._broker_epochs:
                return each
        return broker_id

    def _setting(self) -> Command:
        value = f"{self._name}-{self._count}-{'x' * self._rng.randrange(60)}"
        return IncrementalAlterConfigs(
            int(ResourceType.CLIENT_METRICS),
            f"r{self._rng.randrange(RESOURCES)}",
            (ConfigChange("metrics", ConfigOperation.SET, value),),
        )

    def _registration(self, broker_id: int) -> Command:
        return RegisterBroker(
            broker_id,
            self._cluster_id,
            self._rng.randbytes(16),
            listeners=(Listener("PLAINTEXT", "broker", 9092),),
            features=(FeatureRange(METADATA_VERSION, 7, 33), FeatureRange("kraft.version", 0, 1)),
            log_dirs=(b"\x80" + self._rng.randbytes(15),),
        )
