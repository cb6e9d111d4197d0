"""Hypothesis strategies and a generator of consistent metadata records of every type."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from statemachine.records import (
    RECORD_TYPES,
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    ExpireProducerRecord,
    Extra,
    FeatureLevelRecord,
    InitProducerRecord,
    ListenerEndpoint,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    SupportedFeature,
    TopicRecord,
    TransactionalIdRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from statemachine.records_schema import INTEGER_RANGES, ArrayOf, FieldSpec, Kind, StructOf

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def values_of(kind: Kind) -> st.SearchStrategy[Any]:
    """All values that a field of that kind may hold."""
    if isinstance(kind, ArrayOf):
        return st.lists(values_of(kind.element), max_size=4).map(tuple)
    if isinstance(kind, StructOf):
        return st.builds(kind.struct, **{f.name: field_values(f) for f in kind.fields})
    if kind.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[kind.name]
        return st.integers(low, high)
    return {
        "string": TEXT,
        "bytes": st.binary(max_size=20),
        "uuid": st.binary(min_size=16, max_size=16),
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
    }[kind.name]


def field_values(spec: FieldSpec) -> st.SearchStrategy[Any]:
    """All values of a field, including null."""
    values = values_of(spec.kind)
    return st.none() | values if spec.nullable else values


def extras() -> st.SearchStrategy[Extra | None]:
    """Unknown fields of either codec, or none."""
    trailing = st.lists(st.integers(0, 99) | TEXT | st.none(), max_size=3).map(tuple)
    tags = st.dictionaries(st.integers(100, 200), st.binary(max_size=6), max_size=2).map(
        lambda found: tuple(sorted(found.items()))
    )
    return st.none() | st.builds(Extra, trailing, tags).filter(lambda e: e != Extra())


def records() -> st.SearchStrategy[MetadataRecord]:
    """Any record of any type with any content."""
    return st.one_of(
        [
            st.builds(
                record_type.record_class,
                **{spec.name: field_values(spec) for spec in record_type.fields},
                extra=extras(),
            )
            for record_type in RECORD_TYPES.values()
        ]
    )


class World:
    """Creates random records that are consistent with the earlier ones, reproducible by seed."""

    def __init__(self, seed: int, *, reuses_names: bool = False) -> None:
        self.rng = random.Random(seed)
        self.reuses_names = reuses_names
        self.brokers: dict[int, int] = {}
        self.topics: dict[bytes, tuple[str, int]] = {}
        self.gone: list[str] = []
        """Names of deleted topics that may come back."""
        self.producers: dict[int, int] = {}
        self.next_producer_id = 0
        self.next_epoch = 1
        self.serial = 0

    def step(self) -> list[MetadataRecord]:
        """Return the records of one command."""
        choices = [self._broker, self._topic, self._config, self._misc, self._producer]
        if self.brokers:
            choices += [self._broker_change, self._broker_event, self._unregister]
        if self.topics:
            choices += [self._partition_change, self._config, self._remove_topic, self._add]
            choices += [self._partition_change, self._config]
        return self.rng.choice(choices)()

    def steps(self, count: int) -> list[MetadataRecord]:
        """Return the records of several commands."""
        return [record for _ in range(count) for record in self.step()]

    def _extra(self) -> Extra | None:
        return Extra((self.rng.randrange(9),)) if self.rng.random() < 0.1 else None

    def _broker(self) -> list[MetadataRecord]:
        broker_id = self.rng.randrange(6)
        self.next_epoch += self.rng.randrange(1, 3)
        self.brokers[broker_id] = self.next_epoch
        return [
            RegisterBrokerRecord(
                broker_id,
                incarnation_id=self.rng.randbytes(16),
                broker_epoch=self.next_epoch,
                end_points=(ListenerEndpoint("PLAINTEXT", f"host{broker_id}", 9092),),
                features=(SupportedFeature("metadata.version", 7, 33),),
                rack=self.rng.choice([None, "a", "b"]),
                fenced=self.rng.random() < 0.4,
                log_dirs=self.rng.choice([(), (self.rng.randbytes(16),)]),
                extra=self._extra(),
            )
        ]

    def _pick_broker(self) -> tuple[int, int]:
        broker_id = self.rng.choice(sorted(self.brokers))
        return broker_id, self.brokers[broker_id]

    def _broker_change(self) -> list[MetadataRecord]:
        broker_id, epoch = self._pick_broker()
        return [
            BrokerRegistrationChangeRecord(
                broker_id, epoch, self.rng.randrange(-1, 2), int(self.rng.random() < 0.1)
            )
        ]

    def _broker_event(self) -> list[MetadataRecord]:
        broker_id, epoch = self._pick_broker()
        kind = self.rng.choice([BrokerFencedEvent, BrokerUnfencedEvent, BrokerShutdownEvent])
        return [kind(broker_id, epoch)]

    def _unregister(self) -> list[MetadataRecord]:
        broker_id, epoch = self._pick_broker()
        del self.brokers[broker_id]
        return [UnregisterBrokerRecord(broker_id, epoch)]

    def _replicas(self) -> tuple[int, ...]:
        return tuple(self.rng.sample(range(6), self.rng.randrange(1, 4)))

    def _partition(self, topic_id: bytes, index: int) -> PartitionRecord:
        replicas = self._replicas()
        return PartitionRecord(
            index,
            topic_id,
            replicas,
            replicas[: self.rng.randrange(1, 4)],
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=self.rng.choice([(), tuple(self.rng.randbytes(16) for _ in replicas)]),
            eligible_leader_replicas=self.rng.choice([None, replicas[-1:]]),
            extra=self._extra(),
        )

    def _topic(self) -> list[MetadataRecord]:
        self.serial += 1
        topic_id = self.rng.randbytes(16)
        count = self.rng.randrange(4)
        name = self.gone.pop() if self.gone else f"topic-{self.serial}"
        self.topics[topic_id] = (name, count)
        return [
            TopicRecord(name, topic_id, extra=self._extra()),
            *(self._partition(topic_id, index) for index in range(count)),
        ]

    def _add(self) -> list[MetadataRecord]:
        topic_id = self.rng.choice(sorted(self.topics))
        name, count = self.topics[topic_id]
        self.topics[topic_id] = (name, count + 1)
        return [self._partition(topic_id, count)]

    def _partition_change(self) -> list[MetadataRecord]:
        topic_id = self.rng.choice(sorted(self.topics))
        name, count = self.topics[topic_id]
        if not count:
            return [ClearElrRecord(name)]
        replicas = self._replicas()
        return [
            PartitionChangeRecord(
                self.rng.randrange(count),
                topic_id,
                isr=self.rng.choice([None, replicas]),
                leader=self.rng.choice([-2, -1, replicas[0]]),
                eligible_leader_replicas=self.rng.choice([None, (), (5,)]),
                last_known_elr=self.rng.choice([None, (), (4,)]),
            )
        ]

    def _remove_topic(self) -> list[MetadataRecord]:
        topic_id = self.rng.choice(sorted(self.topics))
        name, _ = self.topics.pop(topic_id)
        if self.reuses_names and self.rng.random() < 0.5:
            self.gone.append(name)
        return [RemoveTopicRecord(topic_id)]

    def _config(self) -> list[MetadataRecord]:
        names = [name for name, _ in self.topics.values()]
        resource = self.rng.choice([(4, ""), (4, "1"), *((2, name) for name in names)])
        key = self.rng.choice(["min.insync.replicas", "retention.ms", "x"])
        value = self.rng.choice([None, "1", "2", "3"])
        return [ConfigRecord(*resource, key, value, extra=self._extra() if value else None)]

    def _producer(self) -> list[MetadataRecord]:
        if self.producers and self.rng.random() < 0.4:
            producer_id = self.rng.choice(sorted(self.producers))
            if self.rng.random() < 0.5:
                del self.producers[producer_id]
                return [ExpireProducerRecord(producer_id)]
            self.producers[producer_id] += 1
            return [InitProducerRecord(producer_id, self.producers[producer_id])]
        self.producers[self.next_producer_id] = 0
        self.next_producer_id += 1
        if self.rng.random() < 0.3:
            del self.producers[self.next_producer_id - 1]
            self.next_producer_id += 999
            return [ProducerIdsRecord(1, 1, self.next_producer_id)]
        return [InitProducerRecord(self.next_producer_id - 1, 0)]

    def _transactional(self) -> MetadataRecord:
        """Draw a producer id that no other name holds."""
        name, count = self.rng.randrange(3), self.rng.randrange(5)
        return TransactionalIdRecord(f"tx{name}", 3 * count + name)

    def _misc(self) -> list[MetadataRecord]:
        rng = self.rng
        return [
            rng.choice(
                [
                    NoOpRecord(),
                    FeatureLevelRecord("metadata.version", rng.choice([7, 17, 25])),
                    FeatureLevelRecord("eligible.leader.replicas.version", rng.randrange(2)),
                    FeatureLevelRecord("group.version", rng.randrange(2), extra=None),
                    ZkMigrationStateRecord(rng.randrange(3)),
                    RegisterControllerRecord(rng.randrange(3), rng.randbytes(16)),
                    ClientQuotaRecord(
                        (
                            QuotaEntity("user", rng.choice([None, "u"])),
                            QuotaEntity("client-id", "c"),
                        ),
                        "rate",
                        float(rng.randrange(3)),
                        remove=rng.random() < 0.4,
                    ),
                    UserScramCredentialRecord("user", 1, rng.randbytes(4), b"k", b"s", 4096),
                    DelegationTokenRecord("o", "r", ("x",), 1, 2, 3, f"token{rng.randrange(3)}"),
                    self._transactional(),
                    ClearElrRecord(""),
                ]
            )
        ]
