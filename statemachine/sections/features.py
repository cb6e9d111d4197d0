"""Finalised feature levels and the legacy migration phase: image, lookups, delta, replay."""

from __future__ import annotations

from dataclasses import dataclass

from immutables import Map

from statemachine.records import (
    METADATA_VERSION,
    FeatureLevelRecord,
    ZkMigrationStateRecord,
)
from statemachine.sections.map_delta import EMPTY_MAP, MapDelta, ReadMap
from statemachine.sections.tracking import ChangeTracker

_FEATURE = FeatureLevelRecord.API_KEY
_MIGRATION = ZkMigrationStateRecord.API_KEY


class FeaturesView:
    """Lookups that the features image and a delta over it answer alike."""

    __slots__ = ()

    levels: ReadMap[str, int]
    """Finalised level by feature name; never 0."""
    zk_migration_state: int

    def level(self, name: str) -> int:
        """Return the finalised level of a feature; 0 if it is not finalised."""
        return self.levels.get(name, 0)

    @property
    def metadata_version(self) -> int:
        """The finalised metadata.version; 0 if there is none."""
        return self.levels.get(METADATA_VERSION, 0)


@dataclass(frozen=True, slots=True)
class FeaturesImage(FeaturesView):
    """Feature levels at one position."""

    levels: Map[str, int] = EMPTY_MAP
    zk_migration_state: int = 0


class FeaturesDelta(FeaturesView):
    """Feature levels under change."""

    __slots__ = ("_tracker", "levels", "zk_migration_state")

    def __init__(self, base: FeaturesImage, tracker: ChangeTracker) -> None:
        self.levels: MapDelta[str, int] = MapDelta(base.levels)
        self.zk_migration_state = base.zk_migration_state
        self._tracker = tracker

    def settle(self) -> FeaturesImage:
        """Return the image as of now; the delta stays usable."""
        return FeaturesImage(self.levels.settle(), self.zk_migration_state)

    def replay_level(self, record: FeatureLevelRecord) -> None:
        """Finalise a feature at a level; 0 removes it."""
        name, level = record.name, record.feature_level
        key = (_FEATURE, name)
        old = self.levels.get(name)
        if level == 0:
            if old is not None:
                self.levels.pop(name)
                self._tracker.deleted(key)
            return
        self.levels.set(name, level)
        if old is not None and old != level:
            self._tracker.modified(key)
        self._tracker.stored(key, record.extra, existed=old is not None)

    def replay_migration(self, record: ZkMigrationStateRecord) -> None:
        """Set the phase of the legacy migration; 0 means none."""
        key = (_MIGRATION,)
        old, new = self.zk_migration_state, record.zk_migration_state
        self.zk_migration_state = new
        if old and not new:
            self._tracker.deleted(key)
            return
        if old and old != new:
            self._tracker.modified(key)
        if new:
            self._tracker.stored(key, record.extra, existed=bool(old))
