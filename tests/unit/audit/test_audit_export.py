"""An export is complete or absent, grows without repeating, and notices a truncated log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from audit import export_files
from audit.errors import AuditError, ExportDamagedError, LogTruncatedError
from audit.export import export_log
from audit.export_files import ExportFolder, parse_range
from audit.schema import HISTORY, TABLES, TYPED_TABLES
from quorum.log.layout import WATERMARK_NAMES
from statemachine.records import (
    BeginTransactionRecord,
    BrokerFencedEvent,
    ConfigRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.audit_log import AuditLog, expected_states, last_states

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "kafka-kraft-log"


def exported_rows(target: Path, table: str) -> list[dict[str, Any]]:
    return [
        row for path in ExportFolder(target).files(table) for row in pq.read_table(path).to_pylist()
    ]


def everything(target: Path) -> dict[str, list[dict[str, Any]]]:
    return {table: exported_rows(target, table) for table in TABLES}


def names(target: Path) -> set[str]:
    return {str(path.relative_to(target)) for path in target.rglob("*.parquet")}


@pytest.fixture
def world_log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    log.world(11, 80)
    log.commit()
    return log


def test_the_sample_of_a_kafka_log(tmp_path: Path) -> None:
    report = export_log(SAMPLE, tmp_path / "out")
    assert (report.start_offset, report.end_offset) == (0, 43)
    assert report.rows[HISTORY] == 43
    file = tmp_path / "out" / HISTORY / f"{0:020d}-{43:020d}-e{1:010d}.parquet"
    assert pq.read_table(file).num_rows == 43


def test_typed_tables_equal_the_replay(world_log: AuditLog, tmp_path: Path) -> None:
    export_log(world_log.home, tmp_path / "out", rows_per_file=25)
    assert len(ExportFolder(tmp_path / "out").ranges()) > 3
    for table in TYPED_TABLES:
        rows = exported_rows(tmp_path / "out", table)
        for offset in sorted(world_log.images)[::10]:
            assert last_states(rows, table, offset) == expected_states(
                world_log.image_at(offset), table
            )


def test_files_of_nothing_but_changes_of_partitions_have_no_more_rows(tmp_path: Path) -> None:
    """Goal: rows that are made as columns count while they wait."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    topic_id = b"\x41" * 16
    log.command(TopicRecord("t", topic_id), PartitionRecord(0, topic_id, (1, 2), (1, 2), leader=1))
    for _ in range(200):
        log.command(PartitionChangeRecord(0, topic_id, leader=2))
    log.commit()
    export_log(log.home, tmp_path / "out", rows_per_file=50)
    sizes = [
        pq.read_metadata(each).num_rows for each in ExportFolder(tmp_path / "out").files(HISTORY)
    ]
    assert sizes == [50, 50, 50, 50, 3]


