"""Committed bytes in, images out: positions, transactions, checkpoints and adoption."""

from __future__ import annotations

import gc

import msgpack
import pytest

from quorum.batch import encode_batch, read_header
from quorum.control import LeaderChange, SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.errors import (
    CorruptBatchError,
    QuorumUsageError,
    RecordCodecError,
    ReplayError,
    SnapshotCorruptError,
    UnknownRecordError,
)
from quorum.types import OffsetAndEpoch
from statemachine.codec import encode_kafka, encode_record
from statemachine.delta import ImageDelta
from statemachine.dump import count_records, dump_values, state_digest
from statemachine.image import EMPTY_IMAGE, Provenance
from statemachine.machine import StateMachine
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerFencedEvent,
    ConfigRecord,
    EndTransactionRecord,
    InitProducerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from statemachine.sections.producer_state import Applied
from tests.support.record_strategies import World

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


class Log:
    """Encodes batches one behind the other."""

    def __init__(self, end=0):
        self.end = end
        self.timestamp = 1000

    def batch(self, *records, encode=encode_record, **fields):
        return self.values(*map(encode, records), **fields)

    def values(self, *values, **fields):
        self.timestamp += 1
        data = encode_batch(
            list(values), base_offset=self.end, epoch=2, timestamp=self.timestamp, **fields
        )
        self.end += len(values)
        return data

    def leader_change(self):
        self.timestamp += 1
        data = encode_control_batch(
            [LeaderChange(1, (1, 2, 3), (1, 2))],
            base_offset=self.end,
            epoch=2,
            timestamp=self.timestamp,
        )
        self.end += 1
        return data


def test_applies_batches_of_either_codec_and_keeps_the_position():
    log, machine = Log(), StateMachine()
    machine.apply(log.leader_change())
    assert machine.image.provenance == Provenance(1, 2, 1001)
    before = machine.image
    machine.apply(
        log.batch(TopicRecord("a", A), NoOpRecord())
        + log.batch(TopicRecord("b", B), encode=encode_kafka)
    )
    assert machine.image.provenance == Provenance(4, 2, 1003)
    assert machine.end_offset == 4
    assert sorted(machine.image.topics.ids) == ["a", "b"]
    assert not before.topics.ids


def test_overlapping_data_is_applied_once_and_a_gap_is_refused():
    log, machine = Log(), StateMachine()
    first = log.batch(TopicRecord("a", A))
    second = log.batch(TopicRecord("b", B))
    third = log.batch(TopicRecord("c", C))
    machine.apply(first)
    with pytest.raises(QuorumUsageError, match="begins at 2, applied up to 1"):
        machine.apply(third)
    machine.apply(first + second)
    machine.apply(first)
    machine.apply(b"")
    assert machine.end_offset == 2


def test_stops_in_front_of_a_record_it_does_not_know():
    """What precedes the batch is applied, the batch is not, and it stays so when asked again."""
    log, machine = Log(), StateMachine()
    data = (
        log.batch(TopicRecord("a", A))
        + log.values(encode_record(TopicRecord("b", B)), msgpack.packb([30, 0, "new"]))
        + log.batch(TopicRecord("c", C))
    )
    for _ in range(2):
        with pytest.raises(UnknownRecordError, match="offset 2: unknown record type 30"):
            machine.apply(data)
        assert machine.image.provenance.end_offset == 1
        assert sorted(machine.image.topics.ids) == ["a"]


def test_stops_in_front_of_an_event_whose_rules_it_does_not_have():
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(RegisterBrokerRecord(1, broker_epoch=1, fenced=False)))
    with pytest.raises(UnknownRecordError, match=r"offset 1: .*derivation version 9"):
        machine.apply(log.batch(BrokerFencedEvent(1, 1, 9)))
    assert not machine.image.brokers[1].fenced


def test_stops_in_front_of_a_value_that_is_no_record():
    log, machine = Log(), StateMachine()
    with pytest.raises(RecordCodecError, match="offset 1"):
        machine.apply(log.batch(TopicRecord("a", A)) + log.values(b"\x90"))
    assert machine.end_offset == 1


def test_damaged_bytes_change_nothing():
    log, machine = Log(), StateMachine()
    data = bytearray(log.batch(TopicRecord("a", A)) + log.batch(TopicRecord("b", B)))
    data[-3] ^= 1
    with pytest.raises(CorruptBatchError):
        machine.apply(bytes(data))
    assert machine.image is EMPTY_IMAGE


def test_a_contradiction_names_record_and_offset_and_changes_nothing():
    log, machine = Log(), StateMachine()
    with pytest.raises(ReplayError, match="offset 2: PartitionChangeRecord: change to no"):
        machine.apply(
            log.batch(TopicRecord("a", A))
            + log.batch(TopicRecord("b", B), PartitionChangeRecord(0, A))
        )
    assert machine.image is EMPTY_IMAGE


