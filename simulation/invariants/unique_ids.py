"""Ids are never allocated twice (requirements 360; KIP-500)."""

from __future__ import annotations

from simulation.invariants.contents import metadata_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from statemachine.records import InitProducerRecord, RegisterBrokerRecord, TopicRecord

PRODUCER_EPOCH_LAST = 2**15 - 1
"""The largest epoch that a batch can name."""


class UniqueIds(Invariant):
    """No two committed records allocate one topic id, or one producer id with one epoch.

    No producer gets the last epoch of a producer id: it fences the producer with the one before.
    """

    name = "unique-ids"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.topics: dict[bytes, int] = {}
        self.producers: dict[tuple[int, int], int] = {}

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            for record in metadata_of(batch):
                if isinstance(record, TopicRecord):
                    first = self.topics.setdefault(record.topic_id, batch.end_offset)
                    self._require(first, batch, f"topic id {record.topic_id.hex()}")
                elif isinstance(record, InitProducerRecord):
                    key = (record.producer_id, record.producer_epoch)
                    first = self.producers.setdefault(key, batch.end_offset)
                    self._require(first, batch, f"producer id and epoch {key}")
                    self.require(
                        0 <= record.producer_epoch < PRODUCER_EPOCH_LAST,
                        "a producer epoch outside the allowed range",
                        producer=key,
                        end_offset=batch.end_offset,
                    )

    def _require(self, first: int, batch: Batch, what: str) -> None:
        self.require(
            first == batch.end_offset,
            "an id was allocated twice",
            what=what,
            first=first,
            second=batch.end_offset,
        )


class BrokerEpochs(Invariant):
    """A broker epoch belongs to one incarnation of one broker, and grows with each new one."""

    name = "broker-epochs"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.owners: dict[int, tuple[int, bytes]] = {}
        self.newest: dict[int, int] = {}

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            for record in metadata_of(batch):
                if isinstance(record, RegisterBrokerRecord):
                    self._check(record, batch)

    def _check(self, record: RegisterBrokerRecord, batch: Batch) -> None:
        owner = (record.broker_id, record.incarnation_id)
        newest = self.newest.get(record.broker_id, -1)
        self.require(
            self.owners.setdefault(record.broker_epoch, owner) == owner
            and record.broker_epoch >= newest,
            "a broker epoch has two owners, or is older than the last one",
            epoch=record.broker_epoch,
            owner=self.owners[record.broker_epoch],
            broker=owner,
            newest=newest,
            end_offset=batch.end_offset,
        )
        self.newest[record.broker_id] = record.broker_epoch
