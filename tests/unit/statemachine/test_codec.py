"""Both codecs: round trips, published examples, what is unknown, and bytes that are no record."""

from __future__ import annotations

import struct
from collections import Counter

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.varint import encode_tagged_fields
from statemachine.codec import batch_headers, decode_record, encode_kafka, encode_record
from statemachine.codec_kafka import TAG_HEADERS, TAG_RECORD
from statemachine.derivation import BrokerEvent
from statemachine.records import (
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    Extra,
    FeatureLevelRecord,
    InitProducerRecord,
    ListenerEndpoint,
    NoOpRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.record_strategies import records

ID = bytes(range(0x10, 0x20))


@given(records())
@settings(max_examples=400, deadline=None)
def test_any_record_survives_both_codecs(record):
    """Encode and decode must be inverse, unknown fields of either codec included."""
    native = encode_record(record)
    assert decode_record(native) == record
    assert encode_record(decode_record(native)) == native
    if not isinstance(record, BrokerEvent):
        framed = encode_kafka(record)
        assert decode_record(framed) == record
        assert encode_kafka(decode_record(framed)) == framed


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (
            FeatureLevelRecord("metadata.version", 25),
            "01 0c 00 11 6d 65 74 61 64 61 74 61 2e 76 65 72 73 69 6f 6e 00 19 00",
        ),
        (TopicRecord("foo", ID), "01 02 00 04 66 6f 6f" + ID.hex() + "00"),
        (NoOpRecord(), "01 14 00 00"),
        (
            BrokerRegistrationChangeRecord(4, 77, 1, 1),
            "01 11 01 00000004 000000000000004d 02 00 01 01 01 01 01",
        ),
    ],
)
def test_kafka_framing_of_the_published_examples(record, value):
    """Byte for byte what docs/reference/formats.md shows."""
    assert encode_kafka(record) == bytes.fromhex(value)
    assert decode_record(bytes.fromhex(value)) == record


def test_native_form_is_an_array_of_key_version_and_fields():
    value = encode_record(ConfigRecord(2, "orders", "retention.ms", None))
    assert msgpack.unpackb(value) == [4, 0, 2, "orders", "retention.ms", None]
    assert value[0] == 0x96


def test_unknown_trailing_values_are_kept_and_written_back():
    newer = msgpack.packb([2, 0, "orders", ID, "colour", [1, {"a": 2.5}]])
    record = decode_record(newer)
    assert record == TopicRecord("orders", ID, extra=Extra(("colour", (1, {"a": 2.5}))))
    assert encode_record(record) == newer


def test_unknown_trailing_values_of_a_nested_structure_are_kept():
    record = RegisterBrokerRecord(1, end_points=(ListenerEndpoint("A", "h", 1),))
    values = msgpack.unpackb(encode_record(record))
    values[5][0].append("new")
    newer = msgpack.packb(values)
    found = decode_record(newer)
    assert found.end_points[0].extra == Extra(("new",))
    assert encode_record(found) == newer


def test_unknown_tagged_fields_are_kept_in_either_codec():
    framed = encode_kafka(TopicRecord("orders", ID))[:-1] + bytes.fromhex("01 05 02 abcd")
    record = decode_record(framed)
    assert record.extra == Extra((), ((5, b"\xab\xcd"),))
    assert encode_kafka(record) == framed
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("key", [6, 13, 16, 30, 19999, 20015, 32767])
def test_an_unknown_type_is_distinguished_from_damage(key):
    with pytest.raises(UnknownRecordError) as native:
        decode_record(msgpack.packb([key, 0, "x"]))
    assert (native.value.api_key, native.value.version) == (key, 0)
    if key < 128:
        with pytest.raises(UnknownRecordError):
            decode_record(bytes([1, key, 0, 0]))


def test_unknown_version_names_type_and_version():
    for value in (msgpack.packb([3, 3, 0]), bytes([1, 3, 3, 0])):
        with pytest.raises(UnknownRecordError, match="PartitionRecord") as caught:
            decode_record(value)
        assert (caught.value.api_key, caught.value.version) == (3, 3)


def test_events_that_imply_changes_are_refused_by_the_kafka_codec():
    with pytest.raises(RecordCodecError, match="BrokerFencedEvent"):
        encode_kafka(BrokerFencedEvent(1, 2))
    with pytest.raises(UnknownRecordError):
        decode_record(bytes.fromhex("01 a3 9c 01 00 00"))


