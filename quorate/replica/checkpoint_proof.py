"""Proves a checkpoint again when it is asked for from its beginning again.

A replica that fetched a checkpoint and found it damaged can only ask anew, and would be served the
same bytes until somebody read the file. So whoever serves it for the second time has it read by a
worker; one that is damaged is set aside and replaced. A crowd of observers that fetch the same
intact file costs one reading a minute.

See: 630.10; docs/operations/runbooks.md (Corruption-found), which finds the same without anybody
asking.
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
# A simulation has no handlers, and tells of damage in its own way.
_log.addHandler(logging.NullHandler())


class CheckpointProof:
    """One per replica, owned by the driver's thread; at most one reading under way.

    ``withdraw`` sets a damaged checkpoint aside, with the cause; called on the driver's thread.
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
        """From when on a checkpoint that was served before is read again; of those on disk."""
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
            # None that can still be asked for is forgotten, else each would be read every time.
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
        # Given up, it says nothing of the file, which is all that is asked of it.
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
