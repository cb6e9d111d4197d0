"""Configuration values by resource: image, lookups, delta and replay."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

from immutables import Map

from statemachine.records import ConfigRecord
from statemachine.sections.map_delta import EMPTY_MAP, NestedMapDelta
from statemachine.sections.tracking import ChangeTracker

_CONFIG = ConfigRecord.API_KEY
_NO_VALUES: Map[str, str] = EMPTY_MAP

ConfigResource: TypeAlias = tuple[int, str]
"""Resource type and resource name."""


class ResourceType(IntEnum):
    """Kind of resource. A broker with an empty name is the cluster default."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigsView(Protocol):
    """Lookups that the configurations image and a delta over it answer alike."""

    def value(self, resource_type: int, resource_name: str, key: str) -> str | None:
        """Return the value set for exactly this resource."""

    def of(self, resource_type: int, resource_name: str) -> Map[str, str]:
        """Return all values set for exactly this resource; empty if there are none."""


def topic_value(configs: ConfigsView, topic: str, key: str) -> str | None:
    """Return a topic's value, else the cluster default's; None if neither is set."""
    value = configs.value(ResourceType.TOPIC, topic, key)
    return value if value is not None else configs.value(ResourceType.BROKER, "", key)


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    """Configurations at one position. A resource without values is absent."""

    resources: Map[ConfigResource, Map[str, str]] = EMPTY_MAP

    def value(self, resource_type: int, resource_name: str, key: str) -> str | None:
        """Return the value set for exactly this resource."""
        return self.resources.get((resource_type, resource_name), _NO_VALUES).get(key)

    def of(self, resource_type: int, resource_name: str) -> Map[str, str]:
        """Return all values set for exactly this resource; empty if there are none."""
        return self.resources.get((resource_type, resource_name), _NO_VALUES)


class ConfigsDelta:
    """Configurations under change."""

    __slots__ = ("_resources", "_tracker")

    def __init__(self, base: ConfigsImage, tracker: ChangeTracker) -> None:
        self._resources: NestedMapDelta[ConfigResource, str, str] = NestedMapDelta(base.resources)
        self._tracker = tracker

    def value(self, resource_type: int, resource_name: str, key: str) -> str | None:
        """Return the value set for exactly this resource."""
        return self._resources.find((resource_type, resource_name), key)

    def of(self, resource_type: int, resource_name: str) -> Map[str, str]:
        """Return all values set for exactly this resource; empty if there are none."""
        # A plain number: this may store the key, and checkpoints contain it.
        return self._resources.group((int(resource_type), resource_name))

    def settle(self) -> ConfigsImage:
        """Return the image as of now; the delta stays usable."""
        return ConfigsImage(self._resources.settle())

    def replay(self, record: ConfigRecord) -> None:
        """Set or delete a value. Deleting a value that is not set does nothing."""
        resource_type, resource_name, name = (
            record.resource_type,
            record.resource_name,
            record.name,
        )
        values = self._resources.open_group((resource_type, resource_name))
        old = values.get(name)
        value = record.value
        if value is None:
            if old is not None:
                values.pop(name)
                self._tracker.deleted((_CONFIG, resource_type, resource_name, name))
            return
        if old != value:
            values[name] = value
            if old is not None:
                self._tracker.modified((_CONFIG, resource_type, resource_name, name))
        self._tracker.stored(
            (_CONFIG, resource_type, resource_name, name), record.extra, existed=old is not None
        )

    def drop(self, resource_type: int, resource_name: str) -> None:
        """Delete all values of a resource."""
        # A plain number: see ``of``.
        for name in self._resources.drop_group((int(resource_type), resource_name)):
            self._tracker.deleted((_CONFIG, resource_type, resource_name, name))
