"""Exporting the directory of a node that trims its log at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import audit.directory
import audit.export
from audit.directory import plan_source
from audit.errors import AuditError
from audit.export import export_log
from audit.schema import HISTORY
from audit.source_reader import OffsetRange, Question, read_partition
from quorum.errors import StorageError
from tests.support.audit_log import AuditLog


def test_a_trimmed_segment_makes_planning_start_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a live directory can be exported. Method: the first plan loses a file, the next not."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "00000000000000000000.log").touch()
    plans: list[int] = []

    def planned(*_: object) -> str:
        plans.append(len(plans))
        if len(plans) == 1:
            (source / "00000000000000000000.log").unlink()
            raise StorageError("cannot open", source)
        return "report"

    monkeypatch.setattr(audit.export, "_export_planned", planned)
    assert export_log(source, tmp_path / "target") == "report"
    assert plans == [0, 1]


def test_a_failure_without_a_change_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a damaged source is not retried for ever. Method: fail, change nothing."""
    plans: list[int] = []

    def planned(*_: object) -> str:
        plans.append(len(plans))
        raise StorageError("cannot read", tmp_path)

    monkeypatch.setattr(audit.export, "_export_planned", planned)
    with pytest.raises(StorageError, match="cannot read"):
        export_log(tmp_path / "source", tmp_path / "target")
    assert plans == [0]


def _exported(target: Path) -> list[int]:
    """Return the offset of every exported record, without derived and summary rows."""
    columns = ["offset", "is_derived", "is_baseline"]
    return sorted(
        row["offset"]
        for file in (target / HISTORY).rglob("*.parquet")
        for row in pq.ParquetFile(file).read(columns=columns).to_pylist()
        if not row["is_derived"] and not row["is_baseline"]
    )


def _between(monkeypatch: pytest.MonkeyPatch, step: str, work: Callable[[], None]) -> None:
    """Have ``work`` done behind the planner's step, the first time it is taken."""
    taken: list[str] = []
    original = getattr(audit.directory, step)

    def hooked(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        if not taken:
            taken.append(step)
            work()
        return result

    monkeypatch.setattr(audit.directory, step, hooked)


@pytest.mark.parametrize("is_trimmed", [False, True])
@pytest.mark.parametrize("step", ["partition_directory", "open_readonly", "_segments"])
def test_a_checkpoint_frozen_while_planning_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, is_trimmed: bool
) -> None:
    """Goal: every offset is exported once. Method: freeze and trim between the planner's steps."""
    log = AuditLog(tmp_path / "home", segment_bytes=2_000)
    log.elect(1)
    world = log.world(1, 20)
    log.commit()
    export_log(log.home, tmp_path / "out")
    exported = log.checkpoint()
    log.more(world, 20)
    log.commit()

    def live_on() -> None:
        log.more(world, 30)
        log.commit()
        log.checkpoint()
        if is_trimmed:
            log.log.advance_start(exported)

    _between(monkeypatch, step, live_on)
    export_log(log.home, tmp_path / "out")
    export_log(log.home, tmp_path / "out")
    assert _exported(tmp_path / "out") == list(range(log.end))


def test_a_fetched_checkpoint_hides_nothing_that_the_log_still_has(tmp_path: Path) -> None:
    """Goal: a follower can be exported. Method: its checkpoint is there, its log not replaced."""
    leader = AuditLog(tmp_path / "leader")
    leader.elect(1)
    world = leader.world(1, 10)
    leader.commit()
    follower = leader.copy(tmp_path / "follower")
    end = leader.end
    leader.more(world, 10)
    leader.checkpoint()
    for file in leader.partition.glob("*.checkpoint"):
        (follower / file.relative_to(leader.home)).write_bytes(file.read_bytes())
    export_log(follower, tmp_path / "out")
    assert _exported(tmp_path / "out") == list(range(end))


def test_a_node_that_never_rests_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: planning ends, and jumps over nothing. Method: the log is trimmed at every look."""
    log = AuditLog(tmp_path / "home")
    log.elect(1)
    world = log.world(1, 5)
    log.commit()
    log.checkpoint()
    original = audit.directory.open_readonly

    def hooked(*arguments: Any) -> Any:
        found = original(*arguments)
        log.more(world, 5)
        log.commit()
        for old in log.partition.glob("*.checkpoint"):
            old.unlink()
        log.log.advance_start(log.checkpoint())
        return found

    monkeypatch.setattr(audit.directory, "open_readonly", hooked)
    with pytest.raises(AuditError, match="run it again"):
        export_log(log.home, tmp_path / "out")
    assert not (tmp_path / "out" / HISTORY).exists()


def test_a_task_whose_segment_was_trimmed_asks_for_another_run(tmp_path: Path) -> None:
    """Goal: the reason, not a missing file. Method: plan, remove a segment as trimming does."""
    log = AuditLog(tmp_path)
    log.elect(1)
    log.world(1, 5)
    log.commit()
    plan = plan_source(tmp_path)
    Path(plan.segments[0].path).unlink()
    with pytest.raises(AuditError, match="run the query again"):
        list(read_partition(plan, Question(HISTORY), OffsetRange(0, plan.end_offset)))
