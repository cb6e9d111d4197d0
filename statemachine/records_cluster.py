"""Records about brokers, controllers, features and the log's own bookkeeping (keys 0 to 29).

Field order, versions, tags and defaults follow docs/reference/record-types.md. Topics and
configurations are in ``records_topics``, security in ``records_security``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from quorum.types import ZERO_UUID
from statemachine.records_schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    MetadataRecord,
    Since,
    Tag,
    UInt16,
    UuidValue,
    WireStruct,
)


@dataclass(frozen=True, slots=True)
class ListenerEndpoint(WireStruct):
    """Address of one listener of a broker or controller."""

    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@dataclass(frozen=True, slots=True)
class SupportedFeature(WireStruct):
    """The range of levels of one feature that a node supports, both ends inclusive."""

    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@dataclass(slots=True)
class RegisterBrokerRecord(MetadataRecord):
    """A new or amended broker registration; replaces any previous one of that id."""

    API_KEY: ClassVar[int] = 0
    VERSION_MAX: ClassVar[int] = 4
    VERSION_STEPS = ((7, 1), (8, 2), (17, 3), (30, 4))
    IDENTITY = ("broker_id",)
    broker_id: Int32 = 0
    is_migrating_zk_broker: Annotated[bool, Since(2)] = False
    incarnation_id: UuidValue = ZERO_UUID
    broker_epoch: Int64 = 0
    end_points: tuple[ListenerEndpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: Annotated[bool, Since(1)] = False
    log_dirs: Annotated[tuple[UuidValue, ...], Since(3), Tag(0)] = ()
    cordoned_log_dirs: Annotated[tuple[UuidValue, ...] | None, Since(4), Tag(1)] = None


@dataclass(slots=True)
class UnregisterBrokerRecord(MetadataRecord):
    """Removes a registration; id and epoch must match."""

    API_KEY: ClassVar[int] = 1
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


@dataclass(slots=True)
class FenceBrokerRecord(MetadataRecord):
    """Old form of fencing. Carries no partition changes and none are derived from it."""

    API_KEY: ClassVar[int] = 7
    HISTORY = ("broker_id", "id")
    id: Int32 = 0
    epoch: Int64 = 0


@dataclass(slots=True)
class UnfenceBrokerRecord(MetadataRecord):
    """Old form of unfencing."""

    API_KEY: ClassVar[int] = 8
    HISTORY = ("broker_id", "id")
    id: Int32 = 0
    epoch: Int64 = 0


@dataclass(slots=True)
class FeatureLevelRecord(MetadataRecord):
    """The finalised level of a feature; 0 removes it."""

    API_KEY: ClassVar[int] = 12
    IDENTITY = ("name",)
    HISTORY = ("feature", "name")
    name: str = ""
    feature_level: Int16 = 0


@dataclass(slots=True)
class BrokerRegistrationChangeRecord(MetadataRecord):
    """A change to an existing registration; the epoch must match.

    ``fenced``: -1 unfence, 0 unchanged, 1 fence. ``in_controlled_shutdown``: 1 enters.
    """

    API_KEY: ClassVar[int] = 17
    VERSION_MAX: ClassVar[int] = 3
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Annotated[Int8, Tag(0)] = 0
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    log_dirs: Annotated[tuple[UuidValue, ...], Since(2), Tag(2)] = ()
    cordoned_log_dirs: Annotated[tuple[UuidValue, ...] | None, Since(3), Tag(3)] = None


@dataclass(slots=True)
class NoOpRecord(MetadataRecord):
    """Keeps the log moving while the cluster is idle."""

    API_KEY: ClassVar[int] = 20


@dataclass(slots=True)
class ZkMigrationStateRecord(MetadataRecord):
    """Legacy migration phase: 0 none, 1 pre-migration, 2 migration, 3 post-migration."""

    API_KEY: ClassVar[int] = 21
    IDENTITY = ()
    zk_migration_state: Int8 = 0


@dataclass(slots=True)
class BeginTransactionRecord(MetadataRecord):
    """Opens a metadata transaction (KIP-868)."""

    API_KEY: ClassVar[int] = 23
    HISTORY = ("entity", "name")
    name: Annotated[str | None, Tag(0)] = None


@dataclass(slots=True)
class EndTransactionRecord(MetadataRecord):
    """Commits the open metadata transaction."""

    API_KEY: ClassVar[int] = 24


@dataclass(slots=True)
class AbortTransactionRecord(MetadataRecord):
    """Discards the open metadata transaction."""

    API_KEY: ClassVar[int] = 25
    reason: Annotated[str | None, Tag(0)] = None


@dataclass(slots=True)
class RegisterControllerRecord(MetadataRecord):
    """Registers a controller's endpoints and feature ranges; replaces by id."""

    API_KEY: ClassVar[int] = 27
    IDENTITY = ("controller_id",)
    HISTORY = ("broker_id", "controller_id")
    controller_id: Int32 = 0
    incarnation_id: UuidValue = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: tuple[ListenerEndpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()


@dataclass(slots=True)
class UnregisterControllerRecord(MetadataRecord):
    """Removes a controller's registration, which must exist."""

    API_KEY: ClassVar[int] = 29
    HISTORY = ("broker_id", "controller_id")
    controller_id: Int32 = 0
