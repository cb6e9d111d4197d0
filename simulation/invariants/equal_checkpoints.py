"""Equal snapshot id means equal bytes (ADR 6)."""

from __future__ import annotations

from hashlib import blake2b

from quorum.types import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class EqualCheckpoints(Invariant):
    """Whoever wrote or downloaded it; and it ends at a committed position.

    Only a node whose log was forged may write another digest of that log into it: nothing on its
    disk says that it is not its own.
    """

    name = "equal-checkpoints"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.digests: dict[SnapshotId, bytes] = {}

    def on_checkpoint(self, seen: Seen, snapshot_id: SnapshotId, content: bytes) -> None:
        if seen.id not in self.run_observer.forged:
            digest = blake2b(content).digest()
            self.require(
                self.digests.setdefault(snapshot_id, digest) == digest,
                "two files of one checkpoint differ",
                node=seen.id,
                snapshot=snapshot_id,
            )
        committed = self.run_observer.committed.chain_at(snapshot_id.offset)
        known = self.run_observer.positions.get((snapshot_id.offset, snapshot_id.epoch))
        self.require(
            snapshot_id == BOOTSTRAP_SNAPSHOT_ID or (known is not None and known == committed),
            "a checkpoint of what is not committed",
            node=seen.id,
            snapshot=snapshot_id,
        )
