"""Broker and controller registrations: image, lookups, delta and replay.

Invariant: the highest broker epoch never falls, also when its broker is unregistered (380.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from immutables import Map

from quorum.errors import ReplayError
from quorum.types import Uuid
from statemachine.records import (
    BrokerEpochRecord,
    BrokerRegistrationChangeRecord,
    ListenerEndpoint,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SupportedFeature,
)
from statemachine.sections.map_delta import EMPTY_MAP, MapDelta, ReadMap
from statemachine.sections.tracking import ChangeTracker

_BROKER = RegisterBrokerRecord.API_KEY
_CONTROLLER = RegisterControllerRecord.API_KEY
_EPOCH = BrokerEpochRecord.API_KEY

NO_EPOCH = -1
FENCE = 1
UNFENCE = -1
UNCHANGED = 0

DIRECTORY_MIGRATING: Uuid = bytes(16)
DIRECTORY_UNASSIGNED: Uuid = bytes(15) + b"\x01"
DIRECTORY_LOST: Uuid = bytes(15) + b"\x02"
RESERVED_DIRECTORY_IDS = 100
"""Directory ids below this number are stand-ins such as "unassigned" (KIP-858)."""


def is_reserved_directory(directory: Uuid) -> bool:
    """Whether an id stands for no directory of its own."""
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORY_IDS


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker as it is registered now."""

    id: int
    incarnation_id: Uuid
    epoch: int
    endpoints: tuple[ListenerEndpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Neither fenced nor shutting down: may be in an ISR and lead (320.7)."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def open_log_dirs(self) -> tuple[Uuid, ...]:
        """The directories that take new replicas."""
        cordoned = self.cordoned_log_dirs or ()
        return tuple([each for each in self.log_dirs if each not in cordoned])

    def has_online(self, directory: Uuid | None) -> bool:
        """Whether a replica in that directory can serve; True if None (not recorded)."""
        if directory is None or directory in (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED):
            return True
        if directory == DIRECTORY_LOST:
            return False
        return not self.log_dirs or directory in self.log_dirs


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """A controller's latest registration."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool = False
    endpoints: tuple[ListenerEndpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()


class ClusterView:
    """Lookups that the cluster image and a delta over it answer alike."""

    __slots__ = ()

    brokers: ReadMap[int, BrokerRegistration]
    controllers: ReadMap[int, ControllerRegistration]
    highest_broker_epoch: int
    """Highest epoch that any broker was registered with; -1 before the first."""

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """Return the registration of that broker."""
        return self.brokers.get(broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker is registered, not fenced and not shutting down."""
        found = self.brokers.get(broker_id)
        return found is not None and found.is_active


@dataclass(frozen=True, slots=True)
class ClusterImage(ClusterView):
    """Registrations at one position."""

    brokers: Map[int, BrokerRegistration] = EMPTY_MAP
    controllers: Map[int, ControllerRegistration] = EMPTY_MAP
    highest_broker_epoch: int = NO_EPOCH


class ClusterDelta(ClusterView):
    """Registrations under change."""

    __slots__ = ("_tracker", "brokers", "controllers", "highest_broker_epoch")

    def __init__(self, base: ClusterImage, tracker: ChangeTracker) -> None:
        self.brokers: MapDelta[int, BrokerRegistration] = MapDelta(base.brokers)
        self.controllers: MapDelta[int, ControllerRegistration] = MapDelta(base.controllers)
        self.highest_broker_epoch = base.highest_broker_epoch
        self._tracker = tracker

    def settle(self) -> ClusterImage:
        """Return the image as of now; the delta stays usable."""
        return ClusterImage(
            self.brokers.settle(), self.controllers.settle(), self.highest_broker_epoch
        )

    def replay_registration(self, record: RegisterBrokerRecord) -> None:
        """Register a broker or amend its registration."""
        key = (_BROKER, record.broker_id)
        new = BrokerRegistration(
            record.broker_id,
            record.incarnation_id,
            record.broker_epoch,
            record.end_points,
            record.features,
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            record.is_migrating_zk_broker,
            record.log_dirs,
            record.cordoned_log_dirs,
        )
        existed = record.broker_id in self.brokers
        self._store(key, record.broker_id, new)
        self._tracker.stored(key, record.extra, existed=existed)
        self.raise_broker_epoch(record.broker_epoch)

    def replay_removal(self, broker_id: int, epoch: int) -> None:
        """Unregister a broker.

        Raises:
            ReplayError: The broker is not registered, or with another epoch.
        """
        self.expect(broker_id, epoch)
        self.brokers.pop(broker_id)
        self._tracker.deleted((_BROKER, broker_id))

    def replay_change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Change a registration.

        Raises:
            ReplayError: The broker is not registered, or with another epoch, or a flag has a
                value outside -1, 0 and 1.
        """
        old = self.expect(record.broker_id, record.broker_epoch)
        if record.fenced not in (UNFENCE, UNCHANGED, FENCE):
            raise ReplayError(f"broker {old.id}: fenced flag {record.fenced}")
        if record.in_controlled_shutdown not in (0, 1):
            raise ReplayError(f"broker {old.id}: shutdown flag {record.in_controlled_shutdown}")
        cordoned = record.cordoned_log_dirs
        new = replace(
            old,
            fenced=old.fenced if record.fenced == UNCHANGED else record.fenced == FENCE,
            in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown == 1,
            log_dirs=record.log_dirs or old.log_dirs,
            cordoned_log_dirs=old.cordoned_log_dirs if cordoned is None else cordoned,
        )
        self._store((_BROKER, old.id), old.id, new)

    def set_fenced(self, broker_id: int, epoch: int, *, fenced: bool) -> None:
        """Set the fence flag of a broker.

        Raises:
            ReplayError: The broker is not registered, or with another epoch.
        """
        old = self.expect(broker_id, epoch)
        self._store((_BROKER, broker_id), broker_id, replace(old, fenced=fenced))

    def set_shutting_down(self, broker_id: int, epoch: int) -> None:
        """Mark a broker as being in controlled shutdown.

        Raises:
            ReplayError: The broker is not registered, or with another epoch.
        """
        old = self.expect(broker_id, epoch)
        self._store((_BROKER, broker_id), broker_id, replace(old, in_controlled_shutdown=True))

    def replay_controller(self, record: RegisterControllerRecord) -> None:
        """Register a controller."""
        key = (_CONTROLLER, record.controller_id)
        new = ControllerRegistration(
            record.controller_id,
            record.incarnation_id,
            record.zk_migration_ready,
            record.end_points,
            record.features,
        )
        old = self.controllers.get(record.controller_id)
        if old is not None and old != new:
            self._tracker.modified(key)
        self.controllers.set(record.controller_id, new)
        self._tracker.stored(key, record.extra, existed=old is not None)

    def replay_controller_removal(self, controller_id: int) -> None:
        """Remove a controller's registration.

        Raises:
            ReplayError: The controller is not registered.
        """
        if controller_id not in self.controllers:
            raise ReplayError(f"controller {controller_id} is not registered")
        self.controllers.pop(controller_id)
        self._tracker.deleted((_CONTROLLER, controller_id))

    def replay_highest_epoch(self, record: BrokerEpochRecord) -> None:
        """Set the highest broker epoch from a checkpoint."""
        existed = self.highest_broker_epoch != NO_EPOCH
        self.raise_broker_epoch(record.highest_broker_epoch)
        self._tracker.stored((_EPOCH,), record.extra, existed=existed)

    def raise_broker_epoch(self, epoch: int) -> None:
        """Keep ``epoch`` if it is the highest so far."""
        if epoch > self.highest_broker_epoch:
            if self.highest_broker_epoch != NO_EPOCH:
                self._tracker.modified((_EPOCH,))
            self.highest_broker_epoch = epoch

    def expect(self, broker_id: int, epoch: int) -> BrokerRegistration:
        """Return the registration of a broker with exactly this epoch.

        Raises:
            ReplayError: There is none.
        """
        found = self.brokers.get(broker_id)
        if found is None:
            raise ReplayError(f"broker {broker_id} (epoch {epoch}) is not registered")
        if found.epoch != epoch:
            raise ReplayError(f"broker {broker_id} has epoch {found.epoch}, not {epoch}")
        return found

    def _store(self, key: tuple[int, int], broker_id: int, new: BrokerRegistration) -> None:
        old = self.brokers.get(broker_id)
        if old == new:
            return
        self.brokers.set(broker_id, new)
        if old is not None:
            self._tracker.modified(key)
