"""How many partitions each broker leads and has in sync, counted once per change of them."""

from __future__ import annotations

from threading import Lock

from statemachine.image import MetadataImage
from statemachine.sections.broker_words import BrokerPartitions, BrokerWords
from statemachine.sections.partition_index import PartitionSet


class BrokerCounts:
    """Remembers counts. A set of partitions that has not changed is the same object.

    To count takes milliseconds for each broker of a large cluster. Any thread may ask.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[BrokerWords, int]] = {}
        self._lock = Lock()

    def led(self, image: MetadataImage, broker_id: int) -> int:
        """Return how many partitions the broker leads."""
        return self._count("led", image.topics.leader_index, broker_id)

    def in_sync(self, image: MetadataImage, broker_id: int) -> int:
        """Return how many partitions have the broker in their ISR."""
        return self._count("in sync", image.topics.isr_index, broker_id)

    def forget_others(self, image: MetadataImage) -> None:
        """Forget brokers that are gone, so that the memory stays bounded."""
        with self._lock:
            for key in [key for key in self._known if key[1] not in image.brokers]:
                del self._known[key]

    def _count(self, name: str, index: BrokerPartitions, broker_id: int) -> int:
        words = index.of(broker_id)
        with self._lock:
            known = self._known.get((name, broker_id))
        if known is not None and known[0] is words:
            return known[1]
        count = len(PartitionSet(words.all()))
        with self._lock:
            self._known[name, broker_id] = (words, count)
        return count
