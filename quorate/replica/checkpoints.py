"""Writes a checkpoint of the image whenever one is due.

Capturing an image takes a reference, so the replica applies records while a worker writes the file
(630.18). The content depends on the log alone: the same position gives the same bytes on every
replica.

See: requirements 630.1, 630.4, 630.15-630.18; docs/architecture.md (A checkpoint).
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

from quorate.controller.controller import Controller
from quorate.replica.boot import Stores
from quorate.replica.checkpoint_proof import CheckpointProof
from quorate.replica.checkpoint_space import CheckpointSpace
from quorate.replica.host import ReplicaHost
from quorum.core.contract.events import CheckpointFailed
from quorum.core.contract.local_events import SnapshotCreated, SnapshotRemoved
from quorum.errors import DiskFullError, StorageError
from quorum.runtime.driver import Driver
from quorum.types import OffsetAndEpoch, SnapshotId
from snapshot.generator import CheckpointGenerator, CheckpointRequest, CheckpointTrigger
from snapshot.writer import CheckpointCancelled, CheckpointInfo
from statemachine.dump import DigestedValues

REPLACE_EVERY_MS = 1000
"""Retry interval for replacing a lost checkpoint while the disk is full."""

_NOTHING_WRITTEN = (CheckpointCancelled, CancelledError, DiskFullError)
"""Outcomes of a write that do not make the disk suspect."""


class CheckpointManager:
    """One per replica, owned by the driver's thread; at most one write under way."""

    def __init__(
        self,
        controller: Controller,
        driver: Driver,
        stores: Stores,
        host: ReplicaHost,
        trigger: CheckpointTrigger,
    ) -> None:
        self._controller = controller
        self._driver = driver
        self._host = host
        self._log = stores.log
        self._store = stores.snapshots
        self._generator = CheckpointGenerator(host.fs, stores.directory, host.clock)
        self.space = CheckpointSpace(host.fs, stores.directory, host.clock.now_ms)
        self._trigger = trigger
        self._proof = CheckpointProof(self._store, host, self.withdraw)
        self._is_cancelled = False
        self._writing: Future[CheckpointInfo] | None = None
        self._last_ms = host.clock.now_ms()
        self._former_ms = self._last_ms
        """The value to which ``_last_ms`` returns when the write under way fails."""

    @property
    def age_ms(self) -> int:
        """Time since this process began the last checkpoint that did not fail, or since it
        started.
        """
        return self._host.clock.now_ms() - self._last_ms

    def consider(self) -> None:
        """Write a checkpoint if one is due; called after images were published."""
        progress = self._controller.checkpoint
        changes, trigger = progress.changes, self._trigger
        is_due = trigger.is_due(
            bytes_since=progress.bytes_since,
            changed_records=changes.changed_records,
            snapshot_records=changes.snapshot_records,
            ms_since=None if trigger.interval_ms is None else self.age_ms,
        )
        if is_due and not (self._is_busy or self.space.is_waiting):
            self.write_now()

    def poll(self) -> None:
        """Retry one that found no space and is still due; replace the last one if it is lost.

        Called after every entry into the replica that finds one of the two. A missing one is
        written at most once a second.
        """
        if self.space.failures:
            self.consider()
        if self.is_missing and self.age_ms >= REPLACE_EVERY_MS and not self.space.is_waiting:
            self.write_now()

    @property
    def is_missing(self) -> bool:
        """Whether this replica must write a checkpoint so that replicas below its log start can
        catch up: the log is trimmed, and its last checkpoint was damaged or could not be read.
        """
        node = self._driver.node
        applied = self._controller.image.provenance.end_offset
        return node.lacks_snapshot and node.log_start.offset <= applied

    @property
    def _is_busy(self) -> bool:
        # A checkpoint loaded meanwhile resets the progress, not the worker.
        is_running = self._controller.checkpoint.is_capturing or self._generator.is_running
        return is_running or self._is_cancelled

    def write_now(self) -> SnapshotId | None:
        """Write one of the image as it is, due or not.

        Returns:
            Its id; None when one is under way, when the newest on offer is of this position,
            or while the log below it is not yet in this replica's own file; while the digest
            of that log is not known here, so that another replica's file would differ; when
            the disk has no room for one as large as the newest; or after ``cancel``.
        """
        image = self._controller.image
        provenance = image.provenance
        snapshot_id = OffsetAndEpoch(provenance.end_offset, provenance.epoch)
        progress = self._controller.checkpoint
        newest = self._store.latest()
        is_written = self._driver.node.flushed_end_offset >= snapshot_id.offset
        is_newer = newest is None or newest.offset < snapshot_id.offset
        if self._is_busy or not (is_written and (is_newer or self.is_missing)):
            return None
        # Later starts and other replicas load it, so corruption below a running node must not get
        # into it.
        log_digest = self._log.digest_at(snapshot_id.offset, prove=True)
        if not log_digest:
            return None
        size = self._store.size(newest) if newest is not None else 0
        # The log that the newest one covers may still be there; it must not be counted twice.
        covered = newest.offset if newest is not None else 0
        trimmed_bytes = self._log.covered_bytes(snapshot_id.offset, beside=covered)
        reserve = self.space.reserve_bytes(size, trimmed_bytes)
        shortage = self.space.shortage(size, reserve)
        if shortage:
            self._failed(snapshot_id, shortage)
            return None
        voter_set = self._driver.node.voter_set_at(snapshot_id.offset)
        values = DigestedValues(image, kafka=not self._controller.config.uses_native_codec)
        progress.capture()
        self._former_ms, self._last_ms = self._last_ms, self._host.clock.now_ms()
        future = self._generator.start(
            CheckpointRequest(
                snapshot_id,
                self._host.paced(values),
                provenance.timestamp_ms,
                log_digest=log_digest,
                kraft_version=1 if voter_set.voters else 0,
                voters=voter_set.voters,
                removed=voter_set.removed,
                incarnation=voter_set.incarnation,
                state_digest=values.digest,
                reserve_bytes=reserve,
            ),
            self._host.executor,
        )
        self._writing = future
        future.add_done_callback(
            lambda done: self._host.to_driver(lambda: self._finish(snapshot_id, done))
        )
        return snapshot_id

    @property
    def is_writing(self) -> bool:
        """Whether a checkpoint is being written, or none may be any more."""
        return self._is_busy

    @property
    def writing(self) -> Future[CheckpointInfo] | None:
        """The last write that was begun; None before the first one."""
        return self._writing

    def _finish(self, snapshot_id: SnapshotId, done: Future[CheckpointInfo]) -> None:
        failure = _failure_of(done)
        if isinstance(failure, StorageError):
            self._host.on_failure(failure)
            return
        progress = self._controller.checkpoint
        try:
            info = done.result()
        except _NOTHING_WRITTEN as error:
            self._last_ms = self._former_ms
            if progress.is_capturing:
                progress.abandon()
            if isinstance(error, DiskFullError):
                self._failed(snapshot_id, str(error))
            return
        self.space.succeeded()
        self._store.remember(info)
        if progress.is_capturing:
            progress.complete(info.records)
        self._driver.on_local_event(SnapshotCreated(info.snapshot_id, info.size_bytes))
        self._host.on_checkpoint(info)
        self.consider()

    def _failed(self, snapshot_id: SnapshotId, cause: str) -> None:
        self._host.on_event(CheckpointFailed(snapshot_id, cause, self.space.failed()))

    def withdraw(self, snapshot_id: SnapshotId, cause: str) -> None:
        """Quarantine a damaged checkpoint, offer it no longer, and write another one.

        Raises:
            StorageError: It could not be renamed.
        """
        if snapshot_id not in self._store.list():
            return
        self._store.quarantine(snapshot_id, cause)
        self._driver.on_local_event(SnapshotRemoved(snapshot_id))
        # It may be the one at which the trimmed log begins.
        self.write_now()

    @property
    def failure(self) -> BaseException | None:
        """Return the failure of the last write that was begun, if the node must stop because of it.

        It may have been a sync that failed, and after that nothing can be trusted. None as long as
        the write is under way. Any thread may ask.
        """
        return None if self._writing is None else _failure_of(self._writing)

    def stop_reading(self) -> Future[None] | None:
        """As ``CheckpointProof.stop``."""
        return self._proof.stop()

    def cancel(self) -> Future[CheckpointInfo] | None:
        """Begin no more, and cancel a write under way at its next batch; its file is removed.

        Returns:
            The last write that was begun, or None. It may be at its end already and succeed; when
            it is done, what follows of it has been given to ``to_driver``.
        """
        self._is_cancelled = True
        self._generator.cancel()
        return self._writing


def _failure_of(write: Future[CheckpointInfo]) -> BaseException | None:
    if not write.done() or write.cancelled():
        return None
    error = write.exception()
    return None if isinstance(error, _NOTHING_WRITTEN) else error
