"""Verify a checkpoint while its bytes arrive, in chunks of any size.

Readers and downloads share this incremental check, so a download is verified when its last byte
arrives, without a second pass.
See: KIP-630, requirement 630.9, docs/reference/formats.md#checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.batch import (
    PEEK_BYTES,
    BatchHeader,
    check_crc,
    iterate_records,
    peek_size,
    read_header,
)
from quorum.control import (
    SNAPSHOT_HEADER,
    DecodedControl,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    decode_control,
)
from quorum.control_records import KRaftVersion, Voters
from quorum.errors import CorruptBatchError, SnapshotCorruptError
from quorum.types import SnapshotId
from quorum.varint import Buffer
from snapshot.format import CheckpointHead, FileDigest


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """Content and size of a whole, verified checkpoint."""

    head: CheckpointHead
    footer: SnapshotFooter
    size_bytes: int
    records: int
    """Data records, control records not counted."""
    digest: bytes
    """The file digest; see ``format.FileDigest``."""


class CheckpointVerifier:
    """Verifies a checkpoint's bytes in order and stops at the first error.

    Owned by one reader or one download; not for sharing between threads.

    Invariants:
        1. Every byte fed lies in a verified batch or in ``_tail``, the beginning of the
           incomplete batch.
        2. After an error was raised, the object must not be used.
    """

    __slots__ = (
        "_body_bytes",
        "_digest",
        "_epoch",
        "_footer",
        "_head",
        "_next_offset",
        "_path",
        "_position",
        "_records",
        "_snapshot_id",
        "_tail",
    )

    def __init__(self, *, snapshot_id: SnapshotId | None = None, path: object = None) -> None:
        """Expect the epoch of ``snapshot_id`` if given, else that of the first batch.

        A header that names its checkpoint must name ``snapshot_id``.
        """
        self._path = path
        self._snapshot_id = snapshot_id
        self._epoch = None if snapshot_id is None else snapshot_id.epoch
        self._position = 0
        self._body_bytes = 0
        self._next_offset = 0
        self._records = 0
        self._tail = bytearray()
        self._head: CheckpointHead | None = None
        self._footer: SnapshotFooter | None = None
        self._digest = FileDigest()

    @property
    def head(self) -> CheckpointHead | None:
        """Content of the first batch; None until it was verified."""
        return self._head

    @property
    def body_bytes(self) -> int:
        """Bytes of the batches verified before the footer; also right after an error."""
        return self._body_bytes

    @property
    def received_bytes(self) -> int:
        """Bytes fed so far."""
        return self._position + len(self._tail)

    def feed(self, chunk: bytes) -> list[tuple[Buffer, BatchHeader]]:
        """Verify the next bytes and return the batches that they completed.

        Each comes as a buffer with its header in that buffer. The buffers are views that keep
        ``chunk`` in memory.

        Raises:
            SnapshotCorruptError: With file, position and cause.
        """
        view = memoryview(chunk)
        found: list[tuple[Buffer, BatchHeader]] = []
        try:
            used = self._complete_tail(view, found)
            while (size := peek_size(view, used)) is not None:
                if used + size > len(view):
                    break
                self._accept(view, used, found)
                used += size
        except CorruptBatchError as error:
            raise self._corrupt(error.cause) from error
        self._tail.extend(view[used:])
        return found

    def _complete_tail(self, view: memoryview, found: list[tuple[Buffer, BatchHeader]]) -> int:
        """Complete the batch that earlier chunks began; return the bytes of ``view`` it took."""
        tail = self._tail  # Extended in place: compiled, `+=` would make a copy (ADR 64).
        if not tail:
            return 0
        used = 0
        size = peek_size(tail)
        if size is None:
            # Take just enough to learn the size.
            used = min(PEEK_BYTES - len(tail), len(view))
            tail.extend(view[:used])
            size = peek_size(tail)
            if size is None:
                return used
        missing = size - len(tail)
        tail.extend(view[used : used + missing])
        used = min(used + missing, len(view))
        if len(tail) == size:
            self._tail = bytearray()
            self._accept(tail, 0, found)
        return used

    def _accept(self, data: Buffer, at: int, found: list[tuple[Buffer, BatchHeader]]) -> None:
        header = read_header(data, at)
        # Tested by another name, so that the test below is compiled as one (ADR 64).
        footer = self._footer
        if footer is not None:
            raise self._corrupt("a batch behind the footer")
        check_crc(data, header)
        self._digest.add(data, at)
        if header.base_offset != self._next_offset:
            raise self._corrupt(
                f"base offset {header.base_offset} where {self._next_offset} follows"
            )
        if self._epoch is None:
            self._epoch = header.epoch
        if header.epoch != self._epoch:
            raise self._corrupt(f"epoch {header.epoch} in a snapshot of epoch {self._epoch}")
        if header.is_control:
            self._accept_control(data, header)
        elif self._head is None:
            raise self._corrupt("the first batch is not a snapshot header")
        else:
            self._records += header.record_count
        self._next_offset = header.end_offset
        self._position += header.size
        if self._footer is None:
            self._body_bytes = self._position
        found.append((data, header))

    def _accept_control(self, data: Buffer, header: BatchHeader) -> None:
        decoded = [decode_control(record) for record in iterate_records(data, header)]
        first = decoded[0]
        if self._head is None:
            if isinstance(first, UnknownControl) and first.type == SNAPSHOT_HEADER:
                raise self._corrupt(f"header of unknown version {first.version}")
            if not isinstance(first, SnapshotHeader):
                raise self._corrupt("the first record is not a snapshot header")
            if first.end is not None and self._snapshot_id not in (None, first.end):
                raise self._corrupt(
                    f"this is checkpoint {first.end}, under the name of {self._snapshot_id}"
                )
            self._head = _head(first, decoded[1:])
        elif any(isinstance(record, SnapshotHeader) for record in decoded):
            raise self._corrupt("a second snapshot header")
        footers = [record for record in decoded if isinstance(record, SnapshotFooter)]
        if footers:
            if decoded[-1] is not footers[0]:
                raise self._corrupt("a record behind the footer")
            self._footer = footers[0]

    def finish(self) -> CheckpointSummary:
        """Conclude the verification after the last byte.

        Raises:
            SnapshotCorruptError: A batch is cut off, or header or footer is missing.
        """
        if self._tail:
            raise self._corrupt(f"the last batch is cut off after {len(self._tail)} bytes")
        if self._head is None:
            raise self._corrupt("the file is empty")
        if self._footer is None:
            raise self._corrupt("the file ends without a footer")
        return CheckpointSummary(
            self._head, self._footer, self._position, self._records, self._digest.value()
        )

    def _corrupt(self, cause: str) -> SnapshotCorruptError:
        return SnapshotCorruptError(
            f"corrupt checkpoint at position {self._position}: {cause}", self._path
        )


def _head(header: SnapshotHeader, others: list[DecodedControl]) -> CheckpointHead:
    kraft_version = 0
    voters = Voters(())
    for record in others:
        if isinstance(record, KRaftVersion):
            kraft_version = record.version
        elif isinstance(record, Voters):
            voters = record
    return CheckpointHead(
        header.last_contained_log_timestamp,
        header.digest,
        kraft_version,
        voters.voters,
        header.tagged,
        voters.tagged,
        voters.removed,
        header.end,
        voters.incarnation,
    )
