"""Puts the bytes into answers: records for a Fetch, a slice of a file for FetchSnapshot.

The core names positions, here they are read. The bytes of a Fetch answer are read when the
core decided on them, so a truncation in between cannot change what the answer says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crc32c import crc32c

from quorum.core.contract.local_events import SnapshotRemoved
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
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

    def fill(self, message: Message) -> Message:
        """The message with the bytes it asks for; others come back as they are.

        Raises:
            StorageError: The log file could not be read.
        """
        if type(message) is FetchResponse and message.serve_bytes_max > 0:
            return self._with_records(message)
        if type(message) is FetchSnapshotResponse and message.serve_bytes_max > 0:
            return self._with_chunk(message)
        return message

    def _with_records(self, message: FetchResponse) -> FetchResponse:
        # As ``replace`` would do it, which takes three times as long for so many fields.
        return FetchResponse(
            message.request_id,
            message.error,
            message.leader_id,
            message.epoch,
            message.high_watermark,
            message.log_start_offset,
            records=self._read(
                message.serve_offset, message.serve_bytes_max, message.serve_end_offset
            ),
            read_round=message.read_round,
            leader_endpoints=message.leader_endpoints,
            path=message.path,
            leader_age_ms=message.leader_age_ms,
            contact_age_ms=message.contact_age_ms,
        )

    def _with_chunk(self, message: FetchSnapshotResponse) -> FetchSnapshotResponse:
        store = self._snapshots
        try:
            chunk = store.read_chunk(message.snapshot_id, message.position, message.serve_bytes_max)
            size = store.size(message.snapshot_id)
            digest = store.file_digest(message.snapshot_id)
        except StorageError:
            # The file went away or cannot be read: say so to the core, which stops offering it,
            # and to the replica, which asks Fetch again.
            self._on_removed(SnapshotRemoved(message.snapshot_id))
            return replace(message, error=ErrorCode.SNAPSHOT_NOT_FOUND, serve_bytes_max=0)
        return replace(
            message,
            chunk=chunk,
            chunk_crc=crc32c(chunk),
            size=size,
            file_digest=digest,
            serve_bytes_max=0,
        )
