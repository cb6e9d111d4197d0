"""Whatever a client asks for is refused with a code, or becomes records that encode and replay."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorum.errors import CommandError
from statemachine import commands
from statemachine.codec import decode_record, encode_kafka, encode_record
from statemachine.import_state import SourcePosition
from statemachine.machine import StateMachine
from statemachine.prepare import EVALUATORS, prepare
from statemachine.records import (
    InitProducerRecord,
    PartitionChangeRecord,
    TransactionalIdRecord,
)
from statemachine.sections.configs import ResourceType
from tests.support.image_builder import (
    CLUSTER_ID,
    after,
    directory,
    evaluation,
    fenced,
    incarnation,
    shutting_down,
    small_cluster,
    topic_config,
    topic_id,
)

int32 = st.one_of(st.integers(-2, 12), st.sampled_from([-(2**31), 2**31 - 1, 10_001, 32_767]))
int64 = st.one_of(int32, st.sampled_from([-(2**63), 2**63 - 1, 1_000]))
uuids = st.one_of(
    st.sampled_from([bytes(16), topic_id(1), directory(1), incarnation(1), b"", b"odd"]),
    st.binary(min_size=16, max_size=16),
)
texts = st.one_of(
    st.sampled_from(
        [
            "",
            "t",
            "1",
            "__cluster_metadata",
            "metadata.version",
            CLUSTER_ID,
            "n",
            "cleanup.policy",
            "retention.ms",
            "min.insync.replicas",
            "delete",
            "2",
            "eligible.leader.replicas.version",
            "quorate.note",
            ".",
        ]
    ),
    st.text(max_size=12),
)
BY_TYPE = {
    "int": int64,
    "NodeId": int32,
    "str": texts,
    "str | None": st.none() | texts,
    "bool": st.booleans(),
    "Uuid": uuids,
    "bytes": st.binary(max_size=40),
    "SourcePosition": st.builds(SourcePosition, st.booleans(), int64),
}
EPOCHS = st.sampled_from([-1, 5, 7, 11, 12, 13, 14])


def values_of(annotation):
    """A strategy for one field, read off its annotation."""
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    if annotation.endswith(" | None"):
        return st.none() | values_of(annotation.removesuffix(" | None"))
    if annotation == "SingleCommand":
        return st.one_of([some(kind) for kind in get_args(commands.SingleCommand)])
    if not annotation.startswith("tuple["):
        return some(getattr(commands, annotation))
    if annotation.startswith("tuple[tuple["):
        return st.lists(st.lists(int32, max_size=4).map(tuple), max_size=4).map(tuple)
    inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
    if inner in BY_TYPE:
        return st.lists(BY_TYPE[inner], max_size=4).map(tuple)
    return st.lists(some(getattr(commands, inner)), max_size=3).map(tuple)


def some(kind):
    """Commands, or parts of them, with any values their types allow."""
    strategies = {field.name: values_of(field.type) for field in fields(kind)}
    for name in ("broker_epoch", "leader_epoch", "partition_epoch"):
        if name in strategies:
            strategies[name] = st.one_of(EPOCHS, int64)
    if kind is commands.CreateTopic:
        strategies["configs"] = st.lists(st.tuples(texts, st.none() | texts), max_size=3).map(tuple)
        strategies["partition_count"] = st.one_of(st.integers(-2, 9), st.just(2**31 - 1))
    if kind is commands.CreatePartitions:
        strategies["partition_count"] = st.one_of(st.integers(-2, 9), st.just(2**31 - 1))
    if kind is commands.RegisterBroker:
        strategies["cluster_id"] = st.just(CLUSTER_ID)
        strategies["features"] = st.sampled_from(
            [
                (
                    commands.FeatureRange("metadata.version", 7, 33),
                    commands.FeatureRange("eligible.leader.replicas.version", 0, 1),
                ),
                (),
            ]
        )
    return st.builds(kind, **strategies)


IMAGES = [
    small_cluster(),
    small_cluster(
        fenced(1),
        shutting_down(2),
        topic_config("cleanup.policy", "compact"),
        PartitionChangeRecord(0, topic_id(1), leader=-1, isr=(1,)),
        InitProducerRecord(1, 0),
        TransactionalIdRecord("n", producer_id=1, producer_epoch=0),
    ),
    small_cluster(
        PartitionChangeRecord(
            1, topic_id(1), isr=(2,), eligible_leader_replicas=(3,), removing_replicas=(1,)
        ),
        topic_config("min.insync.replicas", "2"),
        elr=True,
    ),
    StateMachine().image,
]


@pytest.mark.parametrize("kind", EVALUATORS, ids=lambda kind: kind.__name__)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_command_is_refused_or_comes_to_records_that_hold(kind, data):
    command = data.draw(some(kind))
    image = data.draw(st.sampled_from(IMAGES))
    native = data.draw(st.booleans())
    try:
        prepared = prepare(image, command, evaluation(native=native, now_ms=10_000))
    except CommandError:
        return
    for record in prepared.records:
        encoded = encode_record(record) if native else encode_kafka(record)
        assert decode_record(encoded) == record
    changed = after(image, prepared.records)
    if kind is commands.IncrementalAlterConfigs:
        assert prepare(changed, command, evaluation(native=native)).records == [] or any(
            change.operation in (2, 3) for change in command.changes
        )


@pytest.mark.parametrize(
    ("resource_type", "is_known"),
    [*((resource_type, True) for resource_type in ResourceType), (0, False), (-1, False)],
)
def test_every_resource_type_has_a_judgement(resource_type, is_known):
    names = {
        2: ("t", "retention.ms", "5"),
        4: ("1", "num.io.threads", "5"),
        8: ("1", "root", "INFO"),
        16: ("m", "interval.ms", "50"),
        32: ("g", "share.session.timeout.ms", "50"),
    }
    resource, key, value = names.get(resource_type, ("t", "retention.ms", "5"))
    change = commands.ConfigChange(key, 0, value)
    command = commands.IncrementalAlterConfigs(resource_type, resource, (change,))
    if is_known:
        assert len(prepare(IMAGES[0], command, evaluation()).records) == 1
    else:
        with pytest.raises(CommandError):
            prepare(IMAGES[0], command, evaluation())
