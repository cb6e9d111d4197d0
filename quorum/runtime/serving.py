"""Makes messages of the core's decisions: reads records for Fetch, a chunk for FetchSnapshot.

The core names positions, here they are read. The bytes of a Fetch answer are read when the
core decided on them, so a truncation in between cannot change what the answer says.
"""

from __future__ import annotations

from collections.abc import Callable

from crc32c import crc32c

from quorum.core.contract.local_events import SnapshotRemoved
from quorum.core.messages.fetch_messages import FetchDecision, ServeRecords
from quorum.core.messages.message_types import Message, Outgoing
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse, ServeChunk
from quorum.errors import ErrorCode, StorageError
from quorum.ports import SnapshotStore


class Serving:
    """One driver's reading side.

    Args:
        read: ``(offset, max_bytes, end_offset)`` to whole batches, at least one.
        snapshots: Where the files of FetchSnapshot are.
        on_removed: Told of a checkpoint that cannot be read any more.
    """

    def __init__(
        self,
        read: Callable[[int, int, int], bytes],
        snapshots: SnapshotStore,
        on_removed: Callable[[SnapshotRemoved], None],
    ) -> None:
        self._read = read
        self._snapshots = snapshots
        self._on_removed = on_removed

    def message(self, decided: Outgoing) -> Message:
        """What travels for what the core decided; messages come back as they are.

        Raises:
            StorageError: The log file could not be read.
        """
        if isinstance(decided, FetchDecision):
            content = decided.content
            if not isinstance(content, ServeRecords):
                return decided.response()
            return decided.response(
                self._read(content.offset, content.bytes_max, content.end_offset)
            )
        if isinstance(decided, ServeChunk):
            return self._with_chunk(decided)
        return decided

    def _with_chunk(self, decided: ServeChunk) -> FetchSnapshotResponse:
        store, snapshot_id = self._snapshots, decided.snapshot_id
        try:
            chunk = store.read_chunk(snapshot_id, decided.position, decided.bytes_max)
            size, digest = store.size(snapshot_id), store.file_digest(snapshot_id)
        except StorageError:
            # The file went away or cannot be read: say so to the core, which stops offering it,
            # and to the replica, which asks Fetch again.
            self._on_removed(SnapshotRemoved(snapshot_id))
            return decided.response(ErrorCode.SNAPSHOT_NOT_FOUND)
        return decided.response(size=size, chunk=chunk, chunk_crc=crc32c(chunk), file_digest=digest)
