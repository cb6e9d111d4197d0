"""Build an image from a checkpoint's batches.

A checkpoint contains full-state records only; markers, events and changes are refused. The cycle
collector is off while loading: it would find nothing among millions of new objects, but would
scan them again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from quorum.batch import BatchHeader, iterate_records, record_values, scan_batches
from quorum.control import SnapshotFooter, SnapshotHeader, decode_control
from quorum.errors import RecordCodecError, ReplayError, SnapshotCorruptError, UnknownRecordError
from quorum.types import SnapshotId
from statemachine.codec import DecodeRecord, decode_record
from statemachine.codec_kafka import FRAME_VERSION
from statemachine.delta import ImageDelta
from statemachine.dump import StateDigest, state_digest
from statemachine.image import EMPTY_IMAGE, MetadataImage, Provenance
from statemachine.partition_runs import RunReader
from statemachine.records import ImportStateRecord
from statemachine.replay import REPLAY

FREEZE_RECORDS_MIN = 10_000
"""From this many records on, a loaded image is frozen (``gc.freeze``) out of cycle collection."""
KNOWN_MAX = 1 << 16
"""Most states of partitions that are remembered (``RunReader``)."""
HITS_MIN = KNOWN_MAX // 2
"""Fewer partitions than this that were alike until then, and nothing is remembered any more."""


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """What a checkpoint contained."""

    image: MetadataImage
    record_count: int
    """Data records, control records not counted."""


def load_checkpoint(
    snapshot_id: SnapshotId,
    data: Iterable[bytes],
    *,
    verify_digest: bool = True,
    decode: DecodeRecord = decode_record,
    is_lasting: bool = True,
) -> LoadedCheckpoint:
    """Build the image of a checkpoint; each item of ``data`` holds whole batches.

    A large image that lasts is taken out of cycle collection.

    Raises:
        SnapshotCorruptError: Header or footer are missing, something follows the footer, a
            record cannot occur in a checkpoint, or the state digest differs.
        CorruptBatchError, RecordCodecError, UnknownRecordError, ReplayError: The content is
            damaged, newer than this release, or contradicts itself.
    """
    with _collector_paused():
        loader = _Loader(snapshot_id, verify_digest=verify_digest, decode=decode)
        for piece in data:
            for header in scan_batches(piece):
                loader.take(piece, header)
        loaded = loader.finish()
        if is_lasting and loaded.record_count >= FREEZE_RECORDS_MIN:
            gc.freeze()
    return loaded


@contextmanager
def _collector_paused() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _without_import(values: Iterable[bytes], decode: DecodeRecord) -> list[bytes]:
    return [each for each in values if type(decode(each)) is not ImportStateRecord]


class _Loader:
    """The state of one load."""

    def __init__(
        self, snapshot_id: SnapshotId, *, verify_digest: bool, decode: DecodeRecord
    ) -> None:
        self._snapshot_id = snapshot_id
        self._delta = ImageDelta(EMPTY_IMAGE)
        self._decode = decode
        self._runs = RunReader(decode, known_max=KNOWN_MAX, hits_min=HITS_MIN)
        self._count = 0
        self._digest = StateDigest() if verify_digest else None
        self._is_kafka = False
        """The values are in Kafka's codec, so the digest (of native encoding) is not over them."""
        self._header: SnapshotHeader | None = None
        self._footer: SnapshotFooter | None = None

    def take(self, data: bytes, header: BatchHeader) -> None:
        """Process the next batch."""
        if self._footer is not None:
            raise self._corrupt("a batch follows the footer")
        if header.is_control:
            for record in iterate_records(data, header):
                self._take_control(decode_control(record))
            return
        if self._header is None:
            raise self._corrupt("the first batch is not the snapshot header")
        self._take_values(record_values(data, header))

    def finish(self) -> LoadedCheckpoint:
        """Return the image after the last batch."""
        if self._header is None or self._footer is None:
            raise self._corrupt("it has no " + ("header" if self._header is None else "footer"))
        image = self._delta.finish(
            Provenance(
                self._snapshot_id.offset,
                self._snapshot_id.epoch,
                self._header.last_contained_log_timestamp,
            )
        )
        self._check_digest(image, self._footer.state_digest)
        return LoadedCheckpoint(image, self._count)

    def _check_digest(self, image: MetadataImage, promised: bytes) -> None:
        if not promised or self._digest is None:
            return
        found = state_digest(image) if self._is_kafka else self._digest.value()
        if found != promised:
            raise self._corrupt(
                f"its records have state digest {found.hex()}, its footer has {promised.hex()}"
            )

    def _take_control(self, record: object) -> None:
        if isinstance(record, SnapshotHeader) and self._header is None:
            self._header = record
        elif self._header is None:
            raise self._corrupt("the first record is not the snapshot header")
        elif isinstance(record, SnapshotFooter):
            self._footer = record

    def _take_values(self, values: list[bytes]) -> None:
        delta, digest = self._delta, None if self._is_kafka else self._digest
        replay, decode = REPLAY, self._decode
        done = before = self._count
        is_digested = True
        try:
            while (at := self._load_runs(values, done - before)) < len(values):
                done = before + at
                value = values[at]
                record = decode(value)
                if record.IDENTITY is None:
                    raise self._corrupt(f"record {done} is a {type(record).__name__}")
                kind = type(record)
                replay[kind](delta, record)
                if kind is ImportStateRecord:
                    is_digested = False
                done += 1
        except UnknownRecordError as unknown:
            raise UnknownRecordError(
                f"checkpoint {self._snapshot_id}, record {done}: {unknown}",
                api_key=unknown.api_key,
                version=unknown.version,
            ) from unknown
        except RecordCodecError as error:
            raise RecordCodecError(
                f"checkpoint {self._snapshot_id}, record {done}: {error}"
            ) from error
        except ReplayError as contradiction:
            raise ReplayError(
                f"checkpoint {self._snapshot_id}, record {done}: {contradiction.cause}"
            ) from contradiction
        self._count = before + len(values)
        if digest is not None:
            # The progress of an import is provenance: the digest leaves it out.
            digest.update_all(values if is_digested else _without_import(values, decode))
        if values and values[0][0] == FRAME_VERSION:
            self._is_kafka = True

    def _load_runs(self, values: list[bytes], start: int) -> int:
        """Load runs from ``values[start]`` on; returns the index of the first that is left."""
        topics = self._delta.open_topics()
        while (run := self._runs.read(values, start)) is not None:
            if not topics.may_load(run.topic_id):
                break
            topics.load_partitions(run.topic_id, run.states)
            start += len(run.states)
        return start

    def _corrupt(self, cause: str) -> SnapshotCorruptError:
        return SnapshotCorruptError(f"checkpoint {self._snapshot_id}: {cause}")
