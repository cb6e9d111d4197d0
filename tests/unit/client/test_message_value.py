"""Results as dataclasses: what they show, when they convert, and how they become messages again."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

from quorate.client.errors import (
    OffsetOutOfRangeError,
    ProducerFencedError,
    ProtocolError,
    RefusedError,
)
from quorate.client.pending import Applied
from quorate.client.results import (
    BrokerDescription,
    BrokerListener,
    CommandResult,
    ConfigSource,
    CreateTopicResult,
    DeleteTopicResult,
    DescribeConfigsResponse,
    DescribeImageResponse,
    ErrorCode,
    KnownProducer,
    LeaderHint,
    OffsetBounds,
    ReadPosition,
    TopicRecord,
    TypedRecord,
)
from quorum.v1 import admin_pb2, commands_pb2, common_pb2, errors_pb2, metadata_pb2, records_pb2

BROKER = admin_pb2.BrokerDescription(
    broker_id=3,
    broker_epoch=1 << 40,
    incarnation_id=b"i" * 16,
    listeners=[commands_pb2.BrokerListener(name="PLAINTEXT", host="b3", port=9092)],
    log_dirs=[b"d" * 16, b"e" * 16],
)


def test_fields_are_plain_values() -> None:
    found = BrokerDescription.of(BROKER)
    assert (found.broker_id, found.broker_epoch, found.is_fenced) == (3, 1 << 40, False)
    assert found.rack is None
    assert found.log_dirs == (b"d" * 16, b"e" * 16)
    assert found.listeners == (BrokerListener(name="PLAINTEXT", host="b3", port=9092),)
    assert found.features == ()
    named = admin_pb2.BrokerDescription(rack="")
    assert BrokerDescription.of(named).rack == ""


def test_an_absent_message_is_none_only_where_the_proto_says_optional() -> None:
    found = DescribeImageResponse.of(admin_pb2.DescribeImageResponse())
    assert found.import_status is None
    assert found.position == ReadPosition()
    status = admin_pb2.ImportStatus(source_cluster_id="c")
    found = DescribeImageResponse.of(admin_pb2.DescribeImageResponse(import_status=status))
    assert found.import_status is not None
    assert found.import_status.source_cluster_id == "c"


def test_a_value_cannot_be_changed_and_has_no_other_attribute() -> None:
    found: Any = BrokerDescription.of(BROKER)
    for name in ("broker_id", "other"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            setattr(found, name, 4)
    with pytest.raises(AttributeError, match="'BrokerDescription' object has no attribute 'other'"):
        _ = found.other
    with pytest.raises(TypeError, match="BrokerDescription of a QuorumNode"):
        BrokerDescription.of(admin_pb2.QuorumNode())


def test_a_field_that_does_not_exist_is_refused_by_its_name() -> None:
    with pytest.raises(TypeError, match="BrokerDescription has no field 'borker_id'"):
        BrokerDescription(borker_id=3)  # type: ignore[call-arg]
    shown = inspect.signature(BrokerListener)
    assert list(shown.parameters) == [each.name for each in dataclasses.fields(BrokerListener)]
    assert {each.kind for each in shown.parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_received_value_equals_one_that_was_made() -> None:
    made = BrokerDescription(
        broker_id=3,
        broker_epoch=1 << 40,
        incarnation_id=b"i" * 16,
        listeners=(BrokerListener(name="PLAINTEXT", host="b3", port=9092),),
        log_dirs=(b"d" * 16, b"e" * 16),
    )
    received = BrokerDescription.of(BROKER)
    assert received == made
    assert hash(received) == hash(made)
    assert repr(received) == repr(made)
    assert made.to_message() == BROKER
    assert dataclasses.replace(received, rack="r").rack == "r"
    for again in (copy.copy(received), copy.deepcopy(received), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert again.to_message() == BROKER


def test_the_message_comes_back_as_it_was_sent_and_is_a_copy() -> None:
    sent = BROKER.SerializeToString() + b"\xfa\x7f\x03new"
    received = BrokerDescription.of(admin_pb2.BrokerDescription.FromString(sent))
    assert received.to_message().SerializeToString() == sent
    received.to_message().broker_id = 9
    assert received.broker_id == 3


def test_enums_have_short_names_and_take_numbers_of_newer_nodes() -> None:
    entry = metadata_pb2.ConfigEntry(source=metadata_pb2.CONFIG_SOURCE_CLUSTER)
    resource = metadata_pb2.ResourceConfigs(entries=[entry], error_code=3)  # type: ignore[arg-type]
    answer = DescribeConfigsResponse.of(metadata_pb2.DescribeConfigsResponse(resources=[resource]))
    (found,) = answer.resources
    assert found.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.error_code == common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
    assert found.entries[0].source is ConfigSource.CLUSTER
    newer = ErrorCode(4711)
    assert (newer, newer.name, newer == ErrorCode(4711)) == (4711, "UNKNOWN_4711", True)
    with pytest.raises(ValueError, match="not a valid"):
        ErrorCode("NONE")  # type: ignore[arg-type]


def test_one_member_of_a_oneof_is_there() -> None:
    sent = records_pb2.TypedRecord(topic_record={"name": "orders", "topic_id": b"t" * 16})
    for record in (
        TypedRecord.of(sent),
        TypedRecord(topic_record=TopicRecord(name="orders", topic_id=b"t" * 16)),
    ):
        match record.record:
            case TopicRecord(name=name):
                assert name == "orders"
            case other:
                pytest.fail(str(other))
        assert record.config_record is None
        assert record.to_message() == sent
    assert repr(TypedRecord.of(sent)).startswith("TypedRecord(undecoded=b'', topic_record=Topic")
    assert TypedRecord.of(records_pb2.TypedRecord()).record is None
    assert TypedRecord().record is None


def test_what_a_write_yields() -> None:
    sent = commands_pb2.CommandResult(create_topic={"topic_id": b"t" * 16, "partition_count": 6})
    applied = Applied(7, 1, CommandResult.of(sent))
    assert applied.yielded(CreateTopicResult).partition_count == 6
    with pytest.raises(ProtocolError, match="no DeleteTopicResult"):
        applied.yielded(DeleteTopicResult)
    with pytest.raises(ProtocolError, match="has None, and no CreateTopicResult"):
        Applied(7, 1, CommandResult()).yielded(CreateTopicResult)


def test_what_an_error_has_is_a_value_too() -> None:
    sent = errors_pb2.KnownProducer(producer_id=7, transactional_id="billing")
    error = RefusedError(47, "gone", producer=sent, leader=errors_pb2.LeaderHint(leader_id=2))
    assert error.producer == KnownProducer(producer_id=7, transactional_id="billing")
    assert error.leader == LeaderHint(leader_id=2)
    again = ProducerFencedError("billing", "gone", producer=error.producer)
    assert again.producer is error.producer
    beyond = OffsetOutOfRangeError("trimmed", bounds=errors_pb2.OffsetBounds(earliest_offset=9))
    assert beyond.bounds == OffsetBounds(earliest_offset=9)
    assert RefusedError(47, "gone").producer is None


def test_a_field_is_converted_once_and_when_it_is_read() -> None:
    answer = metadata_pb2.DescribeTopicsResponse()
    answer.topics.add().partitions.add(replicas=[1, 2])
    from quorate.client.results import DescribeTopicsResponse

    found = DescribeTopicsResponse.of(answer)
    assert found.topics is found.topics
    assert found.topics[0].partitions[0].replicas == (1, 2)


def test_no_result_is_compiled_when_it_is_loaded() -> None:
    """Compiling methods for each class took a fifth of the time that a command takes to start."""
    program = (
        "import builtins; run, texts = builtins.exec, []\n"
        "def noted(code, *others, **names):\n"
        "    if isinstance(code, str): texts.append(code)\n"
        "    return run(code, *others, **names)\n"
        "import quorate.client.message_value\n"
        "builtins.exec = noted\n"
        "import quorate.client.results.admin, quorate.client.results.records\n"
        "assert texts == [], texts\n"
        "from dataclasses import make_dataclass\n"
        "make_dataclass('X', ['a']); assert texts != []\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_records_are_loaded_for_typed_records_only() -> None:
    program = (
        "import sys; from quorate.client.results import StateChunk\n"
        "from quorum.v1.metadata_pb2 import StateChunk as Message\n"
        "name = 'quorate.client.results.records'\n"
        "chunk = StateChunk.of(Message(typed_records=[{}])); assert name not in sys.modules\n"
        "assert len(chunk.typed_records) == 1; assert name in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
