"""Equal snapshot id means equal bytes (ADR 6)."""

from __future__ import annotations

from hashlib import blake2b

from quorum.types import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class EqualCheckpoints(Invariant):
    """Checkpoints with equal ids are equal on all nodes, and end at a committed position.

    Only a node with a forged log may write another digest of that log into its checkpoint, because
    nothing on its disk shows the forgery.
    """

    name = "equal-checkpoints"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.digests: dict[SnapshotId, bytes] = {}
        self.contents: dict[SnapshotId, bytes] = {}
        """Of every checkpoint, as it was first written."""

    def on_checkpoint(self, seen: Seen, snapshot_id: SnapshotId, content: bytes) -> None:
        if seen.id not in self.run_observer.forged:
            self.contents.setdefault(snapshot_id, content)
            digest = blake2b(content).digest()
            self.require(
                self.digests.setdefault(snapshot_id, digest) == digest,
                "two files of one snapshot id differ",
                node=seen.id,
                snapshot=snapshot_id,
            )
        committed = self.run_observer.committed.chain_at(snapshot_id.offset)
        known = self.run_observer.positions.get((snapshot_id.offset, snapshot_id.epoch))
        self.require(
            snapshot_id == BOOTSTRAP_SNAPSHOT_ID or (known is not None and known == committed),
            "a checkpoint contains uncommitted records",
            node=seen.id,
            snapshot=snapshot_id,
        )
