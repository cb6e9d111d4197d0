"""Broken state machines: wrong evaluation of commands, or wrong replay of records."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from quorate.controller import group
from statemachine import derivation, replay
from statemachine.commands import (
    AllocateProducerIds,
    Command,
    CreateTopic,
    RegisterBroker,
)
from statemachine.open_image import OpenImage
from statemachine.partition_runs import PartitionRun, RunReader
from statemachine.prepare import brokers
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.view import View
from statemachine.records import (
    BrokerFencedEvent,
    BrokerLeavingEvent,
    InitProducerRecord,
    RegisterBrokerRecord,
)
from statemachine.sections.partition_index import PartitionSet
from statemachine.sections.producers import ProducersDelta
from statemachine.sections.topics import TopicsView
from tests.simulation.zoo.bug import Bug, Patch


def fenced_broker_kept_in_sync(patch: Patch) -> None:
    """A fenced broker stays in the ISR and remains a leader."""
    affected = derivation.affected_by

    def affect_nothing(topics: TopicsView, event: derivation.BrokerEvent) -> PartitionSet:
        return PartitionSet({}) if isinstance(event, BrokerFencedEvent) else affected(topics, event)

    patch.setattr(derivation, "affected_by", affect_nothing)


def leaving_broker_fenced_at_once(patch: Patch) -> None:
    """A broker is fenced by the first step of its departure, before it left all partitions."""
    apply_derived = replay._apply_derived

    def apply_and_fence(image: OpenImage, event: derivation.BrokerEvent) -> None:
        apply_derived(image, event)
        if isinstance(event, BrokerLeavingEvent):
            image.open_cluster().set_fenced(event.broker_id, event.broker_epoch, fenced=True)

    patch.setattr(replay, "_apply_derived", apply_and_fence)


def partitions_taken_for_alike(patch: Patch) -> None:
    """All partitions that follow one another get the state of the first one."""
    read = RunReader.read

    def read_first(runs: RunReader, values: Sequence[bytes], start: int) -> PartitionRun | None:
        run = read(runs, values, start)
        if run is not None:
            run.states = dict.fromkeys(run.states, next(iter(run.states.values())))
        return run

    patch.setattr(RunReader, "read", read_first)


def topic_id_made_from_its_name(patch: Patch) -> None:
    """A topic that is created again gets its former id."""
    create = group.EVALUATORS[CreateTopic]

    def create_by_name(view: View, command: Command, context: EvaluationContext) -> Prepared:
        assert isinstance(command, CreateTopic)
        name = hashlib.blake2b(command.name.encode(), digest_size=16).digest()

        class Named:
            """Chance that knows the name."""

            def __getattr__(self, attribute: str) -> Any:
                return getattr(context.rng, attribute)

            def randbytes(self, size: int) -> bytes:
                return name[:size]

        return create(view, command, replace(context, rng=Named()))

    patch.setattr(group, "EVALUATORS", {**group.EVALUATORS, CreateTopic: create_by_name})


def producer_ids_not_written_down(patch: Patch) -> None:
    """A broker gets a block of producer ids without a record that allocates it."""
    allocate = group.EVALUATORS[AllocateProducerIds]

    def allocate_only(view: View, command: Command, context: EvaluationContext) -> Prepared:
        return replace(allocate(view, command, context), records=[])

    patch.setattr(group, "EVALUATORS", {**group.EVALUATORS, AllocateProducerIds: allocate_only})


def broker_epoch_begins_anew(patch: Patch) -> None:
    """Every registration of a broker uses the broker's id as its epoch."""
    registration = brokers._registration

    def register(command: RegisterBroker, epoch: int, **flags: bool) -> RegisterBrokerRecord:
        return registration(command, command.broker_id, **flags)

    patch.setattr(brokers, "_registration", register)


def replay_reads_a_clock(patch: Patch) -> None:
    """Replay takes a producer's last use from the replica's clock, not from the batch."""
    replay_init = ProducersDelta.replay_init
    now_ms = [0]

    def replay_now(
        delta: ProducersDelta, record: InitProducerRecord, timestamp_ms: int, owner: bytes
    ) -> None:
        now_ms[0] += 1
        replay_init(delta, record, timestamp_ms + now_ms[0], owner)

    patch.setattr(ProducersDelta, "replay_init", replay_now)


BUGS = (
    Bug(
        "producer-ids-not-written-down",
        producer_ids_not_written_down,
        ("producer-blocks",),
        "KIP-730: producer ids of a block that was lost with its controller",
    ),
    Bug(
        "fenced-broker-kept-in-sync",
        fenced_broker_kept_in_sync,
        ("in-sync-brokers",),
        "KAFKA-6880; KIP-841: fenced replicas must not join the ISR",
    ),
    Bug(
        "leaving-broker-fenced-at-once",
        leaving_broker_fenced_at_once,
        ("in-sync-brokers",),
        "ADR 74; KIP-841: a fenced broker must not lead partitions that are yet to move",
    ),
    Bug(
        "partitions-taken-for-alike",
        partitions_taken_for_alike,
        ("equal-images", "equal-checkpoints"),
        "Raft 5.4.3: a follower that replays by another code path than its leader",
    ),
    Bug(
        "topic-id-made-from-its-name",
        topic_id_made_from_its_name,
        ("unique-ids", "history"),
        "KIP-516: a topic created again is another topic",
    ),
    Bug(
        "broker-epoch-begins-anew",
        broker_epoch_begins_anew,
        ("broker-epochs",),
        "KIP-380: control requests of a former incarnation",
    ),
    Bug(
        "replay-reads-a-clock",
        replay_reads_a_clock,
        ("equal-images", "equal-checkpoints", "no-crash"),
        "Raft 5.4.3; CockroachDB: nondeterministic application below Raft",
    ),
)
