"""Leases of checkpoint files: which files transfers read, and their open descriptors.

A lease belongs to a file, not to a reader. The leader keeps no state per transfer, so a stalled
replica cannot hold disk space for longer than one lease. The caller passes the time in. See:
docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from quorum.ports import File
from quorum.types import SnapshotId


@dataclass(slots=True)
class _Lease:
    file: File
    size: int
    expires_at_ms: int
    readers: int = 0
    """Reads under way; they keep the descriptor open even after the lease expired."""


class LeaseTable:
    """Open files by snapshot, each kept until ``lease_ms`` after its last read.

    Any thread may call any method.
    """

    def __init__(self, lease_ms: int) -> None:
        """Keep files open for ``lease_ms`` after their last read."""
        self._lease_ms = lease_ms
        self._leases: dict[SnapshotId, _Lease] = {}
        self._lock = threading.Lock()

    def read(
        self,
        snapshot_id: SnapshotId,
        position: int,
        size: int,
        *,
        now_ms: int,
        open_file: Callable[[SnapshotId], File],
    ) -> bytes:
        """Return a chunk of the file; open it if necessary, and take or renew its lease.

        Raises:
            StorageError: From ``open_file`` or the read.
        """
        lease = self._taken(snapshot_id, now_ms, open_file)
        try:
            return lease.file.read_at(position, size)
        finally:
            with self._lock:
                lease.readers -= 1
                if lease.readers == 0 and self._leases.get(snapshot_id) is not lease:
                    lease.file.close()

    def _taken(
        self, snapshot_id: SnapshotId, now_ms: int, open_file: Callable[[SnapshotId], File]
    ) -> _Lease:
        with self._lock:
            lease = self._leases.get(snapshot_id)
            if lease is None:
                file = open_file(snapshot_id)
                lease = self._leases[snapshot_id] = _Lease(file, file.size(), now_ms)
            lease.expires_at_ms = now_ms + self._lease_ms
            lease.readers += 1
            return lease

    def size(self, snapshot_id: SnapshotId) -> int | None:
        """Return the size of a leased file; None if it is not leased."""
        lease = self._leases.get(snapshot_id)
        return None if lease is None else lease.size

    def held(self, now_ms: int) -> tuple[SnapshotId, ...]:
        """Return the snapshots with a valid lease, ascending; close those whose lease expired."""
        if not self._leases:
            return ()
        with self._lock:
            for snapshot_id, lease in list(self._leases.items()):
                if lease.expires_at_ms <= now_ms and lease.readers == 0:
                    del self._leases[snapshot_id]
                    lease.file.close()
            return tuple(sorted(self._leases, key=lambda found: (found.offset, found.epoch)))

    def drop(self, snapshot_id: SnapshotId) -> None:
        """End a lease now; a read under way finishes on its open descriptor."""
        with self._lock:
            lease = self._leases.pop(snapshot_id, None)
            if lease is not None and lease.readers == 0:
                lease.file.close()

    def close(self) -> None:
        """End every lease."""
        for snapshot_id in list(self._leases):
            self.drop(snapshot_id)
