"""Index of the sealed checkpoints of this replica: the newest, and those to delete.

See: KIP-630 (630.5, 630.6, 630.14).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quorum.types import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, SnapshotId


@dataclass(slots=True)
class IndexedSnapshot:
    """Size and age of one checkpoint file."""

    size: int
    """Bytes; 0 if unknown."""
    since_ms: int
    """Time of its arrival on this disk, by this process's clock: the start of the holding time of
    630.5. Negative for a checkpoint that is older than that clock.
    """


class SnapshotIndex:
    """Checkpoints by id, ascending by offset, then epoch. The bootstrap one is never served."""

    __slots__ = ("_known", "ids", "latest", "leased")

    def __init__(
        self,
        snapshot_ids: Sequence[SnapshotId] = (),
        sizes: Mapping[SnapshotId, int] | None = None,
        ages_ms: Mapping[SnapshotId, int] | None = None,
        *,
        now_ms: int = 0,
    ) -> None:
        self._known: dict[SnapshotId, IndexedSnapshot] = {}
        self.ids: tuple[SnapshotId, ...] = ()
        """All ids, ascending."""
        self.leased: tuple[SnapshotId, ...] = ()
        """Ids that transfers are reading now."""
        self.latest: SnapshotId | None = None
        """The newest checkpoint; None if there is none but the bootstrap one."""
        for snapshot_id in snapshot_ids:
            since_ms = now_ms - max(0, (ages_ms or {}).get(snapshot_id, 0))
            self.add(snapshot_id, (sizes or {}).get(snapshot_id, 0), now_ms=since_ms)

    def add(self, snapshot_id: SnapshotId, size: int, *, now_ms: int) -> None:
        """Add a checkpoint; update only the size of a known one."""
        known = self._known.get(snapshot_id)
        if known is not None:
            known.size = size or known.size
            return
        self._known[snapshot_id] = IndexedSnapshot(size, now_ms)
        self._order()

    def remove(self, snapshot_id: SnapshotId) -> None:
        """Remove a checkpoint; no effect if it is unknown."""
        self._known.pop(snapshot_id, None)
        self._order()

    def get(self, snapshot_id: SnapshotId) -> IndexedSnapshot | None:
        """Return the entry of a checkpoint; None if it is unknown."""
        return self._known.get(snapshot_id)

    def _order(self) -> None:
        # Precomputed, because every message needs both.
        self.ids = tuple(sorted(self._known, key=lambda each: (each.offset, each.epoch)))
        newest = self.ids[-1] if self.ids else BOOTSTRAP_SNAPSHOT_ID
        self.latest = None if newest == BOOTSTRAP_SNAPSHOT_ID else newest

    def deletable_below(self, log_start: OffsetAndEpoch) -> tuple[SnapshotId, ...]:
        """Return the ids below the log start, except the newest and the leased (630.6)."""
        return tuple(
            each
            for each in self.ids[:-1]
            if each.offset < log_start.offset and each not in self.leased
        )