def frame_fields(value):
    """Api key, version and tags of a framed record without fields, by no code of ours."""
    frame, key, version, count = value[:4]
    assert frame == 1
    tags, at = [], 4
    for _ in range(count):
        tag = value[at] & 0x7F | (value[at + 1] & 0x7F) << 7 | value[at + 2] << 14
        size = value[at + 3]
        tags.append((tag, value[at + 4 : at + 4 + size]))
        at += 4 + size
    assert at == len(value)
    return key, version, tags


def test_one_of_our_records_is_a_no_op_with_a_tagged_field_in_kafkas_framing():
    """Kafka's readers know NoOpRecord and pass over tags that they do not know."""
    record = InitProducerRecord(7, 3)
    headers = (("principal", b"User:ann"), ("empty", None))
    value = encode_kafka(record, headers=headers)
    assert frame_fields(value) == (
        NoOpRecord.API_KEY,
        0,
        [
            (TAG_RECORD, encode_record(record)),
            (TAG_HEADERS, msgpack.packb([["principal", b"User:ann"], ["empty", None]])),
        ],
    )
    assert decode_record(value) == record
    assert batch_headers((), value) == headers


def test_carried_headers_reach_no_image():
    record = TopicRecord("orders", ID, extra=Extra((7,), ((5, b"x"),)))
    value = encode_kafka(record, headers=(("reason", b"why"),))
    assert decode_record(value) == record
    assert batch_headers((), value) == (("reason", b"why"),)
    assert batch_headers((), encode_kafka(record)) == ()
    assert batch_headers((("a", b"b"),), encode_record(record)) == (("a", b"b"),)


def carrier(*tags):
    return b"\x01\x14\x00" + encode_tagged_fields(tags)


@pytest.mark.parametrize(
    "value",
    [
        carrier((TAG_RECORD, b"")),
        carrier((TAG_RECORD, b"\x01\x14\x00\x00")),
        carrier((TAG_RECORD, encode_record(NoOpRecord()))),
        carrier((5, b"x"), (TAG_RECORD, encode_record(InitProducerRecord(1, 0)))),
        carrier((TAG_RECORD, encode_record(InitProducerRecord(1, 0)) + b"x")),
        b"\x01\x18\x00" + carrier((TAG_RECORD, encode_record(InitProducerRecord(1, 0))))[3:],
    ],
)
def test_a_malformed_carrier_is_a_codec_error(value):
    with pytest.raises(RecordCodecError):
        decode_record(value)


@pytest.mark.parametrize(
    "packed", [b"", b"\x01", b"\x91\x01", b"\x91\x92\x01\x02", b"\x91\x91\xa1a"]
)
def test_malformed_headers_are_a_codec_error(packed):
    value = carrier((TAG_HEADERS, packed))
    assert decode_record(value) == NoOpRecord()
    with pytest.raises(RecordCodecError):
        batch_headers((), value)


def test_a_newer_type_of_our_own_is_unknown_also_when_carried():
    with pytest.raises(UnknownRecordError) as caught:
        decode_record(carrier((TAG_RECORD, msgpack.packb([20999, 0, "x"]))))
    assert caught.value.api_key == 20999


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00",
        b"\x02\x0c\x00",
        b"\xc0",
        msgpack.packb([]),
        msgpack.packb([4]),
        msgpack.packb(["4", 0]),
        msgpack.packb([True, 0, "x", ID]),
        msgpack.packb([4, 0, 2, "orders", "retention.ms"]),
        msgpack.packb([4, 0, 200, "orders", "retention.ms", "1"]),
        msgpack.packb([4, 0, 2, b"orders", "retention.ms", "1"]),
        msgpack.packb([2, 0, "orders", ID[:15]]),
        msgpack.packb([4, 0, 2, "orders", "retention.ms", "1"]) + b"\x00",
        b"\x94\x02\x00\xa2\xff\xfe\xc4\x00",
        b"\x93\x04\x00",
        b"\xdd\xff\xff\xff\xff",
        msgpack.packb([3, 0, 1, ID, (1, 2**31), (), (), (), 1, 0, 0, 0]),
        encode_kafka(TopicRecord("orders", ID)) + b"\x00",
        encode_kafka(TopicRecord("orders", ID))[:-1],
        bytes.fromhex("01 0c 00 00 00 19 00"),
        bytes.fromhex("80 80 80 80 80 80"),
    ],
)
def test_malformed_values_are_codec_errors(value):
    with pytest.raises(RecordCodecError):
        decode_record(value)


