"""Committed positions of consumers, by group: image, lookups, delta and replay.

The image keeps the records themselves, so that a checkpoint loses none of their content.
"""

from __future__ import annotations

from dataclasses import dataclass

from immutables import Map

from quorum.errors import ReplayError
from statemachine.records import CommittedPositionRecord
from statemachine.sections.map_delta import EMPTY_MAP, MapDelta, ReadMap
from statemachine.sections.tracking import ChangeTracker

_POSITION = CommittedPositionRecord.API_KEY


class PositionsView:
    """Lookups that the positions of an image and a delta over it answer alike."""

    __slots__ = ()

    by_group: ReadMap[str, CommittedPositionRecord]

    def of(self, group: str) -> CommittedPositionRecord | None:
        """Return the position that a group has committed; None if none, or if it has expired."""
        return self.by_group.get(group)


@dataclass(frozen=True, slots=True)
class PositionsImage(PositionsView):
    """Committed positions at one position of the log."""

    by_group: Map[str, CommittedPositionRecord] = EMPTY_MAP


class PositionsDelta(PositionsView):
    """Committed positions under change."""

    __slots__ = ("_tracker", "by_group")

    by_group: MapDelta[str, CommittedPositionRecord]

    def __init__(self, base: PositionsImage, tracker: ChangeTracker) -> None:
        self.by_group = MapDelta(base.by_group)
        self._tracker = tracker

    def settle(self) -> PositionsImage:
        """Return the image as of now; the delta stays usable."""
        return PositionsImage(self.by_group.settle())

    def replay_commit(self, record: CommittedPositionRecord) -> None:
        """Set the position of a group."""
        old = self.by_group.get(record.group)
        if old is not None and old != record:
            self._tracker.modified((_POSITION, record.group))
        self.by_group.set(record.group, record)

    def replay_removal(self, group: str) -> None:
        """Forget the position of a group.

        Raises:
            ReplayError: It has none.
        """
        if group not in self.by_group:
            raise ReplayError(f"removal of the position of unknown group {group!r}")
        self.by_group.pop(group)
        self._tracker.deleted((_POSITION, group))
