"""Layout of a checkpoint file: head batch, data batches, footer batch.

The layout is a pure function of the content. ``writer`` and ``store`` manage the files; the state
machine interprets the values.

Layout, all in record batches v2, uncompressed, base offsets counting from 0:

1. One control batch: ``SnapshotHeader``, which names the checkpoint's position, and from
   kraft.version 1 on ``KRaftVersion`` and, if there are voters, ``Voters``.
2. Data batches, cut by ``DATA_BATCH_BYTES`` and ``DATA_BATCH_RECORDS``.
3. One control batch: ``SnapshotFooter``. Nothing behind it.

Every batch carries the snapshot's epoch and, as its timestamp, the last contained log
timestamp.

Invariant: equal arguments give equal bytes, on every replica and in every release; the cut
sizes are therefore part of the format. See: KIP-630, ADR 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from quorum.batch import HEADER_BYTES, encode_batch
from quorum.control import SnapshotFooter, SnapshotHeader, WrittenControl, encode_control_batch
from quorum.control_records import KRaftVersion, Voters
from quorum.errors import QuorumUsageError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import ReplicaKey, SnapshotId, TaggedFields, Voter
from quorum.varint import Buffer

DATA_BATCH_BYTES = 256 << 10
"""A data batch is closed before a value that would make its values exceed this many bytes."""
DATA_BATCH_RECORDS = 8192
"""A data batch is closed when it holds this many records."""
FILE_DIGEST_BYTES = 16
"""Length of a file digest."""


class FileDigest:
    """Identifies a whole checkpoint file: BLAKE2b-128 over the headers of all its batches.

    A header contains the batch's size and the CRC-32C of the rest of the batch. The caller has
    checked both, so every byte of the file counts, at a tenth of the cost of hashing all bytes.
    """

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=FILE_DIGEST_BYTES, person=b"quorate-file")

    def add(self, data: Buffer, at: int = 0) -> None:
        """Add the batch at position ``at`` of ``data``; its checksum has been verified."""
        self._hash.update(memoryview(data)[at : at + HEADER_BYTES])

    def value(self) -> bytes:
        """Return the digest of the batches added so far."""
        return self._hash.digest()


@dataclass(frozen=True, slots=True)
class CheckpointHead:
    """Content of the first batch, which describes the whole file.

    ``tagged`` are further tagged fields of the header record, ``voters_tagged`` those of the
    voters record. ``log_digest`` is the running log digest at the snapshot's end offset.
    """

    last_contained_log_timestamp: int
    log_digest: bytes = b""
    kraft_version: int = 0
    voters: tuple[Voter, ...] = ()
    tagged: TaggedFields = ()
    voters_tagged: TaggedFields = ()
    removed: tuple[ReplicaKey, ...] = ()
    """The tombstones in the voters record."""
    end: SnapshotId | None = None
    """Id of the checkpoint; None in a file of Kafka or of an earlier release."""
    incarnation: LogIncarnation = FIRST_INCARNATION
    """That of the log, from the voters record."""

    def control_records(self) -> list[WrittenControl]:
        """Return the records of the first batch, in order.

        Raises:
            QuorumUsageError: There are voters below kraft.version 1, which cannot store them.
        """
        if self.voters and self.kraft_version < 1:
            raise QuorumUsageError(
                f"{len(self.voters)} voters in a checkpoint at kraft.version {self.kraft_version}"
            )
        records: list[WrittenControl] = [
            SnapshotHeader(
                self.last_contained_log_timestamp, self.log_digest, self.tagged, self.end
            )
        ]
        if self.kraft_version >= 1:
            records.append(KRaftVersion(self.kraft_version))
            if self.voters:
                records.append(
                    Voters(
                        self.voters,
                        self.voters_tagged,
                        self.removed,
                        incarnation=self.incarnation,
                    )
                )
        return records


def cut_values(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the values in order, grouped by batch."""
    group: list[bytes] = []
    group_bytes = 0
    for value in values:
        size = len(value)
        if group and (group_bytes + size > DATA_BATCH_BYTES or len(group) == DATA_BATCH_RECORDS):
            yield group
            group = []
            group_bytes = 0
        group.append(value)
        group_bytes += size
    if group:
        yield group


def checkpoint_batches(
    snapshot_id: SnapshotId,
    head: CheckpointHead,
    values: Iterable[bytes],
    state_digest: bytes | Callable[[], bytes] = b"",
) -> Iterator[tuple[bytes, int]]:
    """Yield the whole file, batch by batch, each with its number of data records.

    ``state_digest`` may be a function; it is called when ``values`` is exhausted, so that the
    digest can be computed during the iteration.

    Raises:
        QuorumUsageError: Voters without kraft.version 1, an empty value, a batch too large.
    """
    epoch = snapshot_id.epoch
    timestamp = head.last_contained_log_timestamp
    records = replace(head, end=snapshot_id).control_records()
    yield encode_control_batch(records, base_offset=0, epoch=epoch, timestamp=timestamp), 0
    base_offset = len(records)
    for group in cut_values(values):
        batch = encode_batch(group, base_offset=base_offset, epoch=epoch, timestamp=timestamp)
        yield batch, len(group)
        base_offset += len(group)
    footer = SnapshotFooter(state_digest() if callable(state_digest) else state_digest)
    yield (
        encode_control_batch([footer], base_offset=base_offset, epoch=epoch, timestamp=timestamp),
        0,
    )
