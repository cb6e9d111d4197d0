"""A real Kafka controller's log and checkpoint, read with the same code as our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.batch import record_values, scan_batches
from statemachine.codec import decode_record, encode_kafka, encode_record
from statemachine.machine import StateMachine
from statemachine.records import RECORD_TYPES, FeatureLevelRecord

DIRECTORY = Path(__file__).parents[2] / "data" / "kafka-kraft-log"


def values_of(name):
    data = (DIRECTORY / name).read_bytes()
    return [
        value
        for header in scan_batches(data)
        if not header.is_control
        for value in record_values(data, header)
    ]


@pytest.mark.parametrize("name", ["00000000000000000000.log", "bootstrap.checkpoint"])
def test_every_record_is_written_back_byte_for_byte(name):
    values = values_of(name)
    assert values
    for value in values:
        record = decode_record(value)
        version = value[2]
        assert version in RECORD_TYPES[record.API_KEY].versions
        assert encode_kafka(record, version) == value
        assert decode_record(encode_record(record)) == record


def test_the_bootstrap_checkpoint_holds_the_feature_level():
    assert [decode_record(value) for value in values_of("bootstrap.checkpoint")] == [
        FeatureLevelRecord("metadata.version", 19)
    ]


def test_the_log_replays_to_a_registered_broker():
    machine = StateMachine()
    machine.apply((DIRECTORY / "00000000000000000000.log").read_bytes())
    assert machine.open_transaction is None
    assert machine.image.features.metadata_version == 19
    assert sorted(machine.image.brokers) == [1]
    assert machine.image.cluster.highest_broker_epoch == machine.image.brokers[1].epoch