@pytest.mark.parametrize("in_structure", [False, True])
def test_what_is_nested_too_deeply_to_write_back_is_refused(in_structure):
    """Whatever is taken in can be compared and written into a checkpoint."""
    outcomes = set()
    for depth in (1, 30, 31, 32, 33, 300, *range(1000, 1030)):
        deep = b"\x91" * depth + b"\x01"
        if in_structure:
            endpoint = b"\x95\xa1A\xa1h\x01\x00" + deep
            value = b"\x98\x1b\x00\x01\xc4\x10" + ID + b"\xc2\x91" + endpoint + b"\x90\xc0"
        else:
            value = b"\x95\x02\x00\xa1a\xc4\x10" + ID + deep
        try:
            record = decode_record(value)
        except RecordCodecError:
            outcomes.add("refused")
            continue
        outcomes.add("kept")
        assert encode_record(record) == value
        assert decode_record(encode_kafka(record)) == record
        assert depth < 300
    assert outcomes == {"refused", "kept"}


@pytest.mark.long
def test_no_bytes_raise_anything_else():
    """Noise, also behind beginnings of values: nearly all of it is refused, and nothing escapes."""
    outcomes = Counter()
    heads = st.sampled_from([b"", b"\x01", b"\x95", b"\x9d", b"\xdc\x00\x0d"])

    @given(st.binary(max_size=60), heads)
    @settings(max_examples=1500, deadline=None)
    def evaluate(tail, head):
        outcomes[_outcome(head + tail)] += 1

    evaluate()
    assert outcomes["refused"] >= 500, outcomes


def test_no_mutation_raises_anything_else():
    """Cut, insert and overwrite bytes of valid values of either codec."""
    outcomes = Counter()

    @given(records(), st.data())
    @settings(max_examples=600, deadline=None)
    def evaluate(record, data):
        value = encode_record(record)
        if not isinstance(record, BrokerEvent) and data.draw(st.booleans()):
            value = encode_kafka(record)
        start = data.draw(st.integers(0, len(value)))
        end = data.draw(st.integers(start, len(value)))
        mutant = value[:start] + data.draw(st.binary(max_size=6)) + value[end:]
        outcomes[_outcome(mutant)] += 1

    evaluate()
    assert outcomes["refused"] >= 100, outcomes
    assert outcomes["understood"] >= 10, outcomes


def _outcome(value: bytes) -> str:
    """What becomes of bytes; whatever is understood has to survive being written again."""
    try:
        record = decode_record(value)
    except UnknownRecordError:
        return "unknown"
    except RecordCodecError:
        return "refused"
    assert decode_record(encode_record(record)) == record
    return "understood"


@pytest.mark.parametrize(
    "record",
    [
        ConfigRecord(200, "a", "b", "c"),
        ConfigRecord(2, "a", "b", b"c"),
        ConfigRecord(2, "a", None, "c"),
        ConfigRecord(2, "a", "\ud800", "c"),
        TopicRecord("a", b"short"),
        PartitionRecord(0, ID, [1, 2]),
        PartitionRecord(0, ID, (1 << 31,)),
    ],
)
def test_what_does_not_fit_is_refused_when_written(record):
    """A record that no replica could read must never reach the log."""
    with pytest.raises(RecordCodecError):
        encode_record(record)
    if not isinstance(record, PartitionRecord) or type(record.replicas) is tuple:
        with pytest.raises(RecordCodecError):
            encode_kafka(record)


def test_a_version_without_room_for_the_content_is_refused():
    with_elr = PartitionRecord(0, ID, (1,), (1,), eligible_leader_replicas=(2,))
    for encode in (encode_record, encode_kafka):
        with pytest.raises(RecordCodecError, match="version 2"):
            encode(with_elr, 1)
        assert decode_record(encode(with_elr, 2)) == with_elr
        with pytest.raises(UnknownRecordError):
            encode(with_elr, 3)


def test_float_fields_keep_their_bits():
    value = struct.unpack(">d", bytes.fromhex("3ff00000000000ff"))[0]
    from statemachine.records import ClientQuotaRecord

    record = ClientQuotaRecord((), "rate", value)
    assert decode_record(encode_kafka(record)).value == value
    assert decode_record(encode_record(record)).value == value
