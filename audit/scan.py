"""Replay a log record by record and record the changes that each record made.

Keeps the state alongside the log, derives the partition changes of a broker event (requirement
630.17), and decides when a change becomes visible. Other modules make the rows.

The replay is the state machine's own (``ImageDelta.replay_batch``), so the audit trail cannot
differ from the replicas' state. Changes inside a metadata transaction (KIP-868) are held back
until it ends, and dropped if it is aborted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, overload

from audit.chosen_partitions import ChosenPartitions
from audit.errors import AuditError
from audit.plan import CheckpointFile
from audit.segment_file import FoundBatch
from audit.typed_rows import Effect
from audit.typed_tables import EFFECTS, Derived
from quorum.batch import Record, iterate_records, values_at_once
from quorum.control import DecodedControl, decode_control
from quorum.control_origin import origin_headers
from quorum.errors import LogDamagedError, QuorateError
from quorum.types import Uuid
from snapshot.reader import CheckpointReader
from statemachine.batches import decode_steps, opens_transaction
from statemachine.codec import batch_headers, decode_record
from statemachine.codec_kafka import RecordHeaders
from statemachine.delta import ImageDelta
from statemachine.derivation import BrokerEvent, check_derivable, derive
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.loading import load_checkpoint
from statemachine.partition_updates import PartitionUpdates, UpdateReader
from statemachine.records import (
    OWN_API_KEY_MIN,
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerFencedEvent,
    BrokerUnfencedEvent,
    ConfigRecord,
    MetadataRecord,
)
from statemachine.sections.scanned_topics import ScannedTopics

_NAMELESS = frozenset({ConfigRecord, BrokerFencedEvent, BrokerUnfencedEvent})
"""Records between changes of partitions that give no topic a name and take none from one."""
_KNOWN_MAX = 1 << 15
"""Records of partitions that a scan remembers, of some hundred bytes each."""


@dataclass(slots=True)
class Step:
    """One record of the log, decoded, with its derived changes."""

    record: Record
    content: MetadataRecord | DecodedControl
    topic: str | None = None
    """Name of the topic that the record identifies by id."""
    derived: Derived = field(default_factory=list)
    derived_topics: list[str | None] = field(default_factory=list)
    """Topic names of ``derived``."""


@dataclass(slots=True)
class Visible:
    """A visible change with the record that made it."""

    effect: Effect
    step: Step
    batch: FoundBatch
    headers: Sequence[tuple[str, bytes | None]]
    """Record headers of the batch."""
    effective_offset: int


class PartitionChanges(NamedTuple):
    """The replayed records of a batch that does nothing but create and change partitions.

    They have the offsets from the batch's base offset on, and all of them its timestamp.
    """

    updates: PartitionUpdates
    topics: list[str | None]
    """The topic name of each record."""
    headers: RecordHeaders

    def chosen(self, numbers: Sequence[int]) -> PartitionChanges:
        """Return the changes with these numbers, which count from 0."""
        topics = [self.topics[number] for number in numbers]
        return PartitionChanges(self.updates.chosen(numbers), topics, self.headers)


@dataclass(slots=True)
class ScannedBatch:
    """One batch with its records, and the changes that became visible with it."""

    batch: FoundBatch
    steps: list[Step]
    visible: list[Visible]
    is_settled: bool = True
    """Whether no metadata transaction is open at its end."""
    partitions: PartitionChanges | None = None
    """In place of ``steps`` and ``visible``, if the scan groups changes of partitions."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """Record headers of its first record, which name the client that wrote the batch.

        For a control batch they are made from the origin of its first record that has one.
        """
        if self.batch.header.is_control:
            found = (origin_headers(step.content) for step in self.steps)
            return next((headers for headers in found if headers), ())
        if self.partitions is not None:
            return self.partitions.headers
        if not self.steps:
            return ()
        return _headers_of(self.steps[0].record)


def load_state(checkpoint: CheckpointFile) -> MetadataImage:
    """Return the image that a checkpoint holds.

    Raises:
        SnapshotCorruptError, RecordCodecError, UnknownRecordError, ReplayError: Its content is
            damaged or newer than this release.
    """
    batches = CheckpointReader(Path(checkpoint.path)).batches()
    return load_checkpoint(checkpoint.snapshot_id, batches).image


class Scan:
    """Replays the log from a known state, or without a state if there is none.

    Without a state (``image`` None) records are decoded, but topic names, derived changes and
    typed changes are not known. ``partitions_of`` are the names of topics; the partitions of
    others, and their records, are left out, and everything else is as with them. None: of all.
    ``grouped`` True returns most changes of partitions as ``PartitionChanges``, which takes less
    time; not with ``partitions_of``.
    """

    def __init__(
        self,
        image: MetadataImage | None = EMPTY_IMAGE,
        *,
        partitions_of: Collection[str] | None = None,
        grouped: bool = False,
    ) -> None:
        self._chosen: ChosenPartitions | None = None
        if partitions_of is not None:
            self._chosen = ChosenPartitions(partitions_of, (image or EMPTY_IMAGE).topics)
        self._grouped = grouped
        self._delta = None if image is None else _reading(image, self._chosen)
        self._before = EMPTY_IMAGE
        """The image before the batch that opened the current transaction."""
        self._waiting: list[Visible] = []
        self._mark = 0
        self._updates = UpdateReader(known_max=_KNOWN_MAX)
        self._names: dict[Uuid, str | None] = {}
        """Names of topics looked up, until a batch comes that may name some."""

    @property
    def is_settled(self) -> bool:
        """Return whether no metadata transaction is open."""
        return self._delta is None or self._delta.transaction is None

    def image(self) -> MetadataImage:
        """The newest image outside any transaction; while one is open, the image before it.

        Raises:
            AuditError: No state is known.
        """
        if self._delta is None:
            raise AuditError("no checkpoint reaches the log start, so the state is unknown")
        return self._delta.view() if self.is_settled else self._before

    def take(self, batch: FoundBatch, *, observe: bool = True) -> ScannedBatch:
        """Replay one batch; without ``observe`` it only updates the state, which is faster.

        Raises:
            LogDamagedError: The batch cannot be decoded or contradicts the state. The message names
                file, position, offset and cause.
        """
        try:
            if batch.header.is_control:
                return self._take_control(batch)
            return self._take_data(batch, observe=observe)
        except LogDamagedError:
            raise
        except QuorateError as error:
            raise LogDamagedError(
                f"cannot replay: {error}",
                path=batch.path,
                position=batch.position,
                offset=batch.header.base_offset,
            ) from error

    def _take_control(self, batch: FoundBatch) -> ScannedBatch:
        steps = [
            Step(record, decode_control(record, path=batch.path, position=batch.position))
            for record in iterate_records(batch.data, batch.header, path=batch.path)
        ]
        if self._delta is not None:
            self._delta.skip_batch(batch.header)
        return ScannedBatch(batch, steps, [], self.is_settled)

    def _take_data(self, batch: FoundBatch, *, observe: bool) -> ScannedBatch:
        delta = self._delta
        chosen = self._chosen
        if delta is not None and delta.transaction is None:
            if chosen is not None:
                if self._leaves_out(chosen, delta, batch):
                    return ScannedBatch(batch, [], [])
            elif self._grouped or not observe:
                found_updates = self._take_updates(delta, batch)
                if found_updates is not None:
                    changes = self._named(delta, *found_updates) if observe else None
                    return ScannedBatch(batch, [], [], partitions=changes)
        if chosen is None and not observe and self._replays(delta, batch):
            self._names.clear()
            return ScannedBatch(batch, [], [])
        found = iterate_records(
            batch.data, batch.header, path=batch.path, base_position=batch.base_position
        )
        headers = _headers_of(found[0])
        if chosen is None:
            contents = [_decode(record) for record in found]
        else:
            found, contents = chosen.decode(found, _decode)
        if not _NAMELESS.issuperset(map(type, contents)):
            self._names.clear()
        if delta is None:
            return ScannedBatch(batch, [Step(*pair) for pair in zip(found, contents)], [])
        if delta.transaction is None and opens_transaction(contents):
            self._before = delta.view()
            observe = True
        if observe or delta.transaction is not None:
            observer = _Observer(delta, batch, found, contents, headers, self)
            delta.replay_batch(batch.header, observer, headers)
            steps = observer.steps
        else:
            delta.replay_batch(batch.header, contents, headers)
            steps = []
        visible = self._settle(batch.header.end_offset)
        return ScannedBatch(batch, steps, visible, self.is_settled)

    @staticmethod
    def _leaves_out(chosen: ChosenPartitions, delta: ImageDelta, batch: FoundBatch) -> bool:
        """Step over a batch of other partitions alone; leave another one as it is."""
        found = values_at_once(
            batch.data, batch.header, path=batch.path, base_position=batch.base_position
        )
        if found is None or not chosen.leaves_out(found[0]):
            return False
        delta.replay_batch(batch.header, [], found[1] or batch_headers((), found[0][0]))
        return True

    def _take_updates(
        self, delta: ImageDelta, batch: FoundBatch
    ) -> tuple[PartitionUpdates, RecordHeaders] | None:
        """Replay a batch that only creates and changes partitions; leave another one as it is."""
        found = values_at_once(
            batch.data, batch.header, path=batch.path, base_position=batch.base_position
        )
        updates = None if found is None else self._updates.read(found[0])
        if found is None or updates is None:
            return None
        headers = found[1] or batch_headers((), found[0][0])
        delta.replay_batch(batch.header, [updates], headers)
        return updates, headers

    def _named(
        self, delta: ImageDelta, updates: PartitionUpdates, headers: RecordHeaders
    ) -> PartitionChanges:
        names, name_of = self._names, delta.topics.name_of
        for topic_id in set(updates.topic_ids).difference(names):
            names[topic_id] = name_of(topic_id)
        return PartitionChanges(updates, [names[each] for each in updates.topic_ids], headers)

    @staticmethod
    def _replays(delta: ImageDelta | None, batch: FoundBatch) -> bool:
        """Replay a batch as a replica does; leave one that is in a metadata transaction."""
        if delta is None or delta.transaction is not None:
            return False
        steps, headers = decode_steps(
            batch.data,
            batch.header,
            path=batch.path,
            base_position=batch.base_position,
        )
        if opens_transaction(steps):
            return False
        delta.replay_batch(batch.header, steps, headers)
        return True

    def hold(self, visible: list[Visible]) -> None:
        """Hold changes until they become visible."""
        self._waiting += visible

    def on_marker(self, content: MetadataRecord) -> None:
        """Handle a replayed record: begin a transaction, or drop the changes of an aborted one."""
        if isinstance(content, BeginTransactionRecord):
            self._mark = len(self._waiting)
        elif isinstance(content, AbortTransactionRecord):
            del self._waiting[self._mark :]

    def _settle(self, end_offset: int) -> list[Visible]:
        if not self.is_settled:
            return []
        visible, self._waiting = self._waiting, []
        for change in visible:
            change.effective_offset = end_offset
        return visible


class _Observer(Sequence[MetadataRecord]):
    """The records of a batch, observed while they are replayed.

    Replay consumes one record after the other. Between two steps of the iteration the state is that
    after one record and before the next.
    """

    def __init__(
        self,
        delta: ImageDelta,
        batch: FoundBatch,
        found: list[Record],
        contents: list[MetadataRecord],
        headers: RecordHeaders,
        scan: Scan,
    ) -> None:
        self._delta = delta
        self._batch = batch
        self._found = found
        self._contents = contents
        self._headers = headers
        self._scan = scan
        self.steps: list[Step] = []

    def __len__(self) -> int:
        return len(self._contents)

    @overload
    def __getitem__(self, index: int) -> MetadataRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MetadataRecord]: ...
    def __getitem__(self, index: int | slice) -> MetadataRecord | Sequence[MetadataRecord]:
        return self._contents[index]

    def __iter__(self) -> Iterator[MetadataRecord]:
        for record, content in zip(self._found, self._contents):
            step = Step(record, content, self._name_of(content))
            if isinstance(content, BrokerEvent):
                step.derived = derive(self._delta, content)
                step.derived_topics = [self._name_of(change) for change in step.derived]
            before = EFFECTS.get(type(content))
            after = None if before is None else before(self._delta, content, step.derived)
            yield content
            self.steps.append(step)
            if after is not None:
                self._scan.hold(
                    [Visible(effect, step, self._batch, self._headers, -1) for effect in after()]
                )
            self._scan.on_marker(content)

    def _name_of(self, content: Any) -> str | None:
        topic_id: Uuid | None = getattr(content, "topic_id", None)
        return None if topic_id is None else self._delta.topics.name_of(topic_id)


def _reading(image: MetadataImage, chosen: ChosenPartitions | None) -> ImageDelta:
    """Return a delta over the image, with topics for a reader."""
    delta = ImageDelta(image)
    topics = image.topics if chosen is None else chosen.of(image.topics)
    delta.topics = ScannedTopics(topics, delta.tracker)
    return delta


def _headers_of(record: Record) -> RecordHeaders:
    return batch_headers(record.headers, record.value)


def _decode(record: Record) -> MetadataRecord:
    content = decode_record(record.value or b"")
    if content.API_KEY >= OWN_API_KEY_MIN:
        check_derivable(content)
    return content
