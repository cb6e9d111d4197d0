"""Writers under ``cluster.record_codec=kafka``: one number, one answer, on every replica."""

from __future__ import annotations

from quorum.batch import encode_batch, iterate_records, scan_batches
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch
from statemachine.codec_kafka import FRAME_VERSION
from statemachine.commands import CreateTopic, InitProducerId
from statemachine.dump import DigestedValues, state_digest
from statemachine.machine import StateMachine
from statemachine.producers import is_refusal
from tests.support.controller_bench import Bench, set_config


def written(bench):
    """A log with a named producer, an applied command, a refusal that is final, and a repeat."""
    ann = {"principal": "User:ann"}
    answer = bench.ask(InitProducerId("writer"), **ann)
    who = {"producer_id": answer.result["producer_id"], "producer_epoch": 0, **ann}
    first = bench.ask(CreateTopic("new", 1, 1), sequence=0, oldest_open=0, **who)
    again = bench.ask(CreateTopic("new", 1, 1), sequence=0, oldest_open=0, **who)
    assert first == again
    assert first.result["partition_count"] == 1
    no_topic = set_config(1, topic="no")
    refused = bench.ask(no_topic, sequence=1, oldest_open=0, is_repeat=True, **who)
    assert refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return who


def test_a_follower_replays_what_the_leader_knows_of_a_writer():
    bench = Bench(uses_native_codec=False)
    who = written(bench)
    machine = StateMachine()
    for _, _, data in bench.log.batches:
        for header in scan_batches(data):
            assert header.is_control or all(
                (record.value[0], record.headers) == (FRAME_VERSION, ())
                for record in iterate_records(data, header)
            )
        machine.apply(data)
    assert machine.image == bench.controller.image
    state = machine.image.producers.states.get(who["producer_id"])
    assert [is_refusal(entry.answer) for entry in state.applied] == [False, True]


def test_a_checkpoint_for_kafkas_readers_holds_what_a_writer_was_answered():
    bench = Bench(uses_native_codec=False)
    written(bench)
    image = bench.controller.image
    values = list(DigestedValues(image, kafka=True))
    position = image.provenance
    end, epoch, time = position.end_offset, position.epoch, position.timestamp_ms
    footer = SnapshotFooter(state_digest(image))
    pieces = [
        encode_control_batch([SnapshotHeader(time)], base_offset=0, epoch=epoch, timestamp=time),
        encode_batch(values, base_offset=1, epoch=epoch, timestamp=time),
        encode_control_batch([footer], base_offset=1 + len(values), epoch=epoch, timestamp=time),
    ]
    machine = StateMachine()
    machine.load(OffsetAndEpoch(end, epoch), pieces)
    assert machine.image == image
    assert image.producers.transactional_ids.get("writer") is not None
