"""The position of one watcher, and the changes it may get next. Does not wait, read or send.

Call ``begin`` or ``resume`` once. Then, whenever ``has_more``, read the changes at ``offset`` (or
take a copy that was read for another watcher), call ``evaluate``, send them and call ``advance``.
Between reading and evaluating the log may be trimmed, or replaced by a checkpoint. A watcher whose
offset is gone is refused with the readable range. It never gets changes from behind a gap.

See: docs/reference/protocol.md (services), KIP-320, requirement 320.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from quorate.services.change_message import CHANGE_BYTES_MAX, ChangeMessage
from quorate.services.errors import RequestRefusedError
from quorate.services.log_range import KnownLog, LogRange
from quorum.errors import ErrorCode
from quorum.v1 import metadata_pb2
from statemachine.codec import encode_record
from statemachine.dump import dump_records
from statemachine.image import MetadataImage


class WatchedNode(KnownLog, Protocol):
    """What watching needs to know of a replica."""

    @property
    def image(self) -> MetadataImage:
        """The committed and applied state."""


class WatchCursor:
    """One watcher of one replica. Everything below ``offset`` was handed to it."""

    def __init__(self, node: WatchedNode) -> None:
        self._node = node
        self._range = LogRange(node)
        self.offset = -1
        self.epoch = -1

    def begin(self) -> Iterator[metadata_pb2.WatchResponse]:
        """The whole state, which is where the watcher is from now on."""
        image = self._node.image
        self.offset, self.epoch = image.provenance.end_offset, image.provenance.epoch
        return state_chunks(image)

    def resume(self, offset: int, epoch: int) -> None:
        """Continue at ``offset``; ``epoch`` is that of the record before it, -1 for unknown.

        Raises:
            RequestRefusedError: OFFSET_NOT_AVAILABLE or UNKNOWN_LEADER_EPOCH when this replica is
                behind the watcher, OFFSET_OUT_OF_RANGE with the readable range, and with the point
                of divergence if the watcher's history is not that of this log.
        """
        divergence = self._range.check_position(offset, epoch)
        if divergence is not None:
            raise RequestRefusedError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the watcher's history (offset {offset}, epoch {epoch}) differs from this log "
                f"from offset {divergence.offset} on",
                (divergence, self._range.bounds()),
            )
        self.offset, self.epoch = offset, epoch

    @staticmethod
    def visible_end(node: WatchedNode) -> int:
        """Where what watchers may see ends now: what is committed and applied."""
        return node.image.provenance.end_offset

    @property
    def has_more(self) -> bool:
        """Whether something was applied behind ``offset``."""
        return self.visible_end(self._node) > self.offset

    def check_kept(self) -> None:
        """Pass only while the log reaches back to ``offset``.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE with the readable range.
        """
        if self.offset < self._node.log_start.offset:
            raise self._range.out_of_range(self.offset)

    def evaluate(self, changes: ChangeMessage) -> None:
        """Pass only what follows ``offset``, or begins in the batch that it lies in.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE with the readable range.
        """
        if not changes.base_offset <= self.offset < changes.end_offset:
            # The log no longer has it and answered with what it has: never a silent gap.
            raise self._range.out_of_range(self.offset)

    def advance(self, changes: ChangeMessage) -> None:
        """They were handed out."""
        self.offset, self.epoch = changes.end_offset, changes.epoch

    def progress(self) -> metadata_pb2.WatchResponse:
        """How far the watcher is, for when nothing changes."""
        response = metadata_pb2.WatchResponse()
        response.progress.offset = self.offset
        response.progress.epoch = self.epoch
        return response


def state_chunks(image: MetadataImage) -> Iterator[metadata_pb2.WatchResponse]:
    """Yield the whole state as messages of about ``CHANGE_BYTES_MAX``; the last one is marked."""
    number = 0
    chunk = _chunk(image, number)
    size = 0
    for record in dump_records(image):
        value = encode_record(record)
        if size + len(value) > CHANGE_BYTES_MAX and size:
            yield chunk
            number += 1
            chunk = _chunk(image, number)
            size = 0
        chunk.state.records.append(value)
        size += len(value)
    chunk.state.is_last = True
    yield chunk


def _chunk(image: MetadataImage, number: int) -> metadata_pb2.WatchResponse:
    return metadata_pb2.WatchResponse(
        state=metadata_pb2.StateChunk(
            offset=image.provenance.end_offset, epoch=image.provenance.epoch, chunk=number
        )
    )
