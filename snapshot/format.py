"""What a checkpoint file consists of: head batch, data batches, footer batch.

Belongs here: the byte layout as a pure function of what is stored. Files and their life are
``writer``'s and ``store``'s work; what the values mean is the state machine's.

Layout, all in record batches v2, uncompressed, base offsets counting from 0:

1. One control batch: ``SnapshotHeader``, which says of which position the checkpoint is, and
   from kraft.version 1 on ``KRaftVersion`` and, if there are voters, ``Voters``.
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
from quorum.types import ReplicaKey, SnapshotId, TaggedFields, Voter
from quorum.varint import Buffer

DATA_BATCH_BYTES = 256 << 10
"""A data batch is closed before the value that would take its values past this many bytes."""
DATA_BATCH_RECORDS = 8192
"""A data batch is closed when it holds this many records."""
FILE_DIGEST_BYTES = 16
"""Length of a file digest."""


class FileDigest:
    """Identifies a whole checkpoint file: BLAKE2b-128 over the headers of all its batches.

    A header holds the batch's size and the CRC-32C of everything behind it, which whoever takes
    a digest has checked, so every byte of the file counts, at a tenth of what hashing all of
    them costs a download.
    """

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=FILE_DIGEST_BYTES, person=b"quorate-file")

    def add(self, data: Buffer, at: int = 0) -> None:
        """The next batch, at position ``at`` of ``data``; its checksum has been verified."""
        self._hash.update(memoryview(data)[at : at + HEADER_BYTES])

    def value(self) -> bytes:
        """The digest of the batches added so far."""
        return self._hash.digest()


@dataclass(frozen=True, slots=True)
class CheckpointHead:
    """What the first batch says about the whole file.

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
    """Which checkpoint it says it is; None in one of Kafka or of an earlier release."""

    def control_records(self) -> list[WrittenControl]:
        """The records of the first batch, in order.

        Raises:
            QuorumUsageError: Voters below kraft.version 1, where they may not be stored.
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
                records.append(Voters(self.voters, self.voters_tagged, self.removed))
        return records


def cut_values(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The values in order, grouped as they share batches."""
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
    """The whole file, batch by batch, each with the number of data records in it.

    ``state_digest`` may be a function; it is called when ``values`` is exhausted, so that the
    digest can be computed while they pass.

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
