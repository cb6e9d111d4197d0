"""Records as typed messages: complete, stable in their numbers, and in answers on request."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import example, given

from quorate.client import Client
from quorate.client.queries import EARLIEST_TIMESTAMP
from quorate.services.typed_records import add_encoded, add_record
from quorum.v1 import metadata_pb2
from quorum.v1.records_pb2 import TypedRecord
from statemachine.codec import encode_record
from statemachine.records import (
    RECORD_TYPES,
    ListenerEndpoint,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from statemachine.records_schema import ArrayOf, FieldSpec, Kind, StructOf
from tests.support.record_strategies import records
from tests.support.served_node import cluster, serving

SCRIPT = Path(__file__).resolve().parents[3] / "proto" / "records.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("proto_records", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_protos_have_what_is_declared() -> None:
    """After a change of record types: `make proto`."""
    made = script()
    text = made.current()
    assert made.rendered(made.numbers_in(text)) == text
    fields = TypedRecord.DESCRIPTOR.fields_by_name
    assert len(fields) == len(RECORD_TYPES) + 1


def test_a_field_keeps_its_number_wherever_another_one_is_declared() -> None:
    made = script()
    known = made.numbers_in(made.current())
    before = {place: number for place, number in known.items() if place[0] == "TopicRecord"}
    assert before == {("TopicRecord", "name"): 1, ("TopicRecord", "topic_id"): 2}
    del known["TopicRecord", "name"]
    after = made.numbers_in(made.rendered(known))
    assert (after["TopicRecord", "topic_id"], after["TopicRecord", "name"]) == (2, 3)


def same(spec: FieldSpec, message: Any, value: Any) -> bool:
    """Whether a field of a message has the value of a record's field."""
    if value is None:
        return not message.HasField(spec.name)
    content = getattr(message, spec.name)
    if isinstance(spec.kind, ArrayOf) and spec.nullable:
        return message.HasField(spec.name) and same_value(spec.kind, content.values, value)
    return same_value(spec.kind, content, value)


def same_value(kind: Kind, content: Any, value: Any) -> bool:
    if isinstance(kind, ArrayOf):
        pairs = zip(content, value, strict=True)
        return all(same_value(kind.element, *pair) for pair in pairs)
    if isinstance(kind, StructOf):
        return all(same(each, content, getattr(value, each.name)) for each in kind.fields)
    return bool(content == value)


@given(records())
@example(NoOpRecord())
@example(
    RegisterBrokerRecord(1, broker_epoch=2, end_points=(ListenerEndpoint("CLIENT", "host", 9, 3),))
)
def test_every_field_of_every_type_arrives(record: MetadataRecord) -> None:
    typed = TypedRecord()
    add_record(typed, record)
    typed = TypedRecord.FromString(typed.SerializeToString())
    name = typed.WhichOneof("record")
    assert name is not None
    message = getattr(typed, name)
    assert message.DESCRIPTOR.name == type(record).__name__
    for spec in RECORD_TYPES[record.API_KEY].fields:
        assert same(spec, message, getattr(record, spec.name)), spec.name


def test_an_absent_list_differs_from_an_empty_one() -> None:
    typed = TypedRecord()
    add_record(typed, PartitionChangeRecord(1, b"t" * 16, isr=(), replicas=None))
    change = typed.partition_change_record
    assert (change.HasField("isr"), change.HasField("replicas")) == (True, False)


def test_what_this_release_does_not_know_stays_undecoded() -> None:
    typed = TypedRecord()
    add_encoded(typed, b"\x93\xcd\x7f\xff\x00\x01")
    assert typed.WhichOneof("record") is None
    assert typed.undecoded == b"\x93\xcd\x7f\xff\x00\x01"


TOPIC = b"t" * 16


def foreign_stub(channel: grpc.aio.Channel) -> tuple[Any, Any]:
    """FetchLog of a program that has nothing but the .proto files, compiled anew."""
    pool = descriptor_pool.DescriptorPool()
    files: list[Any] = []

    def add(file: Any) -> None:
        for each in file.dependencies:
            add(each)
        if file.name not in files:
            files.append(file.name)
            found = FileDescriptorProto()
            file.CopyToProto(found)
            pool.Add(found)  # type: ignore[attr-defined]  # missing in the stubs

    add(metadata_pb2.DESCRIPTOR)
    service = pool.FindServiceByName("quorum.v1.MetadataService")
    method = service.methods_by_name["FetchLog"]
    request = message_factory.GetMessageClass(method.input_type)
    response = message_factory.GetMessageClass(method.output_type)
    call = channel.unary_unary(
        "/quorum.v1.MetadataService/FetchLog",
        request_serializer=request.SerializeToString,  # type: ignore[attr-defined]
        response_deserializer=response.FromString,  # type: ignore[attr-defined]
    )
    return call, request


def test_a_program_made_from_the_protos_alone_prints_topic_and_leader_of_a_change() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        node.commit(
            encode_record(TopicRecord("orders", TOPIC)),
            encode_record(PartitionRecord(0, TOPIC, (1, 2), (1, 2), leader=1)),
        )
        node.commit(encode_record(PartitionChangeRecord(0, TOPIC, leader=2)))
        async with serving(node), grpc.aio.insecure_channel(node.address) as channel:
            fetch, request = foreign_stub(channel)
            found = await fetch(request(record_form=2), timeout=30)
        assert found.records == b""
        names, lines = {}, []
        for batch in found.batches:
            for record in batch.typed_records:
                kind = record.WhichOneof("record")
                if kind == "topic_record":
                    names[record.topic_record.topic_id] = record.topic_record.name
                elif kind == "partition_change_record":
                    change = record.partition_change_record
                    lines.append(f"{names[change.topic_id]}: leader {change.leader}")
        assert lines == ["orders: leader 2"]

    asyncio.run(scenario())


def test_a_watch_has_typed_records_in_state_and_changes_and_others_keep_theirs() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        node.commit(encode_record(TopicRecord("orders", TOPIC)))
        async with serving(node), Client([node.address]) as client:
            typed, plain = (aiter(client.watch(typed=each)) for each in (True, False))
            state, encoded = await anext(typed), await anext(plain)
            assert (len(state.records), len(encoded.typed_records)) == (0, 0)
            (topic,) = [e for e in state.typed_records if e.topic_record]
            assert topic.topic_record.name == "orders"
            value = encode_record(PartitionRecord(0, TOPIC, (1,), (1,), leader=1))
            node.commit(value)
            change, raw = await anext(typed), await anext(plain)
            assert change.typed_records[0].partition_record.leader == 1
            assert (list(change.records), list(raw.records)) == ([], [value])
            await typed.aclose()
            await plain.aclose()

    asyncio.run(scenario())


def test_a_typed_batch_that_no_message_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.services.too_large.MESSAGE_BYTES_MAX", 100)

    async def scenario() -> None:
        _, (node,) = cluster(1)
        node.commit(*[encode_record(TopicRecord("orders" * 9, TOPIC))] * 3)
        async with serving(node), Client([node.address]) as client:
            with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
                await client.fetch_log(
                    metadata_pb2.FetchLogRequest(record_form=metadata_pb2.RECORD_FORM_TYPED)
                )
            assert (await client.list_offsets(EARLIEST_TIMESTAMP)).offset == 0

    asyncio.run(scenario())