def test_a_second_run_writes_nothing(world_log: AuditLog, tmp_path: Path) -> None:
    export_log(world_log.home, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    report = export_log(world_log.home, tmp_path / "out")
    assert (report.written, report.rows, report.removed) == ([], {}, [])
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*.parquet")} == before


def test_runs_add_up_to_one_run(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node", segment_bytes=2000)
    log.elect(1)
    world = log.world(5, 30)
    for _ in range(3):
        log.commit()
        export_log(log.home, tmp_path / "often")
        log.more(world, 30)
    log.commit()
    export_log(log.home, tmp_path / "often")
    export_log(log.home, tmp_path / "once")
    assert everything(tmp_path / "often") == everything(tmp_path / "once")
    assert len(ExportFolder(tmp_path / "often").ranges()) == 4


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make the n-th durable step of an export fail, once."""
    sync, replace = export_files._sync, Path.replace

    def arm(step: int) -> None:
        left = [step]

        def count() -> None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

        def counted_sync(path: Path) -> None:
            count()
            sync(path)

        def counted_replace(path: Path, target: Path) -> Path:
            count()
            return replace(path, target)

        monkeypatch.setattr(export_files, "_sync", counted_sync)
        monkeypatch.setattr(Path, "replace", counted_replace)

    yield arm
    monkeypatch.undo()


def test_a_crash_at_any_step_leaves_nothing_half(tmp_path: Path, crash_at: Any) -> None:
    """Every range is whole or absent after each crash, and the next run ends as if none was."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    for number in range(6):
        log.command(TopicRecord(f"t{number}", bytes([*range(15), number])))
        log.command(ConfigRecord(2, f"t{number}", "retention.ms", "1"))
    log.commit()
    export_log(log.home, tmp_path / "expected", rows_per_file=7)
    expected = everything(tmp_path / "expected")
    crashes = 0
    for step in range(1, 1000):
        target = tmp_path / f"out{step}"
        crash_at(step)
        try:
            export_log(log.home, target, rows_per_file=7)
        except KeyboardInterrupt:
            crashes += 1
        else:
            break
        finally:
            crash_at(10_000)
        end = max([found.end for found in ExportFolder(target).ranges()], default=0)
        for table, rows in everything(target).items():
            assert rows == [row for row in expected[table] if row["batch_end_offset"] <= end]
        export_log(log.home, target, rows_per_file=7)
        assert everything(target) == expected
        assert names(target) == names(tmp_path / "expected")
    assert crashes == 2 * (3 + 2 + 3 + 1)


def test_leftovers_are_removed_and_reported(world_log: AuditLog, tmp_path: Path) -> None:
    target = tmp_path / "out"
    export_log(world_log.home, target)
    good = names(target)
    orphan = target / "topics" / f"{999:020d}-{1000:020d}-e{1:010d}.parquet"
    orphan.write_bytes(b"half")
    (target / HISTORY / "_unfinished.parquet").write_bytes(b"half")
    report = export_log(world_log.home, target)
    assert set(report.removed) == {f"topics/{orphan.name}", f"{HISTORY}/_unfinished.parquet"}
    assert names(target) == good


def test_an_open_transaction_waits_for_its_end(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    settled = log.command(ConfigRecord(4, "", "a", "0"))
    log.command(BeginTransactionRecord("t"), ConfigRecord(4, "", "a", "1"))
    log.commit()
    assert export_log(log.home, tmp_path / "out").end_offset == settled
    assert max(row["offset"] for row in exported_rows(tmp_path / "out", HISTORY)) == settled - 1
    end = log.command(EndTransactionRecord())
    log.commit()
    assert export_log(log.home, tmp_path / "out").end_offset == end
    values = [
        (row["value"], row["old_value"]) for row in exported_rows(tmp_path / "out", "configs")
    ]
    assert values == [("0", None), ("1", "0")]


def test_a_gap_is_bridged_by_a_checkpoint(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node", segment_bytes=1500)
    log.elect(1)
    world = log.world(7, 40)
    seen = log.commit()
    export_log(log.home, tmp_path / "out")
    log.more(world, 40)
    snapshot_id = log.checkpoint()
    log.more(world, 20)
    log.commit()
    log.log.advance_start(snapshot_id)
    report = export_log(log.home, tmp_path / "out")
    assert [(found.start, found.end) for found in report.written] == [(seen, log.end)]
    for table in TYPED_TABLES:
        rows = exported_rows(tmp_path / "out", table)
        assert last_states(rows, table, seen) == expected_states(log.image_at(seen), table)
        behind = last_states(rows, table, log.end, reset=snapshot_id.offset)
        assert behind == expected_states(log.machine.image, table)


def test_a_gap_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node", segment_bytes=1500)
    log.elect(1)
    world = log.world(7, 40)
    log.commit()
    export_log(log.home, tmp_path / "out")
    log.more(world, 40)
    snapshot_id = log.checkpoint()
    log.more(world, 5)
    log.commit()
    log.log.advance_start(snapshot_id)
    next(log.partition.glob("*.checkpoint")).unlink()
    with pytest.raises(AuditError, match="were never exported"):
        export_log(log.home, tmp_path / "out")


@pytest.mark.parametrize("more", [0, 60])
def test_a_truncated_log_is_reported_with_the_first_divergent_offset(
    more: int, world_log: AuditLog, tmp_path: Path
) -> None:
    """Also when the new log is shorter than what was exported."""
    export_log(world_log.home, tmp_path / "out", rows_per_file=30)
    before = everything(tmp_path / "out")
    cut = sorted(world_log.images)[33]
    recovered = world_log.fork(tmp_path / "recovered", cut, 2)
    for number in range(more):
        recovered.command(ConfigRecord(4, "", "after", str(number)), ConfigRecord(4, "", "b", "1"))
    recovered.commit()
    with pytest.raises(LogTruncatedError, match=f"LOG_TRUNCATED.*offset is {cut} ") as caught:
        export_log(recovered.home, tmp_path / "out")
    assert (caught.value.offset, caught.value.epoch) == (cut, 1)
    assert everything(tmp_path / "out") == before


def test_other_records_in_the_same_epoch_are_noticed(tmp_path: Path) -> None:
    """By the log digest: offsets, epochs and sizes are all alike."""
    for name, value in (("left", "1"), ("right", "2")):
        log = AuditLog(tmp_path / name)
        log.elect(1)
        different = log.end
        log.command(ConfigRecord(4, "", "a", value))
        log.command(ConfigRecord(4, "", "b", "1"))
        log.commit()
    export_log(tmp_path / "left", tmp_path / "out")
    with pytest.raises(LogTruncatedError) as caught:
        export_log(tmp_path / "right", tmp_path / "out")
    assert caught.value.offset == different


def test_a_copy_that_lags_changes_nothing(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    world = log.world(2, 20)
    log.commit()
    old = log.copy(tmp_path / "old")
    log.more(world, 20)
    log.commit()
    export_log(log.home, tmp_path / "out")
    report = export_log(old, tmp_path / "out")
    assert (report.written, report.end_offset) == ([], log.end)


def test_another_cluster_is_refused(world_log: AuditLog, tmp_path: Path) -> None:
    export_log(world_log.home, tmp_path / "out")
    other = AuditLog(tmp_path / "other", cluster_id="another")
    other.elect(1)
    other.commit()
    with pytest.raises(AuditError, match="exported from cluster audit-test"):
        export_log(other.home, tmp_path / "out")


def test_two_exporters_do_not_mix(world_log: AuditLog, tmp_path: Path) -> None:
    with (
        ExportFolder(tmp_path / "out").locked(),
        pytest.raises(AuditError, match="another export"),
    ):
        export_log(world_log.home, tmp_path / "out")


def test_a_file_added_by_hand_is_refused(world_log: AuditLog, tmp_path: Path) -> None:
    export_log(world_log.home, tmp_path / "out", rows_per_file=20)
    first, second = ExportFolder(tmp_path / "out").files(HISTORY)[:2]
    first.with_name(first.name[:21] + second.name[21:]).write_bytes(second.read_bytes())
    with pytest.raises(ExportDamagedError, match="overlaps"):
        export_log(world_log.home, tmp_path / "out")


def test_a_damaged_export_file_is_named(world_log: AuditLog, tmp_path: Path) -> None:
    export_log(world_log.home, tmp_path / "out")
    file = ExportFolder(tmp_path / "out").files(HISTORY)[0]
    file.write_bytes(b"not parquet")
    with pytest.raises(ExportDamagedError, match=file.name):
        export_log(world_log.home, tmp_path / "out")


def test_uncommitted_records_are_exported_only_when_asked(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(ConfigRecord(4, "", "a", "1"))
    log.log.flush()
    for name in WATERMARK_NAMES:
        (log.partition / name).unlink()
    report = export_log(log.home, tmp_path / "out")
    assert report.end_offset == 0
    assert report.problems
    export_log(log.home, tmp_path / "out", with_unknown=True)
    states = {row["commit_state"] for row in exported_rows(tmp_path / "out", HISTORY)}
    assert states == {"unknown"}


def test_derived_changes_are_exported(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    topic_id = bytes(15) + b"\x07"
    log.command(RegisterBrokerRecord(1, broker_epoch=1, fenced=False))
    log.command(
        TopicRecord("t", topic_id),
        PartitionRecord(0, topic_id, (1,), (1,), leader=1, leader_epoch=0, partition_epoch=0),
    )
    log.command(BrokerFencedEvent(1, 1))
    log.commit()
    export_log(log.home, tmp_path / "out")
    derived = [row for row in exported_rows(tmp_path / "out", HISTORY) if row["is_derived"]]
    assert [(row["topic"], row["partition"], row["offset"]) for row in derived] == [
        ("t", 0, log.end - 1)
    ]


def test_progress_reaches_the_end(world_log: AuditLog, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    export_log(world_log.home, tmp_path / "out", progress=lambda *done: seen.append(done))
    assert seen[-1] == (world_log.end, world_log.end)


@pytest.mark.parametrize(
    "name", ["x", "_unfinished.parquet", "1-2-e1.parquet", f"{0:020d}-{1:020d}-e{1:09d}.parquet"]
)
def test_only_whole_names_are_ranges(name: str) -> None:
    assert parse_range(name) is None
