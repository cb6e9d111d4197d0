"""Execute write groups against the stores: many groups in one pass, with one log sync.

Blocking and without threads: ``quorum.runtime.writer`` runs it on the writer thread, the
simulator at its disk's scheduled time. The order of effects is kept exactly. Adjacent appends
become one write, and the log is synced once at the end of a pass (group commit). Election state is
durable before later effects of the pass are written, because an epoch must reach the disk before
its records do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from quorum.core.contract.local_events import (
    LocalEvent,
    SnapshotRejected,
    SnapshotRemoved,
    SnapshotSealed,
)
from quorum.core.contract.output import (
    AbandonDownload,
    AdvanceLogStart,
    Append,
    BeginDownload,
    Effect,
    QuarantineLog,
    ReplaceLogWith,
    SaveElectionState,
    SealDownload,
    StoreHighWatermark,
    Truncate,
    WriteChunk,
)
from quorum.core.messages.received_records import VotersAt
from quorum.errors import DiskFullError, SnapshotCorruptError
from quorum.ports import ElectionStore, LogStore, SnapshotStore
from quorum.runtime.ports import WriteDone, WriteGroup


class Persistence:
    """The only writer of a partition directory.

    Owned by one thread at a time. A ``StorageError`` from ``execute`` is final: the caller stops
    the node and never calls again (a failed fsync is not retried).
    """

    def __init__(
        self,
        log: LogStore,
        election: ElectionStore,
        snapshots: SnapshotStore,
        *,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._log = log
        self._election = election
        self._snapshots = snapshots
        self._stopwatch = stopwatch
        self._pending: list[Append] = []
        self._needs_flush = False
        self._high_watermark: int | None = None

    def execute(self, groups: Sequence[WriteGroup]) -> WriteDone:
        """Execute all groups in order and make them durable.

        Returns:
            The completion of the last group, with the local events of all.

        Raises:
            StorageError: A write or sync failed; the node must stop.
        """
        local_events: list[LocalEvent] = []
        for group in groups:
            for effect in group.effects:
                if type(effect) is Append:
                    self._pending.append(effect)
                else:
                    self._write_pending()
                    self._execute_other(effect, local_events)
        self._write_pending()
        sync_seconds = 0.0
        flushed = self._needs_flush
        if flushed:
            started = self._stopwatch()
            self._log.flush()
            sync_seconds = self._stopwatch() - started
            self._needs_flush = False
        if self._high_watermark is not None:
            # After the flush, so that the durable end stored with it covers this pass. A bound
            # that is too low is harmless. A full disk is therefore ignored here; the next append
            # decides whether the node can continue.
            with suppress(DiskFullError):
                self._log.store_high_watermark(self._high_watermark)
            self._high_watermark = None
        return WriteDone(groups[-1].ticket, tuple(local_events), flushed, sync_seconds)

    def _write_pending(self) -> None:
        pending = self._pending
        if not pending:
            return
        self._pending = []
        first = pending[0]
        data, epochs, headers = first.payload, first.epochs, first.headers
        if len(pending) > 1:
            data = b"".join([append.payload for append in pending if append.payload is not None])
            epochs = tuple([entry for append in pending for entry in append.epochs])
            headers = ()
        self._log.append(
            data or b"",
            base_offset=first.base_offset,
            end_offset=pending[-1].end_offset,
            epochs=epochs,
            headers=headers,
        )
        self._needs_flush = True

    def _execute_other(self, effect: Effect, local_events: list[LocalEvent]) -> None:
        match effect:
            case SaveElectionState(state=state):
                self._election.save(state)
            case Truncate(end_offset=end_offset):
                self._log.truncate_to(end_offset)
                self._needs_flush = True
            case StoreHighWatermark(high_watermark=high_watermark):
                self._high_watermark = high_watermark
            case AdvanceLogStart(start=start, delete=delete):
                self._log.advance_start(start)
                self._snapshots.delete(delete)
                local_events.extend(SnapshotRemoved(snapshot_id) for snapshot_id in delete)
            case ReplaceLogWith(snapshot_id=snapshot_id):
                self._log.replace_with(snapshot_id, digest=self._snapshots.log_digest(snapshot_id))
                self._needs_flush = True
            case QuarantineLog(first_offset=first_offset, cause=cause, is_history=is_history):
                if is_history:
                    self._log.quarantine(first_offset, cause)
            case _:
                self._execute_download(effect, local_events)

    def _execute_download(self, effect: Effect, local_events: list[LocalEvent]) -> None:
        match effect:
            case BeginDownload(snapshot_id=snapshot_id):
                self._snapshots.begin_download(snapshot_id)
            case WriteChunk(snapshot_id=snapshot_id, position=position, chunk=chunk):
                self._snapshots.write_chunk(snapshot_id, position, chunk)
            case AbandonDownload(snapshot_id=snapshot_id):
                self._snapshots.abandon_download(snapshot_id)
            case SealDownload(snapshot_id=snapshot_id, file_digest=file_digest):
                try:
                    voters = self._snapshots.seal_download(snapshot_id, file_digest)
                except SnapshotCorruptError as error:
                    local_events.append(SnapshotRejected(snapshot_id, str(error)))
                else:
                    at = VotersAt(
                        snapshot_id.offset - 1,
                        voters.voters,
                        voters.removed,
                        voters.incarnation,
                    )
                    found = (at,) if voters.voters else ()
                    size = self._snapshots.size(snapshot_id)
                    local_events.append(SnapshotSealed(snapshot_id, found, size))
