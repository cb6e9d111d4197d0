"""From batches of the log to images, with the partitions that each change touched.

An image is published at the end of a batch, and of a metadata transaction as a whole (KIP-868).
Pure: whoever reads the log hands the batches in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorum.errors import QuorumUsageError
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage, Provenance
from statemachine.open_image import BatchPosition
from statemachine.records import MetadataRecord, PartitionRecord
from statemachine.sections.partition_index import PartitionKey

_PARTITION = PartitionRecord.API_KEY


class ImageChange(NamedTuple):
    """Two images that follow one another."""

    before: MetadataImage
    after: MetadataImage
    partitions: frozenset[PartitionKey]
    """Every partition that may differ, deleted ones included; no other one does."""


def differing_partitions(before: MetadataImage, after: MetadataImage) -> frozenset[PartitionKey]:
    """Return every partition that is in one image only, or has another state in the other.

    What the two images share is not looked at; two that share nothing are compared as a whole.
    """
    old, new = before.topics.partitions, after.topics.partitions
    found: set[PartitionKey] = set()
    if old is new:
        return frozenset()
    for topic_id in {*old, *new}:
        was, now = before.topics.partitions_of(topic_id), after.topics.partitions_of(topic_id)
        if was is not now:
            numbers = {*was, *now}
            found.update((topic_id, each) for each in numbers if was.get(each) != now.get(each))
    return frozenset(found)


class ImageFeed:
    """The newest image. Owned by one task."""

    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        self.image = image
        """Outside a metadata transaction it may be replaced; the next batch follows it then."""
        self._delta: ImageDelta | None = None
        self._new: set[PartitionKey] = set()
        self._loading: ImageDelta | None = None

    @property
    def applied_offset(self) -> int:
        """The last offset in the image, inclusive as in heartbeats; -1 before the first."""
        return self.image.provenance.end_offset - 1

    def load(self, records: Iterable[MetadataRecord], *, is_first: bool) -> None:
        """Take a part of a whole state, in its order; ``is_first`` begins a state.

        Raises:
            QuorumUsageError: No state was begun.
            ReplayError: A record contradicts the others.
        """
        if is_first:
            self._loading = ImageDelta(EMPTY_IMAGE)
        if self._loading is None:
            raise QuorumUsageError("a state begins with its first part")
        for record in records:
            self._loading.replay(record)

    def finish_load(self, end_offset: int, epoch: int) -> MetadataImage:
        """Replace the image by the state that was loaded, and return it.

        Raises:
            QuorumUsageError: No state was begun.
        """
        if self._loading is None:
            raise QuorumUsageError("a state begins with its first part")
        self.image = self._loading.finish(Provenance(end_offset, epoch))
        self._loading = self._delta = None
        self._new.clear()
        return self.image

    def take_batch(
        self,
        position: BatchPosition,
        records: Sequence[MetadataRecord],
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        is_control: bool = False,
    ) -> ImageChange | None:
        """Replay one batch; return the change, or None inside a metadata transaction.

        Raises:
            ReplayError: A record contradicts the image.
            QuorumUsageError: The batch does not follow the last one.
        """
        if self._delta is None:
            self._delta = ImageDelta(self.image)
        delta = self._delta
        if is_control:
            delta.skip_batch(position)
        else:
            delta.replay_batch(position, records, headers)
            for record in records:
                if type(record) is PartitionRecord:
                    self._new.add((record.topic_id, record.partition_id))
        if delta.transaction is not None:
            return None
        changed = {(key[1], key[2]) for key in delta.tracker.touched if key[0] == _PARTITION}
        change = ImageChange(self.image, delta.finish(), frozenset(changed | self._new))
        self.image, self._delta, self._new = change.after, None, set()
        return change
