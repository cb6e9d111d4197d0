"""What client services may read from a replica: its image and the bounds of its log."""

from __future__ import annotations

from collections.abc import Callable

from quorate.replica.answering_leader import answering_leader
from quorate.replica.replica import Replica
from quorum.errors import (
    QuorumUsageError,
    RecordCodecError,
    ReplayError,
    StorageError,
    UnknownRecordError,
)
from quorum.incarnation import LogIncarnation
from quorum.types import Epoch, NodeId, OffsetAndEpoch, SnapshotId
from statemachine.image import MetadataImage
from statemachine.loading import load_checkpoint


class LogFacts:
    """The present values, read on the replica's thread; nothing is cached."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._node = replica.node

    @property
    def image(self) -> MetadataImage:
        """The committed and applied state."""
        return self._replica.controller.image

    @property
    def is_leader(self) -> bool:
        """Whether this node leads its epoch."""
        return self._node.is_leader

    @property
    def answering_leader(self) -> NodeId:
        """The leader that is shown; ``NO_NODE`` if none is known that answers."""
        return answering_leader(self._node)

    @property
    def log_start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""
        return self._node.log_start

    @property
    def log_end(self) -> OffsetAndEpoch:
        """Next offset to be given out and the epoch of the last record."""
        return self._node.log_end

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self._node.high_watermark

    @property
    def log_incarnation(self) -> LogIncarnation:
        """The incarnation of this log, by the voters record in force."""
        return self._node.voter_set_at(self._node.log_end_offset).incarnation

    @property
    def leader_epoch_start(self) -> int:
        """Where the current epoch begins in this log; the log end when it has not.

        Where the beginning was trimmed away, the last offset that was: it is of that epoch.
        """
        start, epoch = self._node.log_start, self._node.epoch
        if start.epoch == epoch:
            return start.offset - 1
        before = self._node.end_offset_for_epoch(epoch - 1)
        return start.offset if before is None else before.offset

    def end_offset_for_epoch(self, epoch: Epoch) -> OffsetAndEpoch | None:
        """The largest epoch at or below ``epoch`` and where it ends (279.1)."""
        return self._node.end_offset_for_epoch(epoch)

    def latest_snapshot(self) -> SnapshotId | None:
        """The newest sealed checkpoint."""
        known = self._node.snapshots
        return known[-1] if known else None

    def checkpoint_reading(self, at_least_offset: int) -> Callable[[], MetadataImage | None]:
        """Return a call that loads the lowest checkpoint at or above an offset and the log start.

        Records follow such a checkpoint without a gap. The call blocks, and may be made on any
        thread; it returns None if there is no such checkpoint, or if it cannot be read.
        """
        least = max(at_least_offset, self.log_start.offset)
        snapshots = self._replica.stores.snapshots
        found = next((each for each in self._node.snapshots if each.offset >= least), None)

        def read() -> MetadataImage | None:
            if found is None:
                return None
            try:
                reader = snapshots.reader(found)
                return load_checkpoint(found, reader.batches(), is_lasting=False).image
            except (StorageError, RecordCodecError, UnknownRecordError, ReplayError):
                return None

        return read

    def reading(self, offset: int, max_bytes: int, end_offset: int) -> bytes | Callable[[], bytes]:
        """Return whole batches from ``offset`` on, below ``end_offset``, or a call that reads them.

        At most ``max_bytes``, but at least one batch if there is one. A returned call blocks, may
        be made on any thread, and raises ``StorageError`` if the files cannot be read, or
        ``QuorumUsageError`` if the log no longer has ``offset``.
        """
        tail = self._replica.driver.tail
        data = tail.read(offset, max_bytes, end_offset)
        if data is not None:
            return data
        log, end_offset = self._replica.stores.log, min(end_offset, tail.start_offset)
        return lambda: log.read(offset, max_bytes, end_offset=end_offset)

    def digest_reading(self, offset: int) -> Callable[[], bytes]:
        """Return a call that reads the log digest below ``offset``; it returns none if unknown.

        The call blocks and may be made on any thread. What cannot be read is not known.
        """
        log = self._replica.stores.log

        def read() -> bytes:
            try:
                return log.digest_at(offset)
            except (StorageError, QuorumUsageError):
                return b""

        return read
