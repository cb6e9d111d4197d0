"""What an import copies of a source: every batch once, transactions resolved, checkpoint first."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.importer.errors import ImportRefusedError, SourceDamagedError
from quorate.importer.plan import plan_import
from quorate.importer.source import open_source
from quorum.batch import encode_batch
from quorum.errors import CorruptBatchError, SnapshotCorruptError, StorageError
from statemachine.codec import decode_record, encode_record
from statemachine.dump import state_digest
from statemachine.import_state import NO_CHECKPOINT, ImportState, SourcePosition
from statemachine.machine import StateMachine
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    InitProducerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.kafka_directory import (
    SAMPLE_BATCHES,
    SAMPLE_CLUSTER_ID,
    SAMPLE_END_OFFSET,
    KafkaDirectory,
    whole_sample,
)

LEVEL = FeatureLevelRecord("metadata.version", 19)


def in_log(offset):
    return SourcePosition(is_in_log=True, offset=offset)


def in_checkpoint(offset):
    return SourcePosition(is_in_log=False, offset=offset)


def topic(number):
    return TopicRecord(f"t{number}", number.to_bytes(16, "big"))


def steps_of(plan, position=None):
    return list(plan.steps(plan.start if position is None else position))


def names(steps):
    """Topic names by step."""
    return [
        [record.name for record in map(decode_record, step.values) if type(record) is TopicRecord]
        for step in steps
    ]


def assert_contiguous(plan, steps):
    position = plan.start
    for step in steps:
        assert step.begin == position
        assert step.end > step.begin
        position = step.end


# ---------------------------------------------------------------------- the real directory


def test_the_whole_sample_is_copied_batch_by_batch(tmp_path):
    """All 4,929 offsets: one control batch is left out, every other batch is one step."""
    source = open_source(whole_sample(tmp_path))
    plan = plan_import(source)
    steps = steps_of(plan)
    assert (source.cluster_id, source.end_offset) == (SAMPLE_CLUSTER_ID, SAMPLE_END_OFFSET)
    assert len(steps) == SAMPLE_BATCHES - 1
    assert_contiguous(plan, steps)
    assert steps[-1].end == in_log(SAMPLE_END_OFFSET)
    # One leader change and the two markers of the bootstrap transaction are not copied.
    assert sum(len(step.values) for step in steps) == SAMPLE_END_OFFSET - 3


def test_the_expected_image_is_that_of_a_direct_replay(tmp_path):
    directory = whole_sample(tmp_path)
    machine = StateMachine()
    machine.apply((directory / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes())
    plan = plan_import(open_source(directory))
    assert plan.image == machine.image
    assert plan.digest == state_digest(machine.image)
    assert len(plan.image.topics.ids) == 5


def test_a_bare_partition_directory_needs_a_cluster_id_option(tmp_path):
    directory = whole_sample(tmp_path)
    (directory / "meta.properties").unlink()
    with pytest.raises(ImportRefusedError, match="--source-cluster-id"):
        open_source(directory)
    assert open_source(directory, cluster_id="x").cluster_id == "x"


# ---------------------------------------------------------------------- transactions


def test_only_committed_transactions_are_copied(tmp_path):
    """One committed over three batches, one aborted over two, one inside a batch, one open."""
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(LEVEL, topic(1), BeginTransactionRecord("a"), topic(2))
    kafka.batch(topic(3))
    kafka.batch(topic(4), EndTransactionRecord(), topic(5))
    kafka.batch(BeginTransactionRecord("b"), topic(6))
    kafka.batch(topic(7), AbortTransactionRecord("no"), topic(8))
    kafka.batch(BeginTransactionRecord("c"), topic(9), AbortTransactionRecord("no"))
    kafka.batch(topic(10), BeginTransactionRecord("d"), topic(11))
    kafka.batch(topic(12))
    plan = plan_import(open_source(kafka.path))
    steps = steps_of(plan)
    assert names(steps) == [["t1", "t2"], ["t3"], ["t4", "t5"], ["t8"], ["t10"]]
    assert_contiguous(plan, steps)
    assert sorted(plan.image.topics.ids) == ["t1", "t10", "t2", "t3", "t4", "t5", "t8"]
    assert plan.scan.dropped() == [(9, 13), (14, 17), (18, 21)]


def test_a_copy_goes_on_in_the_middle_of_a_transaction(tmp_path):
    """The decision about a transaction is known also when its beginning was copied before."""
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(LEVEL)
    kafka.batch(BeginTransactionRecord("a"), topic(1))
    _, middle = kafka.batch(topic(2))
    kafka.batch(topic(3), EndTransactionRecord())
    state = ImportState("any text", NO_CHECKPOINT, in_log(middle))
    plan = plan_import(open_source(kafka.path), state)
    assert names(steps_of(plan)) == [["t3"]]
    assert sorted(plan.image.topics.ids) == ["t1", "t2", "t3"]


# ---------------------------------------------------------------------- checkpoints


def trimmed(folder):
    """Offsets below 100 are gone but for a checkpoint at 100; an older one lies around too."""
    kafka = KafkaDirectory(folder, start=99)
    kafka.checkpoint(99, LEVEL)
    kafka.checkpoint(100, LEVEL, RegisterBrokerRecord(1, broker_epoch=42), topic(1))
    kafka.batch(topic(2))
    kafka.batch(NoOpRecord())
    return kafka


def test_a_trimmed_log_begins_with_the_newest_checkpoint(tmp_path):
    plan = plan_import(open_source(trimmed(tmp_path / "kafka").path))
    steps = steps_of(plan)
    assert (plan.checkpoint_offset, plan.start) == (100, in_checkpoint(0))
    assert_contiguous(plan, steps)
    assert [step.end for step in steps] == [in_log(100), in_log(101), in_log(102)]
    assert names(steps) == [["t1"], ["t2"], []]
    assert sorted(plan.image.topics.ids) == ["t1", "t2"]
    assert plan.image.cluster.highest_broker_epoch == 42


def test_large_checkpoint_batches_are_cut_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr("quorate.importer.plan.CHECKPOINT_STEP_BYTES", 60)
    kafka = KafkaDirectory(tmp_path / "kafka", start=50)
    kafka.checkpoint(50, *[topic(number) for number in range(1, 8)])
    plan = plan_import(open_source(kafka.path))
    steps = steps_of(plan)
    assert len(steps) == 3
    assert_contiguous(plan, steps)
    copied = [name for step in names(steps) for name in step]
    assert copied == [f"t{number}" for number in range(1, 8)]
    assert names(steps_of(plan, steps[1].end)) == names(steps[2:])
    with pytest.raises(ImportRefusedError, match="no batch begins at checkpoint:2"):
        steps_of(plan, in_checkpoint(2))


def test_an_untrimmed_log_is_read_from_its_beginning(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(LEVEL, topic(1))
    kafka.checkpoint(kafka.end, LEVEL, topic(1))
    plan = plan_import(open_source(kafka.path))
    assert (plan.checkpoint_offset, plan.start) == (NO_CHECKPOINT, in_log(0))


def test_a_copy_goes_on_in_the_log_after_the_source_was_trimmed(tmp_path):
    """The copied part no longer matters, so the newer checkpoint is not copied again."""
    state = ImportState("any text", NO_CHECKPOINT, in_log(101))
    plan = plan_import(open_source(trimmed(tmp_path / "kafka").path), state)
    assert [step.begin for step in steps_of(plan)] == [in_log(101)]
    assert sorted(plan.image.topics.ids) == ["t1", "t2"]


def test_a_source_that_lost_what_comes_next_is_refused(tmp_path):
    source = open_source(trimmed(tmp_path / "kafka").path)
    with pytest.raises(ImportRefusedError, match=r"stopped at offset 7.*holds 99 to 102"):
        plan_import(source, ImportState("any text", NO_CHECKPOINT, in_log(7)))
    with pytest.raises(ImportRefusedError, match=r"checkpoint 60.*is gone"):
        plan_import(source, ImportState("any text", 60, in_checkpoint(3)))


def test_a_position_between_batches_is_no_place_to_go_on(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(topic(1), topic(2))
    plan = plan_import(open_source(kafka.path))
    with pytest.raises(ImportRefusedError, match="no batch begins at 2"):
        steps_of(plan, in_log(2))


def test_a_trimmed_log_without_checkpoint_is_refused(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka", start=9)
    with pytest.raises(ImportRefusedError, match="no checkpoint holds what came before"):
        plan_import(open_source(kafka.path))


# ---------------------------------------------------------------------- what is refused


def test_a_flipped_bit_is_refused_with_file_and_position(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(LEVEL)
    position = kafka.segment.stat().st_size
    kafka.batch(topic(1))
    kafka.batch(topic(2))
    data = bytearray(kafka.segment.read_bytes())
    data[position + 70] ^= 1
    kafka.segment.write_bytes(data)
    with pytest.raises(SourceDamagedError) as caught:
        open_source(kafka.path)
    assert str(kafka.segment) in str(caught.value)
    assert f"position {position}" in str(caught.value)
    assert "checksum" in str(caught.value).lower() or "crc" in str(caught.value).lower()


def test_a_cut_off_tail_is_refused(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(topic(1))
    kafka.segment.write_bytes(kafka.segment.read_bytes()[:-3])
    with pytest.raises(SourceDamagedError, match="position"):
        open_source(kafka.path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    kafka = trimmed(tmp_path / "kafka")
    path = kafka.partition / f"{100:020d}-{1:010d}.checkpoint"
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError) as caught:
        plan_import(open_source(kafka.path))
    assert isinstance(caught.value, SnapshotCorruptError | CorruptBatchError)
    assert str(path) in str(caught.value)


def test_records_that_contradict_each_other_are_refused_where_they_stand(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka")
    position = kafka.segment.stat().st_size
    kafka.batch(LEVEL, RemoveTopicRecord(b"x" * 16))
    with pytest.raises(SourceDamagedError) as caught:
        plan_import(open_source(kafka.path))
    assert str(kafka.segment) in str(caught.value)
    assert f"at position {position}" in str(caught.value)
    assert "offset 2" in str(caught.value)


def test_own_records_and_unsupported_levels_are_refused(tmp_path):
    kafka = KafkaDirectory(tmp_path / "level")
    kafka.batch(FeatureLevelRecord("metadata.version", 99))
    with pytest.raises(ImportRefusedError, match=r"metadata\.version must be from"):
        plan_import(open_source(kafka.path))
    ours = KafkaDirectory(tmp_path / "ours")
    with ours.segment.open("ab") as file:
        value = encode_record(InitProducerRecord(1, 0))
        file.write(encode_batch([value], base_offset=1, epoch=1, timestamp=1))
    with pytest.raises(ImportRefusedError, match="offset 1 holds a InitProducerRecord"):
        plan_import(open_source(ours.path))


def test_the_default_features_of_kafka_4_4_are_taken(tmp_path):
    levels = {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(*(FeatureLevelRecord(name, level) for name, level in levels.items()))
    assert dict(plan_import(open_source(kafka.path)).image.features.levels) == levels


def test_a_log_of_several_voters_is_taken_whole_only_when_asked(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka", voters=3)
    kafka.batch(LEVEL)
    with pytest.raises(ImportRefusedError, match="--uncommitted"):
        open_source(kafka.path)
    plan = plan_import(open_source(kafka.path, with_uncommitted=True))
    assert plan.image.features.metadata_version == 19


def test_compressed_batches_are_copied_as_well(tmp_path):
    kafka = KafkaDirectory(tmp_path / "kafka")
    kafka.batch(LEVEL, *[ConfigRecord(4, "", f"k{n}", "v") for n in range(50)], is_compressed=True)
    (step,) = steps_of(plan_import(open_source(kafka.path)))
    assert len(step.values) == 51


def test_nothing_to_import_is_refused(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportRefusedError):
        open_source(tmp_path / "empty")


def test_a_batch_beyond_what_one_command_takes_is_refused(tmp_path, monkeypatch):
    kafka = KafkaDirectory(tmp_path / "kafka")
    position = kafka.segment.stat().st_size
    kafka.batch(topic(1), topic(2), topic(3))
    source = open_source(kafka.path)
    monkeypatch.setattr("quorate.importer.plan.BATCH_RECORDS_MAX", 3)
    plan_import(source)
    monkeypatch.setattr("quorate.importer.plan.BATCH_RECORDS_MAX", 2)
    with pytest.raises(ImportRefusedError, match=f"position {position} has 3 records"):
        plan_import(source)
    monkeypatch.setattr("quorate.importer.plan.BATCH_RECORDS_MAX", 3)
    monkeypatch.setattr("quorate.importer.plan.IMPORT_BYTES_MAX", 4_096 + 60)
    with pytest.raises(ImportRefusedError, match="one command takes 3 of 60"):
        plan_import(source)
