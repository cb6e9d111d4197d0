"""The entities that differ between two images, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from quorate.timetravel.entities import Entity, entities
from statemachine.image import MetadataImage
from statemachine.sections.tracking import RecordKey


class Change(StrEnum):
    """How an entity of the second image differs from the first."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Difference(NamedTuple):
    """One entity that differs."""

    change: Change
    before: Entity | None
    """None if it was added."""
    after: Entity | None
    """None if it was removed."""

    @property
    def entity(self) -> Entity:
        """The entity: its newer state, if there is one."""
        found = self.after if self.after is not None else self.before
        assert found is not None  # noqa: S101 - one of both is there
        return found

    def fields(self) -> dict[str, dict[str, object]]:
        """Return every field that differs, as ``{"before": …, "after": …}``; absent is None.

        Credentials that differ are named, and hidden.
        """
        before, after = _fields(self.before), _fields(self.after)
        old = _fields(self.before, show_secrets=True)
        new = _fields(self.after, show_secrets=True)
        return {
            name: {"before": before.get(name), "after": after.get(name)}
            for name in {**old, **new}
            if name not in old or name not in new or old[name] != new[name]
        }


def _fields(entity: Entity | None, *, show_secrets: bool = False) -> dict[str, object]:
    return {} if entity is None else entity.fields(show_secrets=show_secrets)


def differences(before: MetadataImage, after: MetadataImage) -> Iterator[Difference]:
    """Yield what differs: removed and changed entities in the order of ``before``, then added ones.

    A topic that was deleted and created again is another topic: it was removed, and added.
    Positions do not count, except the progress of an import.
    """
    remaining: dict[RecordKey, Entity] = {each.key: each for each in entities(after)}
    for old in entities(before):
        new = remaining.pop(old.key, None)
        if new is None:
            yield Difference(Change.REMOVED, old, None)
        elif new.record != old.record:
            yield Difference(Change.CHANGED, old, new)
    for new in remaining.values():
        yield Difference(Change.ADDED, None, new)
