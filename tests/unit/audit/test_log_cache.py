"""Rows kept between questions about a log are those that a replay makes; losing them costs time."""

from __future__ import annotations

import multiprocessing
import signal
import stat
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from audit import log_cache, questions
from audit.database import database_of_log
from audit.directory import plan_source
from audit.plan import ReadPlan
from audit.reader import read_tables
from audit.schema import TABLES
from quorum.log.layout import partition_directory
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

    def counted(plan: ReadPlan, tables: list[str], start: int, end: int) -> dict[str, pa.Table]:
        seen.append((start, end))
        return read_tables(plan, tables, start, end)

    monkeypatch.setattr(log_cache, "read_tables", counted)
    return seen


def check_answers(home: Path, cache: Path, processes: int = 1) -> None:
    """Every view and table, with the rows of before and without them."""
    plan = plan_source(home)
    kept_rows = database_of_log(plan, cache=cache, processes=processes)
    with database_of_log(plan) as fresh, kept_rows as kept:
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


@pytest.fixture
def any_log_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any log is worth a second process."""
    monkeypatch.setattr(log_cache, "OFFSETS_CUT_MIN", 2)


@pytest.mark.usefixtures("any_log_is_long")
def test_two_processes_make_the_rows_of_one(
    log: AuditLog, tmp_path: Path, replays: list[tuple[int, int]]
) -> None:
    """Goal: the same rows in the same order, also of a transaction that is cut in two."""
    cache = tmp_path / "cache"
    log.command(BeginTransactionRecord("t"))
    for number in range(log.end):
        log.command(ConfigRecord(4, "", "a", str(number)))
    log.command(EndTransactionRecord())
    log.commit()
    check_answers(log.home, cache, processes=2)
    middle = replays[0][1]
    assert replays == [(0, middle)] * GROUPS
    assert 0 < middle < log.end
    assert len(list(cache.glob("*/*/*"))) == 2 * GROUPS


@pytest.mark.usefixtures("any_log_is_long")
def test_both_processes_begin_at_the_baseline_of_a_trimmed_log(
    tmp_path: Path, replays: list[tuple[int, int]]
) -> None:
    log = trimmed_log(tmp_path / "node")
    for number in range(9):
        log.command(ConfigRecord(4, "", "a", str(number)))
    log.commit()
    start = plan_source(log.home).start_offset
    check_answers(log.home, tmp_path / "cache", processes=2)
    assert replays == [(0, replays[0][1])] * GROUPS
    assert (start + log.end) // 2 < replays[0][1] < log.end


def _cannot(plan: ReadPlan, tables: tuple[str, ...], made: list[object]) -> None:
    sys.exit(1)


def _never_ends(plan: ReadPlan, tables: tuple[str, ...], made: list[object]) -> None:
    signal.pause()


@pytest.mark.usefixtures("any_log_is_long")
def test_what_the_second_process_does_not_make_is_made_here(
    log: AuditLog,
    tmp_path: Path,
    replays: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: an answer all the same. Method: one that ends at once, and one that is interrupted."""
    monkeypatch.setattr(log_cache, "_make_quietly", _cannot)
    check_answers(log.home, tmp_path / "cache", processes=2)
    assert replays[1] == (replays[0][1], log.end)
    assert len(replays) == 2 * GROUPS
    # A process of a pool may have none of its own.
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", value=True)
    check_answers(log.home, tmp_path / "pooled", processes=2)
    assert len(replays) == 4 * GROUPS
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", value=False)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log_cache, "_make_quietly", _never_ends)
    monkeypatch.setattr(log_cache, "_make", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_answers(log.home, tmp_path / "another", processes=2)
    assert multiprocessing.active_children() == []


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


def test_a_cache_that_cannot_be_read_is_not_needed(
    log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> list[object]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(log_cache.LogCache, "_known", refused)
    plan = plan_source(log.home)
    query = questions.leadership_timeline(topic="topic-1")
    with database_of_log(plan) as fresh:
        expected = fresh.ask(query)
    for topic in (None, "topic-1"):
        with database_of_log(plan, topic=topic, cache=tmp_path / "cache") as found:
            assert found.ask(query).equals(expected)


@pytest.mark.parametrize("is_gone", [True, False])
def test_one_digest_that_is_not_known_turns_no_cache_off(tmp_path: Path, *, is_gone: bool) -> None:
    """Goal: the log's end has a digest while one segment's beginning has. Method: not the first."""
    log = trimmed_log(tmp_path / "node")
    for number in range(40):
        log.command(ConfigRecord(4, "", "a", str(number)))
    log.commit()
    segments = sorted(partition_directory(log.home).glob("*.log"))
    assert len(segments) > 1
    if is_gone:
        segments[0].with_suffix(".digest").unlink()
    plan = plan_source(log.home)
    assert log_cache.LogCache(tmp_path / "cache", plan).files(TABLES) is not None


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
