"""Keeps the newest image from a watch's events, and the index up to date with it. Blocking."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Final

from quorate.client.results.metadata import ChangeBatch, StateChunk
from quorate.client.watch import WatchEvent
from quorate.console.change_rows import ChangeRow, change_rows, changed_keys
from quorate.console.entity_records import record_at
from quorate.console.index import LOADED_KINDS, Index
from quorate.console.terms import Term
from quorate.timetravel.entities import entity_of
from quorate.watched_batch import header_of, record_headers_of, records_of
from statemachine import records
from statemachine.codec import decode_record
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage, Provenance
from statemachine.records_schema import MetadataRecord
from statemachine.sections.partitions import PartitionState
from statemachine.sections.tracking import RecordKey

_FREEZE_RECORDS_MIN: Final = 10_000
_TOPIC, _PARTITION = records.TopicRecord.API_KEY, records.PartitionRecord.API_KEY


class ImageFeed:
    """The image that the events lead to. Any thread may call; one at a time writes.

    ``image`` is None until a whole state was taken. Every change from ``known_from`` on is in the
    index.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self.image: MetadataImage | None = None
        self.known_from = -1
        self.loading_records = 0
        """Records of a state that is being loaded."""
        self.control_offsets: deque[int] = deque()
        """Control batches that the watch passed, to be looked at for changes of the voters."""
        self.newest_voters: str | None = None
        """The set in the newest row about the voters; None if there is none."""
        self._writing = Lock()
        self._loading: ImageDelta | None = None
        self._delta: ImageDelta | None = None
        self._keys: dict[RecordKey, None] = {}
        self._content: list[MetadataRecord] = []

    def begin_empty(self) -> None:
        """Begin with the empty image at offset 0, for a watch that starts there."""
        with self._writing:
            self._index.begin()
            self._index.load(EMPTY_IMAGE)
            self._index.commit()
        self.image, self.known_from = EMPTY_IMAGE, 0
        self.newest_voters = None
        self._delta = None

    def take(self, events: Iterable[WatchEvent]) -> None:
        """Replay events in their order; the index shows all of them or none.

        Raises:
            RecordCodecError, UnknownRecordError, ReplayError: A record is newer than this release,
                or contradicts the state.
        """
        with self._writing:
            self._index.begin()
            try:
                for event in events:
                    if isinstance(event, StateChunk):
                        self._take_chunk(event)
                    else:
                        self._take_batch(event)
            except BaseException:
                self._index.rollback()
                raise
            self._index.commit()

    def take_terms(self, terms: Iterable[Term]) -> None:
        """Store leadership terms in the index."""
        with self._writing:
            self._index.begin()
            for each in terms:
                self._index.put_term(each)
            self._index.commit()

    def take_voter_changes(self, rows: list[ChangeRow]) -> None:
        """Store changes of the voter set in the index."""
        with self._writing:
            self._index.begin()
            self._index.add_changes(rows)
            self._index.commit()
        self.newest_voters = rows[-1].after

    def _take_chunk(self, chunk: StateChunk) -> None:
        if chunk.chunk == 0 or self._loading is None:
            self._loading, self.loading_records = ImageDelta(EMPTY_IMAGE), 0
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            for value in chunk.records:
                self._loading.replay(decode_record(value))
        finally:
            if was_enabled:
                gc.enable()
        self.loading_records += len(chunk.records)
        if not chunk.is_last:
            return
        image = self._loading.finish(Provenance(chunk.offset, chunk.epoch))
        self._loading, self._delta = None, None
        self._index.load(image)
        self.image, self.known_from = image, chunk.offset
        self.newest_voters = None
        if self.loading_records >= _FREEZE_RECORDS_MIN:
            gc.freeze()

    def _take_batch(self, batch: ChangeBatch) -> None:
        before = self.image
        assert before is not None  # noqa: S101 - a watch begins with a state, or begin_empty did
        if self._delta is None:
            self._delta, self._keys, self._content = ImageDelta(before), {}, []
        delta = self._delta
        if batch.is_control:
            delta.skip_batch(header_of(batch))
            self.control_offsets.append(batch.base_offset)
        else:
            content = records_of(batch)
            delta.replay_batch(header_of(batch), content, record_headers_of(batch))
            self._content += content
            self._keys |= dict.fromkeys(changed_keys(delta.tracker.touched, content))
        if delta.transaction is None:
            after = delta.finish()
            self._delta = None
            self._store(before, after, batch)
            self.image = after

    def _store(self, before: MetadataImage, after: MetadataImage, batch: ChangeBatch) -> None:
        keys = list(self._keys)
        if not keys:
            return
        index = self._index
        index.add_changes(change_rows(before, after, batch, self._content, keys))
        partitions: list[tuple[str, int, PartitionState | None]] = []
        topics = {}
        for key in keys:
            if key[0] in (_TOPIC, _PARTITION):
                name = after.topics.name_of(key[1]) or before.topics.name_of(key[1])
                if name is None:
                    continue
                topics[name] = key[1]
                if key[0] == _PARTITION and after.topics.id_of(name) == key[1]:
                    partitions.append((name, key[2], after.topics.partition(key[1], key[2])))
            else:
                self._store_entity(before, after, key)
        index.put_partitions(partitions)
        index.put_topics(after, topics.items())

    def _store_entity(self, before: MetadataImage, after: MetadataImage, key: RecordKey) -> None:
        new = record_at(after, key)
        if new is not None:
            named = entity_of(after, new)
            if named.kind in LOADED_KINDS:
                self._index.put_entity(named.kind, named.name, named.fields())
            return
        old = record_at(before, key)
        if old is not None:
            named = entity_of(before, old)
            self._index.put_entity(named.kind, named.name, None)