def test_producer_state_comes_from_the_batch_header():
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(InitProducerRecord(0, 0)))
    machine.apply(
        log.batch(
            ConfigRecord(2, "t", "k", "v"),
            NoOpRecord(),
            producer_id=0,
            producer_epoch=0,
            base_sequence=3,
            headers=(("principal", b"User:a"), ("open", b"2"), ("answer", b"\x80")),
        )
    )
    state = machine.image.producers.states.get(0)
    assert (state.last_sequence, state.oldest_open, state.last_timestamp_ms) == (3, 2, 1002)
    assert state.applied == (Applied(3, 3, 2, b"\x80"),)


@pytest.mark.parametrize("value", [b"", b"-1", b"x", b"1" * 11, None])
def test_an_unreadable_open_header_is_corruption(value):
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(InitProducerRecord(0, 0)))
    with pytest.raises(ReplayError):
        machine.apply(
            log.batch(
                NoOpRecord(),
                producer_id=0,
                producer_epoch=0,
                base_sequence=0,
                headers=(("open", value),),
            )
        )


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("last", [EndTransactionRecord(), AbortTransactionRecord()])
def test_a_transaction_shows_whole_or_not_at_all(last, together):
    """The image stays in front of the batch that begins it, whether bytes come in one or many
    pieces; a checkpoint of it can never hold half a transaction."""
    log, machine = Log(), StateMachine()
    pieces = [
        log.batch(TopicRecord("a", A)),
        log.batch(TopicRecord("b", B), BeginTransactionRecord("boot"), TopicRecord("c", C)),
        log.batch(ConfigRecord(2, "c", "k", "v")),
    ]
    for data in [b"".join(pieces)] if together else pieces:
        machine.apply(data)
    assert machine.image.provenance.end_offset == 1
    assert sorted(machine.image.topics.ids) == ["a"]
    assert machine.open_transaction == "boot"
    assert machine.end_offset == 5
    machine.apply(log.batch(last))
    assert machine.open_transaction is None
    assert machine.image.provenance.end_offset == 6
    ended = isinstance(last, EndTransactionRecord)
    assert sorted(machine.image.topics.ids) == (["a", "b", "c"] if ended else ["a", "b"])
    assert bool(machine.image.configs.resources) == ended


def test_an_error_inside_a_transaction_keeps_it_open():
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(BeginTransactionRecord(), TopicRecord("a", A)))
    with pytest.raises(ReplayError):
        machine.apply(log.batch(PartitionChangeRecord(0, A)))
    assert machine.open_transaction == ""
    machine.apply(Log(2).batch(EndTransactionRecord()))
    assert machine.image.topics.id_of("a") == A


def test_uncommitted_image_sees_an_open_transaction_and_may_abort_it():
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(BeginTransactionRecord(), TopicRecord("a", A)))
    delta = machine.speculate()
    assert delta.topics.id_of("a") == A
    data = log.batch(AbortTransactionRecord("new leader"))
    delta.replay_batch(read_header(data), [AbortTransactionRecord("new leader")])
    speculated = delta.finish()
    assert machine.open_transaction == ""
    assert machine.apply(data) == speculated


def test_adopts_what_the_leader_replayed_ahead():
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(TopicRecord("a", A), ConfigRecord(2, "a", "k", "v")))
    machine.changes.start_over(2)
    data = log.batch(ConfigRecord(2, "a", "k", "w"))
    first = ImageDelta(machine.image)
    first.replay_batch(read_header(data), [ConfigRecord(2, "a", "k", "w")])
    more = log.batch(TopicRecord("b", B))
    second = ImageDelta(first.finish())
    second.replay_batch(read_header(more), [TopicRecord("b", B)])
    second.finish()
    with pytest.raises(QuorumUsageError):
        machine.adopt(second)
    machine.adopt(first)
    assert machine.changes.changed_records == 1
    # A control batch in between moves the position only.
    machine.adopt(second)
    assert machine.image is second.finished
    assert machine.end_offset == 4
    with pytest.raises(QuorumUsageError):
        machine.adopt(first)
    with pytest.raises(QuorumUsageError):
        machine.adopt(ImageDelta(machine.image))


def test_adopting_equals_replaying():
    log, leader, follower = Log(), StateMachine(), StateMachine()
    world = World(11, reuses_names=True)
    for _ in range(40):
        records = world.step()
        data = log.batch(*records)
        delta = leader.speculate()
        delta.replay_batch(read_header(data), records)
        delta.finish()
        leader.adopt(delta)
        follower.apply(data)
    assert leader.image == follower.image
    assert leader.changes.changed_records == follower.changes.changed_records


def checkpoint(image, *, footer=None, timestamp=77, kafka=False, batch_records=7):
    values = list(dump_values(image, kafka=kafka))
    pieces = [
        encode_control_batch(
            [SnapshotHeader(timestamp)], base_offset=0, epoch=2, timestamp=timestamp
        )
    ]
    end = 1
    for start in range(0, len(values), batch_records):
        part = values[start : start + batch_records]
        pieces.append(encode_batch(part, base_offset=end, epoch=2, timestamp=timestamp))
        end += len(part)
    footer = SnapshotFooter(state_digest(image)) if footer is None else footer
    pieces.append(encode_control_batch([footer], base_offset=end, epoch=2, timestamp=timestamp))
    return pieces


