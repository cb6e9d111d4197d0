"""The position of one watcher, and the changes it may get next. Does not wait, read or send.

Call ``begin`` or ``resume`` once. Then, whenever ``has_more``, read the changes at ``offset`` (or
take a copy that was read for another watcher), call ``evaluate``, send them and call ``advance``.
Between reading and evaluating, the log may be trimmed or replaced by a checkpoint. A watcher whose
offset is gone is refused with the readable range; it never gets changes after a gap.

See: docs/reference/protocol.md (services), KIP-320, requirement 320.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.services.change_message import ChangeMessage
from quorate.services.errors import RequestRefusedError
from quorate.services.log_range import LogRange
from quorate.services.ports import WatchedNode
from quorate.services.typed_records import add_record
from quorum.errors import ErrorCode
from quorum.v1 import metadata_pb2
from statemachine.codec import encode_record
from statemachine.dump import dump_native, dump_records
from statemachine.image import MetadataImage
from statemachine.records import lowest_version
from statemachine.redacted_records import without_secrets

STATE_BYTES_MAX: Final = 64 << 10
"""Bytes of records in one message of a state. Each is made on the event loop, in about 1 ms."""


class WatchCursor:
    """One watcher of one replica. Everything below ``offset`` was delivered to it."""

    def __init__(self, node: WatchedNode) -> None:
        self._node = node
        self._range = LogRange(node)
        self.offset = -1
        self.epoch = -1

    def begin(
        self,
        image: MetadataImage | None = None,
        *,
        is_typed: bool = False,
        with_secrets: bool = False,
    ) -> Iterator[metadata_pb2.WatchResponse]:
        """Yield the whole state, the present one unless one is given.

        The watcher's position is where that state ends: the next change begins exactly there.
        """
        image = self._node.image if image is None else image
        self.offset, self.epoch = image.provenance.end_offset, image.provenance.epoch
        return state_chunks(image, is_typed=is_typed, with_secrets=with_secrets)

    def resume(self, offset: int, epoch: int) -> None:
        """Continue at ``offset``; ``epoch`` is that of the record before it, -1 if unknown.

        Raises:
            RequestRefusedError: OFFSET_NOT_AVAILABLE or UNKNOWN_LEADER_EPOCH if this replica is
                behind the watcher, OFFSET_OUT_OF_RANGE with the readable range, and with the point
                of divergence if the watcher's history differs from this log.
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
        """Return the exclusive end of the committed and applied records, which watchers may see."""
        return node.image.provenance.end_offset

    @property
    def has_more(self) -> bool:
        """Return whether records after ``offset`` were applied."""
        return self.visible_end(self._node) > self.offset

    def check_kept(self) -> None:
        """Raise an error unless the log still contains ``offset``.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE with the readable range.
        """
        if self.offset < self._node.log_start.offset:
            raise self._range.out_of_range(self.offset)

    def evaluate(self, changes: ChangeMessage) -> None:
        """Raise an error unless the changes begin at ``offset`` or in the batch that contains it.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE with the readable range.
        """
        if not changes.base_offset <= self.offset < changes.end_offset:
            # The log no longer has the offset and returned later batches: never a silent gap.
            raise self._range.out_of_range(self.offset)

    def advance(self, changes: ChangeMessage) -> None:
        """Record that the changes were delivered."""
        self.offset, self.epoch = changes.end_offset, changes.epoch

    def progress(self) -> metadata_pb2.WatchResponse:
        """Return the watcher's position, to be sent without changes."""
        response = metadata_pb2.WatchResponse()
        response.progress.offset = self.offset
        response.progress.epoch = self.epoch
        response.progress.log_incarnation_number = self._node.log_incarnation.number
        response.progress.knows_no_leader = self._node.leadership.leader_id < 0
        return response


def state_chunks(
    image: MetadataImage, *, is_typed: bool = False, with_secrets: bool = False
) -> Iterator[metadata_pb2.WatchResponse]:
    """Yield the whole state as messages of about ``STATE_BYTES_MAX``; the last one is marked."""
    shown = None if with_secrets else without_secrets
    number = 0
    chunk = _chunk(image, number)
    size = 0
    values = dump_records(image) if is_typed else dump_native(image, lowest_version, shown)
    for each in values:
        if isinstance(each, bytes):
            value, record = each, None
        else:
            record = each if shown is None else shown(each)
            value = encode_record(record)
        if size + len(value) > STATE_BYTES_MAX and size:
            yield chunk
            number += 1
            chunk = _chunk(image, number)
            size = 0
        if record is None:
            chunk.state.records.append(value)
        else:
            add_record(chunk.state.typed_records.add(), record)
        size += len(value)
    chunk.state.is_last = True
    yield chunk


def _chunk(image: MetadataImage, number: int) -> metadata_pb2.WatchResponse:
    return metadata_pb2.WatchResponse(
        state=metadata_pb2.StateChunk(
            offset=image.provenance.end_offset, epoch=image.provenance.epoch, chunk=number
        )
    )
