"""Committed batches as watch messages, converted once for all watchers at the same place.

Watchers hold positions, not queues: each asks for what follows its own offset when it is ready
for it. Memory is therefore bounded by this feed's cache, however slow a watcher is.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from quorate.services.ports import Cancel, ServedNode
from quorum.batch import BatchHeader, iterate_records, scan_batches
from quorum.v1 import metadata_pb2

CHANGE_BYTES_MAX = 256 << 10
"""Most record bytes turned into one message, beyond the one batch that is always taken."""
CACHED_MESSAGES_MAX = 32
"""Messages kept for other watchers that come by the same offset."""


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """One serialized ``WatchResponse`` with the changes [``base_offset``, ``end_offset``).

    Both are -1 when the log had nothing at the offset asked for.
    """

    data: bytes
    base_offset: int
    end_offset: int
    epoch: int


class ChangeFeed:
    """What happened from any offset on. One per node; lives on the event loop."""

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        self._cached: dict[int, asyncio.Task[ChangeMessage]] = {}
        self._published = asyncio.Event()
        self._cancel: Cancel = node.subscribe(self._on_published)

    def close(self) -> None:
        """Stop listening to the node."""
        self._cancel()

    def _on_published(self) -> None:
        self._published.set()
        self._published = asyncio.Event()

    async def wait_beyond(self, offset: int, seconds: float) -> bool:
        """Whether the image reached beyond ``offset`` within ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                while self._node.image.provenance.end_offset <= offset:
                    await self._published.wait()
        except TimeoutError:
            return False
        return True

    async def changes(self, offset: int) -> ChangeMessage:
        """Applied batches from the one containing ``offset`` on; ``offset`` must be applied.

        Raises:
            StorageError: The log could not be read, or what it holds is damaged.
        """
        task = self._cached.get(offset)
        if task is None:
            task = asyncio.create_task(self._convert(offset))
            self._cached[offset] = task
            if len(self._cached) > CACHED_MESSAGES_MAX:
                del self._cached[next(iter(self._cached))]
        try:
            # One watcher's end must not take the message away from the others.
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._cached.get(offset) is task:
                del self._cached[offset]
            raise

    async def _convert(self, offset: int) -> ChangeMessage:
        end_offset = self._node.image.provenance.end_offset
        data = await self._node.read_log(offset, CHANGE_BYTES_MAX, end_offset)
        response = metadata_pb2.WatchResponse()
        headers = scan_batches(data)
        for header in headers:
            response.changes.batches.append(change_batch(data, header))
        if not headers:
            return ChangeMessage(b"", -1, -1, -1)
        last = headers[-1]
        return ChangeMessage(
            response.SerializeToString(), headers[0].base_offset, last.end_offset, last.epoch
        )


def change_batch(data: bytes, header: BatchHeader) -> metadata_pb2.ChangeBatch:
    """One batch as watchers see it: positions, who and why, and the records' values.

    Raises:
        CorruptBatchError: The records are not what the header promises.
    """
    batch = metadata_pb2.ChangeBatch(
        base_offset=header.base_offset,
        end_offset=header.end_offset,
        epoch=header.epoch,
        timestamp_ms=header.max_timestamp,
        is_control=header.is_control,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        sequence=header.base_sequence,
    )
    if header.is_control:
        return batch
    records = iterate_records(data, header)
    batch.records.extend(record.value or b"" for record in records)
    for name, value in records[0].headers:
        batch.headers.add(name=name, value=value or b"")
    return batch
