"""Rows kept between questions about a log are those that a replay makes; losing them costs time."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pytest

from audit import log_cache, questions
from audit.database import database_of_log
from audit.directory import plan_source
from audit.plan import ReadPlan
from audit.reader import read_tables
from audit.schema import TABLES
from statemachine.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from tests.support.audit_answers import trimmed_log
from tests.support.audit_log import AuditLog
from tests.support.kafka_directory import KafkaDirectory

GROUPS = 3
"""Partitions, the other typed tables, and the history are replayed each for themselves."""


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    log.world(8, 30)
    log.commit()
    return log


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that are replayed into rows."""
    seen: list[tuple[int, int]] = []

    def counted(plan: ReadPlan, tables: list[str], start: int | None = None) -> dict[str, pa.Table]:
        seen.append((plan.first_offset if start is None else start, plan.end_offset))
        return read_tables(plan, tables, start)

    monkeypatch.setattr(log_cache, "read_tables", counted)
    return seen


def check_answers(home: Path, cache: Path) -> None:
    """Every view and table, with the rows of before and without them."""
    plan = plan_source(home)
    with database_of_log(plan) as fresh, database_of_log(plan, cache=cache) as kept:
        for table in TABLES:
            query = questions.whole_table(table)
            assert kept.ask(query).equals(fresh.ask(query)), table
        for name, query in questions.views():
            assert kept.ask(query).equals(fresh.ask(query)), name


def test_a_growing_log_is_replayed_once(
    log: AuditLog, tmp_path: Path, replays: list[tuple[int, int]]
) -> None:
    cache = tmp_path / "cache" / "audit"
    first = log.end
    check_answers(log.home, cache)
    assert replays == [(0, first)] * GROUPS
    check_answers(log.home, cache)
    assert len(replays) == GROUPS
    log.elect(2)
    log.command(ConfigRecord(4, "", "a", "1"), principal="User:x")
    second = log.commit()
    check_answers(log.home, cache)
    assert replays[GROUPS:] == [(first, second)] * GROUPS
    for number in range(log_cache.RANGES_MAX):
        log.command(ConfigRecord(4, "", "a", str(number)))
        log.commit()
        check_answers(log.home, cache)
    kept = list(cache.glob("*/partitions/*"))
    assert len(kept) < log_cache.RANGES_MAX
    assert stat.S_IMODE((cache / kept[0].parts[-3]).stat().st_mode) == 0o700


def test_a_transaction_that_is_open_between_two_questions(log: AuditLog, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    log.command(BeginTransactionRecord("t"))
    log.command(ConfigRecord(4, "", "a", "1"))
    log.commit()
    check_answers(log.home, cache)
    log.command(ConfigRecord(4, "", "b", "2"))
    log.command(EndTransactionRecord())
    log.commit()
    check_answers(log.home, cache)


def test_a_log_that_was_cut_is_replayed_again(
    log: AuditLog, tmp_path: Path, replays: list[tuple[int, int]]
) -> None:
    cache = tmp_path / "cache"
    check_answers(log.home, cache)
    recovered = log.fork(tmp_path / "recovered", sorted(log.images)[20], 2)
    while recovered.end < log.end + 5:
        recovered.command(ConfigRecord(4, "", "a", str(recovered.end)))
    recovered.commit()
    log.home.rename(tmp_path / "lost")
    recovered.home.rename(log.home)
    check_answers(log.home, cache)
    assert replays[GROUPS:] == [(0, recovered.end)] * GROUPS


def test_a_trimmed_log_has_its_own_rows(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    log = trimmed_log(tmp_path / "node")
    check_answers(log.home, cache)
    snapshot_id = log.checkpoint()
    log.command(ConfigRecord(4, "", "a", "1"))
    log.commit()
    check_answers(log.home, cache)
    log.log.advance_start(snapshot_id)
    check_answers(log.home, cache)
    assert len(list(cache.iterdir())) == 2


def test_damaged_rows_are_made_again(log: AuditLog, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    check_answers(log.home, cache)
    for path in cache.glob("*/*/*/*.parquet"):
        path.write_bytes(path.read_bytes()[:-9])
    check_answers(log.home, cache)


def test_a_cache_that_cannot_be_written_is_not_needed(log: AuditLog, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("in the way")
    check_answers(log.home, cache)


def test_what_may_still_change_is_not_kept(tmp_path: Path) -> None:
    kafka = KafkaDirectory(tmp_path / "n", voters=3)
    kafka.batch(FeatureLevelRecord("metadata.version", 20))
    plan = plan_source(kafka.path, with_unknown=True)
    assert log_cache.LogCache(tmp_path / "cache", plan).files(TABLES) is None
    assert not (tmp_path / "cache").exists()


def test_the_rows_of_few_logs_are_kept(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for number in range(log_cache.LOGS_MAX + 2):
        log = AuditLog(tmp_path / f"node{number}")
        log.elect(1)
        log.commit()
        with database_of_log(plan_source(log.home), ["topics"], cache=cache):
            pass
    assert len(list(cache.iterdir())) == log_cache.LOGS_MAX
