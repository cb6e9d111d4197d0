"""The running digest of every log is the digest of its batches (ADR 5)."""

from __future__ import annotations

from bisect import bisect_left

from quorum.core.contract.output import Append, Effect, QuarantineLog
from quorum.core.voters.majority import quorum_size
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.types import SnapshotId
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class HashChain(Invariant):
    """The digest at a log's end equals the fold of all batches below, computed here independently.

    It holds across rolls, cuts, restarts and checkpoints. The digest may be unknown only after
    corruption has damaged digests.
    """

    name = "hash-chain"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.folds: dict[tuple[int, int], frozenset[bytes]] = {
            (0, 0): frozenset((EMPTY_LOG_DIGEST,))
        }
        """Lawful digests by position: one value, unless a log was forged and other nodes fetched
        records from it before the forgery could be detected."""
        self.proven: dict[SnapshotId, bytes] = {}
        """Content of checkpoints whose digest was checked: all replicas write the same bytes."""
        self.of_forged_logs: dict[SnapshotId, bytes] = {}
        """Content of checkpoints that nodes with a forged log wrote, with that log's digest."""

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        folds, log = self.folds, seen.written
        for batch in batches:
            key = (batch.end_offset, batch.epoch)
            known = folds.get(key)
            if known is not None and not self.run_observer.forged:
                continue
            at = bisect_left(log.ends, batch.base_offset)
            before = folds.get((batch.base_offset, log.epochs[at]))
            if before is not None:
                folds[key] = (known or frozenset()).union(fold(each, batch.data) for each in before)

    def on_persisted(self, seen: Seen, effect: Effect) -> None:
        if type(effect) is Append:
            log = seen.replica.stores.log
            end = log.end
            self._check(seen, (end.offset, end.epoch), log.digest_at(end.offset))
        elif type(effect) is QuarantineLog and effect.is_history and self._is_outvoted(seen):
            # Lawful: only votes can tell which digest is the true one.
            self.run_observer.damaged(seen.id)

    def _is_outvoted(self, seen: Seen) -> bool:
        """Whether a majority of the voters has a forged history, on disk or fetched."""
        voter_ids = {voter.key.id for voter in seen.replica.node.voters}
        return len(voter_ids & self.run_observer.forged) >= quorum_size(len(voter_ids))

    def on_checkpoint(self, seen: Seen, snapshot_id: SnapshotId, content: bytes) -> None:
        if snapshot_id.offset and self.proven.get(snapshot_id) != content:
            position = (snapshot_id.offset, snapshot_id.epoch)
            digest = seen.replica.stores.snapshots.log_digest(snapshot_id)
            if self.of_forged_logs.get(snapshot_id) == content:
                # Fetched before the forgery could be detected, as records may be.
                self.run_observer.forged.add(seen.id)
                self.run_observer.damaged(seen.id)
            self._check(seen, position, digest)
            if digest in self.folds.get(position, ()):
                self.proven[snapshot_id] = content
            elif seen.id in self.run_observer.forged:
                self.of_forged_logs[snapshot_id] = content

    def _check(self, seen: Seen, position: tuple[int, int], digest: bytes) -> None:
        expected = self.folds.get(position, frozenset())
        is_right = not expected or digest in expected
        is_right = is_right or (not digest and self.run_observer.is_chain_damaged)
        if not is_right and seen.id not in self.run_observer.forged:
            self.fail(
                "the running digest differs from that of the batches",
                node=seen.id,
                position=position,
                found=digest.hex(),
                expected=" or ".join(sorted(each.hex() for each in expected)),
            )
