"""Turn the core's decisions into messages: read records for Fetch, a chunk for FetchSnapshot.

The core decides on positions; this module reads the bytes. It reads those of a Fetch answer when
the core decides on them, so a truncation in between cannot change the answer.
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
    """Reads the content of answers. Owned by one driver.

    Args:
        read: Returns whole batches, at least one, for ``(offset, max_bytes, end_offset)``.
        snapshots: Store of the files for FetchSnapshot.
        on_removed: Called for a checkpoint that can no longer be read.
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
        """Return the message to send for the core's decision; messages are returned unchanged.

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
            # The file was removed or is unreadable. Notify the core, which stops offering it, and
            # the replica, which goes back to Fetch.
            self._on_removed(SnapshotRemoved(snapshot_id))
            return decided.response(ErrorCode.SNAPSHOT_NOT_FOUND)
        return decided.response(size=size, chunk=chunk, chunk_crc=crc32c(chunk), file_digest=digest)
