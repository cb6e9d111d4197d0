"""Verifies a checkpoint again when it is requested from its beginning again.

A replica that fetched a checkpoint and found it damaged can only request it again, and would be
served the same bytes until the server reads its file. So a node that serves a checkpoint for the
second time has it verified by a worker; a damaged one is quarantined and replaced. If many
observers fetch the same intact file, it is read once a minute.

See: 630.10; docs/operations/runbooks.md (Corruption-found), which finds the same without a request.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final

from quorate.replica.host import ReplicaHost
from quorum.errors import SnapshotCorruptError, StorageError
from quorum.types import SnapshotId
from snapshot.store import DirectorySnapshotStore

PROVE_EVERY_MS: Final = 60_000
_log = logging.getLogger(__name__)
# A simulation has no log handlers, and reports damage in its own way.
_log.addHandler(logging.NullHandler())


class CheckpointProof:
    """One per replica, owned by the driver's thread; at most one reading under way.

    ``withdraw`` quarantines a damaged checkpoint, with the cause; called on the driver's thread.
    """

    def __init__(
        self,
        store: DirectorySnapshotStore,
        host: ReplicaHost,
        withdraw: Callable[[SnapshotId, str], None],
    ) -> None:
        self._store = store
        self._host = host
        self._withdraw = withdraw
        self._due_ms: dict[SnapshotId, int] = {}
        """By checkpoint on disk: the earliest time at which it is verified again."""
        self._is_reading = False
        self._stopped = threading.Event()
        self._last: Future[None] | None = None
        store.on_begun = self._begun

    def stop(self) -> Future[None] | None:
        """Begin no more, and let a reading under way end at its next batch; it finds nothing.

        Returns:
            The last reading that was begun, or None.
        """
        self._stopped.set()
        return self._last

    def _begun(self, snapshot_id: SnapshotId) -> None:
        due_ms = self._due_ms.get(snapshot_id)
        if due_ms is None:
            # Keep all that can still be requested, otherwise each would be read every time.
            kept = {*self._store.list()} & self._due_ms.keys()
            self._due_ms = {each: self._due_ms[each] for each in kept}
            self._due_ms[snapshot_id] = 0
            return
        if self._is_reading or self._host.clock.now_ms() < due_ms or self._stopped.is_set():
            return
        self._due_ms[snapshot_id] = self._host.clock.now_ms() + PROVE_EVERY_MS
        self._is_reading = True
        self._last = future = self._host.executor.submit(self._read, snapshot_id)
        future.add_done_callback(
            lambda done: self._host.to_driver(partial(self._report, snapshot_id, done))
        )

    def _read(self, snapshot_id: SnapshotId) -> None:
        # The reading was cancelled, so nothing is known about the file.
        for _ in self._store.reader(snapshot_id).batches():
            if self._stopped.is_set():
                return

    def _report(self, snapshot_id: SnapshotId, done: Future[None]) -> None:
        self._is_reading = False
        if done.cancelled():
            return
        try:
            done.result()
        except SnapshotCorruptError as error:
            _log.error("event=checkpoint_damaged snapshot=%s cause=%s", snapshot_id, error)
            self._withdraw(snapshot_id, str(error))
        except StorageError as error:
            # Gone, or not readable just now: serving it reports that to the requester.
            _log.warning("event=checkpoint_unread snapshot=%s cause=%s", snapshot_id, error)
