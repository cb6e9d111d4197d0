"""Offsets and times in a source: ours and Kafka's, whole and trimmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.directory import plan_source
from audit.errors import AuditError
from quorate.timetravel.histories import authors_between, relation
from quorate.timetravel.moments import NEWEST, Moment, parse_moment, parse_time, time_text
from quorate.timetravel.positions import state_at
from quorum.errors import QuorumUsageError
from statemachine.dump import state_digest
from statemachine.records import ConfigRecord
from tests.support.audit_log import TIME_0, AuditLog
from tests.support.kafka_directory import SAMPLE_END_OFFSET, KafkaDirectory, whole_sample


def test_times_and_positions_as_text() -> None:
    assert parse_time("1970-01-01T00:00:01Z") == 1000
    assert parse_time("1970-01-01T01:00:01+01:00") == 1000
    assert parse_time("1970-01-01T00:00:01") == 1000
    assert parse_time("1700000000000") == 1_700_000_000_000
    assert parse_moment("17") == Moment(offset=17)
    assert parse_moment("1970-01-02") == Moment(time_ms=86_400_000)
    assert time_text(1000) == "1970-01-01T00:00:01.000+00:00"
    assert time_text(-1) is None
    for text in ("yesterday", "12:60", ""):
        with pytest.raises(QuorumUsageError, match="is no time"):
            parse_time(text)


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_every_offset_and_its_time_show_that_state(tmp_path: Path, with_checkpoint: bool) -> None:
    log = AuditLog(tmp_path, segment_bytes=1500)
    log.elect(1)
    world = log.world(5, 30)
    if with_checkpoint:
        log.checkpoint()
    log.more(world, 30)
    log.commit()
    for end in sorted(log.images):
        expected = log.images[end]
        found = state_at(tmp_path, Moment(offset=end))
        assert found.image.has_content_of(expected)
        assert found.image.provenance.end_offset == end
        # A batch is stamped with its base offset, so this time lies in front of the next batch.
        found = state_at(tmp_path, Moment(time_ms=TIME_0 + end - 1))
        assert found.offset == end
        assert found.image.has_content_of(expected)
    assert state_at(tmp_path).offset == log.end


def test_append_times_that_fall_end_at_the_first_later_record(tmp_path: Path) -> None:
    folder = KafkaDirectory(tmp_path / "k")
    folder.batch(ConfigRecord(4, "", "a", "1"))
    found = state_at(folder.path, Moment(time_ms=0))
    assert found.offset == 0
    assert state_at(folder.path, Moment(time_ms=1)).offset == folder.end


def test_a_trimmed_log_names_its_oldest_state(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    world = log.world(3, 40)
    snapshot_id = log.checkpoint()
    log.more(world, 40)
    log.commit()
    log.log.advance_start(snapshot_id)
    oldest = snapshot_id.offset
    assert state_at(tmp_path, Moment(offset=oldest)).offset == oldest
    with pytest.raises(AuditError, match=f"trimmed.*oldest state.*as of offset {oldest}"):
        state_at(tmp_path, Moment(offset=oldest - 1))
    with pytest.raises(AuditError, match=f"trimmed.*as of offset {oldest}, of 2023-"):
        state_at(tmp_path, Moment(time_ms=TIME_0))
    with pytest.raises(AuditError, match=f"newest one known to be committed is as of .*{log.end}"):
        state_at(tmp_path, Moment(offset=log.end + 1))


def test_only_what_is_committed_is_shown(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    committed = log.elect(1)
    log.commit()
    log.command(ConfigRecord(4, "", "x", "1"))
    log.log.flush()
    assert state_at(tmp_path).offset == committed
    with pytest.raises(AuditError, match="newest one known to be committed"):
        state_at(tmp_path, Moment(offset=log.end))
    assert state_at(tmp_path, with_uncommitted=True).offset == log.end


def test_kafkas_directory(tmp_path: Path) -> None:
    folder = whole_sample(tmp_path)
    newest = state_at(folder)
    assert newest.offset == SAMPLE_END_OFFSET
    middle = state_at(folder, Moment(offset=2000))
    assert relation(middle, newest) is True
    known = authors_between(middle, newest, same_history=True)
    assert known is not None
    assert state_at(folder, Moment(time_ms=0)).offset == 0


def test_several_kafka_voters_show_no_more_than_the_newest_checkpoint(tmp_path: Path) -> None:
    folder = KafkaDirectory(tmp_path / "k", voters=3)
    record = ConfigRecord(4, "", "a", "1")
    folder.batch(record)
    folder.checkpoint(folder.end, record)
    end = folder.end
    folder.batch(ConfigRecord(4, "", "b", "1"))
    assert state_at(folder.path).offset == end
    assert state_at(folder.path, with_uncommitted=True).offset == folder.end


def test_histories_are_told_apart(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a")
    log.elect(1)
    log.world(1, 20)
    log.commit()
    copied = state_at(log.copy(tmp_path / "copy"), NEWEST)
    other = log.fork(tmp_path / "b", 10, 2)
    other.world(2, 40)
    other.commit()
    first, second = state_at(tmp_path / "a"), state_at(tmp_path / "b")
    assert relation(first, copied) is True
    assert relation(first, second) is False
    assert authors_between(first, second, same_history=False) is None
    assert state_digest(copied.image) == state_digest(first.image)
    checkpoint = log.checkpoint()
    path = log.partition / f"{checkpoint.offset:020d}-{checkpoint.epoch:010d}.checkpoint"
    alone = state_at(path)
    assert relation(alone, copied) is True
    assert authors_between(alone, copied, same_history=True) == {}
    assert plan_source(path).segments == ()
