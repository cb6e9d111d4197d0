"""A damaged log is an error, also without a stored high watermark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from audit.directory import plan_source
from audit.schema import HISTORY
from quorum.errors import LogDamagedError
from quorum.log.layout import WATERMARK_NAMES
from statemachine.records import ConfigRecord
from tests.support.audit_log import AuditLog, table_rows
from tests.support.damaged_logs import SAMPLE, damaged_sample


@pytest.mark.parametrize("is_single_file", [False, True])
@pytest.mark.parametrize("with_unknown", [False, True])
def test_a_damaged_log_is_an_error_where_nothing_is_known_to_be_committed(
    tmp_path: Path, is_single_file: bool, with_unknown: bool
) -> None:
    home = damaged_sample(tmp_path)
    source = home / f"{0:020d}.log" if is_single_file else home
    with pytest.raises(LogDamagedError, match=r"\.log: damaged batch.*valid batch.*position \d+"):
        plan_source(source, with_unknown=with_unknown)
    plan = plan_source(source, with_unknown=with_unknown, only_before_damage=True)
    assert 0 < plan.end_offset < 43
    assert "damaged batch" in plan.damage
    assert len(table_rows(plan, HISTORY)) == plan.end_offset


def test_a_checkpoint_behind_the_damage_does_not_hide_it(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    for number in range(20):
        log.command(ConfigRecord(4, "", "a", str(number)))
    log.checkpoint()
    log.commit()
    path = next(log.partition.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for name in WATERMARK_NAMES:
        (log.partition / name).unlink()
    with pytest.raises(LogDamagedError):
        plan_source(tmp_path)
    plan = plan_source(tmp_path, with_unknown=True, only_before_damage=True)
    assert plan.checkpoints == ()
    assert 0 < plan.end_offset < log.end


def test_a_torn_tail_is_none_of_the_log(tmp_path: Path) -> None:
    home = tmp_path / "kafka"
    shutil.copytree(SAMPLE, home)
    with (home / f"{0:020d}.log").open("ab") as file:
        file.write((SAMPLE / f"{0:020d}.log").read_bytes()[:70])
    plan = plan_source(home)
    assert (plan.end_offset, plan.damage) == (43, "")
    assert any("cut off" in problem for problem in plan.problems)