def world_image(seed=4):
    delta = ImageDelta(EMPTY_IMAGE)
    for record in World(seed, reuses_names=True).steps(80):
        delta.replay(record)
    return delta.finish(Provenance(500, 2, 77))


@pytest.mark.parametrize("kafka", [True, False])
def test_loading_a_checkpoint_replaces_the_image(kafka):
    image = world_image()
    log, machine = Log(), StateMachine()
    machine.apply(log.batch(TopicRecord("old", A), BeginTransactionRecord()))
    footer = SnapshotFooter(b"") if kafka else None
    loaded = machine.load(OffsetAndEpoch(500, 2), checkpoint(image, kafka=kafka, footer=footer))
    assert loaded is machine.image
    assert loaded.provenance == Provenance(500, 2, 77)
    assert loaded.topics == image.topics
    assert loaded == image
    assert machine.changes.snapshot_records == count_records(image)
    assert machine.open_transaction is None
    assert machine.end_offset == 500
    machine.apply(Log(500).batch(NoOpRecord()))
    assert machine.end_offset == 501
    assert gc.isenabled()


@pytest.mark.parametrize("kafka", [False, True])
@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (lambda pieces: pieces[1:], "first batch is not the snapshot header"),
        (lambda pieces: pieces[:-1], "no footer"),
        (lambda pieces: [], "no header"),
        (lambda pieces: [*pieces, pieces[-1]], "a batch follows the footer"),
        (lambda pieces: [*pieces[:-2], pieces[-1]], "state digest"),
    ],
)
def test_an_incomplete_checkpoint_is_refused_and_the_image_stays(spoil, cause, kafka):
    machine = StateMachine()
    machine.apply(Log().batch(TopicRecord("a", A)))
    before = machine.image
    with pytest.raises(SnapshotCorruptError, match=cause):
        machine.load(OffsetAndEpoch(500, 2), spoil(checkpoint(world_image(), kafka=kafka)))
    assert machine.image is before


@pytest.mark.parametrize(
    "record",
    [NoOpRecord(), BeginTransactionRecord(), BrokerFencedEvent(1, 1), PartitionChangeRecord(0, A)],
)
def test_a_checkpoint_states_things_whole(record):
    pieces = [
        encode_control_batch([SnapshotHeader(1)], base_offset=0, epoch=1, timestamp=1),
        encode_batch([encode_record(record)], base_offset=1, epoch=1, timestamp=1),
    ]
    with pytest.raises(SnapshotCorruptError, match=type(record).__name__):
        StateMachine().load(OffsetAndEpoch(5, 1), pieces)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (msgpack.packb([30, 0]), UnknownRecordError),
        (b"\x90", RecordCodecError),
        (encode_record(ConfigRecord(2, "t", "k", "v"))[:-1], RecordCodecError),
        (msgpack.packb([3, 0, 0, A, (), (), (), (), 1, 0, 0, 0]), ReplayError),
    ],
)
def test_errors_in_a_checkpoint_name_the_record(value, error):
    pieces = [
        encode_control_batch([SnapshotHeader(1)], base_offset=0, epoch=1, timestamp=1),
        encode_batch(
            [encode_record(TopicRecord("x", B)), value], base_offset=1, epoch=1, timestamp=1
        ),
    ]
    with pytest.raises(error, match="record 1"):
        StateMachine().load(OffsetAndEpoch(5, 1), pieces)


@pytest.mark.parametrize("kafka", [False, True])
def test_wrong_footer_digest_is_only_checked_when_asked(kafka):
    pieces = checkpoint(world_image(), kafka=kafka, footer=SnapshotFooter(b"x" * 16))
    with pytest.raises(SnapshotCorruptError):
        StateMachine().load(OffsetAndEpoch(500, 2), pieces)
    StateMachine().load(OffsetAndEpoch(500, 2), pieces, verify_digest=False)


@pytest.mark.parametrize("seed", range(8))
def test_loading_and_then_applying_equals_applying_everything(seed):
    """630.15: a checkpoint and the log behind it give the image of the whole log."""
    world, log = World(seed, reuses_names=True), Log()
    whole = StateMachine()
    data = [log.batch(*world.step()) for _ in range(60)]
    for piece in data[:30]:
        whole.apply(piece)
    middle = whole.image
    late, position = StateMachine(), middle.provenance
    pieces = checkpoint(middle, timestamp=position.timestamp_ms)
    late.load(OffsetAndEpoch(position.end_offset, position.epoch), pieces)
    assert late.image == middle
    for piece in data[30:]:
        whole.apply(piece)
    late.apply(b"".join(data[30:]))
    assert late.image == whole.image
    assert state_digest(late.image) == state_digest(whole.image)
