"""Any metadata log becomes rows: complete, attributed, and equal to a replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit.arrow_schema import arrow_schema
from audit.directory import plan_source
from audit.errors import AuditError
from audit.history_rows import _SOURCES, KEY_COLUMNS
from audit.reader import read_state
from audit.schema import HISTORY, TABLES, TYPED_TABLES, columns
from audit.typed_tables import EFFECTS, WITHOUT_EFFECT
from quorum.errors import LogDamagedError, StorageError
from quorum.log.layout import WATERMARK_NAMES
from statemachine.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    BeginImportRecord,
    BeginTransactionRecord,
    BrokerFencedEvent,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.support.audit_log import (
    TIME_0,
    AuditLog,
    expected_states,
    file_ranges,
    last_states,
    table_rows,
)

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "kafka-kraft-log"
TOPIC_ID = bytes(range(16))
RECORD_CLASSES = {record_type.record_class for record_type in RECORD_TYPES.values()}


def small_cluster(log: AuditLog) -> None:
    log.elect(1)
    for broker in (1, 2, 3):
        log.command(RegisterBrokerRecord(broker, broker_epoch=broker, fenced=False))
    log.command(
        TopicRecord("orders", TOPIC_ID),
        *(
            PartitionRecord(
                index, TOPIC_ID, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0
            )
            for index in range(3)
        ),
        principal="User:alice",
        client_id="tool",
        request_id="r1",
        reason="new shop",
    )


def test_every_record_type_has_rows() -> None:
    assert set(EFFECTS) | WITHOUT_EFFECT == RECORD_CLASSES
    assert not set(EFFECTS) & WITHOUT_EFFECT
    for record_class in RECORD_CLASSES:
        filled = [column for column, _ in _SOURCES[record_class.API_KEY]]
        assert set(filled) <= set(KEY_COLUMNS)
        assert len(set(filled)) == len(filled)
        assert all(hasattr(record_class(), field) for _, field in _SOURCES[record_class.API_KEY])


def test_a_key_column_is_filled_from_the_field_that_names_the_thing() -> None:
    assert _SOURCES[RegisterBrokerRecord.API_KEY] == [("broker_id", "broker_id")]
    assert _SOURCES[TopicRecord.API_KEY] == [("topic_id", "topic_id"), ("topic", "name")]
    assert _SOURCES[UserScramCredentialRecord.API_KEY] == [("entity", "name")]
    assert _SOURCES[EndTransactionRecord.API_KEY] == []


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_described_and_named_once(table: str) -> None:
    names = [column.name for column in columns(table)]
    assert len(set(names)) == len(names)
    assert all(column.meaning.endswith(".") for column in columns(table))
    assert arrow_schema(table).names == names


def test_a_kafka_log_is_read_whole() -> None:
    rows = table_rows(plan_source(SAMPLE), HISTORY)
    assert [row["offset"] for row in rows] == list(range(43))
    assert len({row["batch_base_offset"] for row in rows}) == 40
    assert rows[0]["is_control"]
    assert rows[0]["record_type"] == "LeaderChange"
    assert json.loads(rows[0]["payload"])["data"]["voters"] == [1]
    assert rows[2]["record_type"] == "FeatureLevelRecord"
    assert rows[2]["feature"] == "metadata.version"
    assert {row["commit_state"] for row in rows} == {"committed"}
    assert not any(row["is_derived"] or row["is_baseline"] for row in rows)


def test_the_digest_of_a_row_is_that_of_the_log(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, segment_bytes=600)
    small_cluster(log)
    log.commit()
    for row in table_rows(plan_source(tmp_path), HISTORY):
        assert row["digest"] == log.log.digest_at(row["batch_end_offset"]).hex()


def test_every_row_of_a_command_has_principal_and_reason(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    small_cluster(log)
    log.commit()
    plan = plan_source(tmp_path)
    made = [row for row in table_rows(plan, HISTORY) if row["record_type"] == "PartitionRecord"]
    typed = table_rows(plan, "partitions")
    assert len(made) == len(typed) == 3
    for row in (*made, *typed):
        assert row["principal"] == "User:alice"
        assert (row["client_id"], row["request_id"], row["reason"]) == ("tool", "r1", "new shop")
        assert row["topic"] == "orders"
        assert row["append_time"].timestamp() * 1000 == TIME_0 + row["batch_base_offset"]


def test_a_broker_event_gives_the_changes_that_follow_from_it(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    small_cluster(log)
    end = log.command(BrokerFencedEvent(1, 1), principal="User:controller")
    log.commit()
    plan = plan_source(tmp_path)
    rows = [row for row in table_rows(plan, HISTORY) if row["offset"] == end - 1]
    assert [row["change_index"] for row in rows] == [0, 1, 2, 3]
    assert [row["is_derived"] for row in rows] == [False, True, True, True]
    assert {row["record_type"] for row in rows[1:]} == {"PartitionChangeRecord"}
    assert json.loads(rows[1]["payload"])["data"]["leader"] == 2
    changed = [row for row in table_rows(plan, "partitions") if row["offset"] == end - 1]
    assert [(row["partition"], row["leader"], row["isr"]) for row in changed] == [
        (0, 2, [2]),
        (1, 2, [2]),
        (2, 2, [2]),
    ]
    assert all(row["is_derived"] and row["record_type"] == "BrokerFencedEvent" for row in changed)
    assert all(row["principal"] == "User:controller" for row in changed)
    fenced = table_rows(plan, "brokers")[-1]
    assert (fenced["broker_id"], fenced["fenced"], fenced["is_derived"]) == (1, True, False)


def test_an_import_voids_the_features_of_formatting(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    log.command(FeatureLevelRecord("metadata.version", 20))
    log.command(BeginImportRecord("elsewhere"), principal="User:alice")
    log.commit()
    rows = table_rows(plan_source(tmp_path), "features")
    assert [(row["feature"], row["level"], row["change"]) for row in rows] == [
        ("metadata.version", 20, "set"),
        ("metadata.version", None, "delete"),
    ]
    assert rows[-1]["record_type"] == "BeginImportRecord"
    assert last_states(rows, "features", log.end) == []


def test_a_removed_topic_takes_partitions_and_configuration_along(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    small_cluster(log)
    log.command(ConfigRecord(2, "orders", "retention.ms", "1"))
    log.command(ConfigRecord(2, "orders", "retention.ms", "2"))
    log.command(RemoveTopicRecord(TOPIC_ID), principal="User:bob")
    log.commit()
    plan = plan_source(tmp_path)
    configs = table_rows(plan, "configs")
    assert [(row["old_value"], row["value"], row["change"]) for row in configs] == [
        (None, "1", "set"),
        ("1", "2", "set"),
        ("2", None, "delete"),
    ]
    assert configs[-1]["principal"] == "User:bob"
    gone = [row for row in table_rows(plan, "partitions") if row["change"] == "delete"]
    assert [(row["topic"], row["partition"], row["leader"]) for row in gone] == [
        ("orders", 0, None),
        ("orders", 1, None),
        ("orders", 2, None),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_typed_rows_add_up_to_the_image_at_every_offset(seed: int, tmp_path: Path) -> None:
    """Several segments and a checkpoint in the middle, so that replay starts differ by range."""
    log = AuditLog(tmp_path, segment_bytes=2500)
    log.elect(1)
    world = log.world(seed, 60, reuses_names=True)
    log.checkpoint()
    log.elect(2)
    log.more(world, 60)
    log.commit()
    plan = plan_source(tmp_path)
    assert len(plan.segments) > 3
    for table in TYPED_TABLES:
        whole = table_rows(plan, table)
        pieces = [row for bounds in file_ranges(plan) for row in table_rows(plan, table, *bounds)]
        assert pieces == whole
        for offset in sorted(log.images)[::7]:
            expected = expected_states(log.image_at(offset), table)
            assert last_states(whole, table, offset) == expected, (table, offset)
            stated = [row for batch in read_state(plan, table, offset) for row in batch.to_pylist()]
            assert last_states(stated, table, offset) == expected, (table, offset)
    history = table_rows(plan, HISTORY)
    pieces = [row for bounds in file_ranges(plan) for row in table_rows(plan, HISTORY, *bounds)]
    assert pieces == history


def test_a_transaction_is_visible_when_it_ends_and_never_when_aborted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, segment_bytes=300)
    log.elect(1)
    log.command(ConfigRecord(4, "", "a", "0"), BeginTransactionRecord("one"))
    log.command(ConfigRecord(4, "", "a", "1"))
    log.command(ConfigRecord(4, "", "b", "1"))
    aborted = log.command(AbortTransactionRecord())
    log.command(BeginTransactionRecord("two"))
    middle = log.command(ConfigRecord(4, "", "a", "2"))
    ended = log.command(EndTransactionRecord())
    log.commit()
    plan = plan_source(tmp_path)
    whole = table_rows(plan, "configs")
    assert [(row["config_name"], row["value"], row["effective_offset"]) for row in whole] == [
        ("a", "0", aborted),
        ("a", "2", ended),
    ]
    pieces = [row for bounds in file_ranges(plan) for row in table_rows(plan, "configs", *bounds)]
    assert pieces == whole
    assert len(table_rows(plan, HISTORY)) == log.end
    for offset in (aborted - 1, aborted, middle, ended):
        expected = expected_states(log.image_at(offset), "configs")
        assert last_states(whole, "configs", offset) == expected
        stated = [row for batch in read_state(plan, "configs", offset) for row in batch.to_pylist()]
        assert last_states(stated, "configs", offset) == expected


def test_a_checkpoint_replaces_trimmed_records(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, segment_bytes=2000)
    log.elect(1)
    world = log.world(3, 50)
    snapshot_id = log.checkpoint()
    log.more(world, 50)
    log.commit()
    log.log.advance_start(snapshot_id)
    plan = plan_source(tmp_path)
    assert plan.start_offset == snapshot_id.offset
    history = table_rows(plan, HISTORY)
    baseline = [row for row in history if row["is_baseline"]]
    assert history[: len(baseline)] == baseline
    assert baseline[0]["record_type"] == "SnapshotHeader"
    assert {row["offset"] for row in baseline} == {snapshot_id.offset - 1}
    assert [row["change_index"] for row in baseline] == list(range(len(baseline)))
    logged = {row["offset"] for row in history if not row["is_baseline"]}
    assert logged == set(range(snapshot_id.offset, log.end))
    for table in TYPED_TABLES:
        rows = table_rows(plan, table)
        for offset in (snapshot_id.offset, log.end):
            assert last_states(rows, table, offset) == expected_states(log.image_at(offset), table)
    with pytest.raises(AuditError, match=r"trimmed, so the state as of offset .* oldest state"):
        list(read_state(plan, "topics", snapshot_id.offset - 1))


def test_a_single_checkpoint_or_segment_can_be_read(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    small_cluster(log)
    snapshot_id = log.checkpoint()
    log.commit()
    files = {path.suffix: path for path in log.partition.iterdir()}
    copy = tmp_path / "some.name"
    copy.write_bytes(files[".checkpoint"].read_bytes())
    for path in (files[".checkpoint"], copy):
        rows = table_rows(plan_source(path), "partitions")
        assert last_states(rows, "partitions", log.end) == expected_states(
            log.machine.image, "partitions"
        )
    assert {row["offset"] for row in rows} <= {snapshot_id.offset - 1, 0}
    segment = plan_source(files[".log"], with_unknown=True)
    assert [row["offset"] for row in table_rows(segment, HISTORY)] == list(range(log.end))
    assert {row["commit_state"] for row in table_rows(segment, HISTORY)} == {"unknown"}


def test_only_what_is_below_the_high_watermark_is_read(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    small_cluster(log)
    marked = log.commit()
    log.command(ConfigRecord(4, "", "a", "1"))
    log.log.flush()
    rows = table_rows(plan_source(tmp_path), HISTORY)
    assert max(row["offset"] for row in rows) == marked - 1
    more = table_rows(plan_source(tmp_path, with_unknown=True), HISTORY)
    assert [row["commit_state"] for row in more if row["offset"] >= marked] == ["unknown"]
    assert {row["commit_state"] for row in more if row["offset"] < marked} == {"committed"}


@pytest.mark.parametrize("voters", [(1,), (2,), (1, 2, 3)])
def test_the_committed_end_of_a_foreign_directory_is_read(
    voters: tuple[int, ...], tmp_path: Path
) -> None:
    """Without a stored high watermark: all for its sole voter, else up to the checkpoint."""
    log = AuditLog(tmp_path)
    log.elect(1, voters)
    log.command(ConfigRecord(4, "", "a", "1"))
    snapshot_id = log.checkpoint()
    log.command(ConfigRecord(4, "", "a", "2"))
    log.log.flush()
    for name in WATERMARK_NAMES:
        (log.partition / name).unlink()
    plan = plan_source(tmp_path)
    assert plan.end_offset == (log.end if voters == (1,) else snapshot_id.offset)
    assert bool(plan.problems) == (voters != (1,))
    assert plan_source(tmp_path, with_unknown=True).end_offset == log.end


def test_damage_is_named_by_file_and_place(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    small_cluster(log)
    log.commit()
    plan_before = plan_source(tmp_path)
    path = next(log.partition.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogDamagedError, match=r"\.log.*position \d+"):
        plan_source(tmp_path)
    with pytest.raises(StorageError, match=r"\.log.*position \d+: checksum"):
        table_rows(plan_before, HISTORY)


def test_a_log_cut_after_planning_is_an_error_not_a_shorter_answer(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    small_cluster(log)
    log.commit()
    plan = plan_source(tmp_path)
    path = next(log.partition.glob("*.log"))
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(StorageError):
        table_rows(plan, HISTORY)


def test_credentials_are_hidden(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    log.command(UserScramCredentialRecord("u", 1, b"saltysalt", b"storedkey", b"serverkey", 4096))
    log.commit()
    row = table_rows(plan_source(tmp_path), HISTORY)[-1]
    assert row["entity"] == "u"
    assert json.loads(row["payload"])["data"]["salt"] == "(hidden)"


def test_ranges_and_types_limit_history(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, segment_bytes=300)
    small_cluster(log)
    log.commit()
    plan = plan_source(tmp_path)
    rows = table_rows(plan, HISTORY, 2, 6)
    assert [row["offset"] for row in rows] == [2, 3, 4, 5]
    rows = table_rows(plan, HISTORY, types=("TopicRecord", "LeaderChange"))
    assert [row["record_type"] for row in rows] == ["LeaderChange", "TopicRecord"]


def test_an_end_inside_a_batch_leaves_its_changes_out(tmp_path: Path) -> None:
    """As of such an offset the whole batch is not visible yet; its records below it are there."""
    log = AuditLog(tmp_path)
    small_cluster(log)
    log.commit()
    plan = plan_source(tmp_path)
    assert table_rows(plan, "topics", 0, log.end - 1) == []
    assert table_rows(plan, "topics", 0, log.end) != []
    assert table_rows(plan, HISTORY, 0, log.end - 1)[-1]["offset"] == log.end - 2
    assert list(read_state(plan, "topics", log.end - 1)) == []


def test_an_empty_source_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="neither log segments nor checkpoints"):
        plan_source(tmp_path)
    with pytest.raises(AuditError, match="no such file"):
        plan_source(tmp_path / "nowhere")
