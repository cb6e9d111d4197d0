"""The checkpoint records that replay touched, and their unknown fields.

A record key names one record of the canonical dump: ``(api key of the dumped type, identity)``
with the identity's parts spread out, e.g. ``(3, topic id, partition)``. ``changes`` counts
them (630.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from immutables import Map

from statemachine.records import Extra
from statemachine.sections.map_delta import MapDelta, ReadMap

RecordKey: TypeAlias = tuple[Any, ...]


class ChangeTracker:
    """Collects touched record keys, and keeps the unknown fields of stored records.

    Owned by one ``ImageDelta`` and shared by its section deltas.
    """

    __slots__ = ("empty_records", "extras", "modified", "touched")

    def __init__(self, extras: Map[RecordKey, Extra]) -> None:
        self.touched: set[RecordKey] = set()
        self.modified = self.touched.add
        """Count a key's record as changed; it existed before."""
        self.empty_records = 0
        """Records without state: added to the log and at once superseded."""
        self.extras: ReadMap[RecordKey, Extra] = extras
        """Unknown fields by record. Opened when one changes, which is rare."""

    def stored(self, key: RecordKey, extra: Extra | None, *, existed: bool) -> None:
        """Replace a record's unknown fields by those of a replayed full-state record.

        If the record ``existed``, different unknown fields count as a modification.
        """
        if extra is None and not len(self.extras):
            return
        old = self.extras.get(key)
        if old == extra:
            return
        if extra is None:
            self._open_extras().pop(key)
        else:
            self._open_extras().set(key, extra)
        if existed:
            self.touched.add(key)

    def deleted(self, key: RecordKey) -> None:
        """Count the key's record as deleted; it existed before."""
        self.touched.add(key)
        if len(self.extras) and key in self.extras:
            self._open_extras().pop(key)

    def all_deleted(self, keys: Collection[RecordKey]) -> None:
        """Count the records of many keys as deleted; they existed before."""
        self.touched.update(keys)
        if len(self.extras):
            for key in keys:
                self.deleted(key)

    def settled_extras(self) -> Map[RecordKey, Extra]:
        """Return the unknown fields as of now; the tracker stays usable."""
        extras = self.extras
        return extras.settle() if isinstance(extras, MapDelta) else extras

    def revert(self, touched: Iterable[RecordKey], extras: Map[RecordKey, Extra]) -> None:
        """Restore an earlier state of the tracking."""
        self.touched.clear()
        self.touched.update(touched)
        self.extras = extras

    def _open_extras(self) -> MapDelta[RecordKey, Extra]:
        extras = self.extras
        if not isinstance(extras, MapDelta):
            extras = self.extras = MapDelta(extras)
        return extras
