"""A checkpoint under a name that is not its own is set aside, and nothing is skipped."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from quorate.replica.checkpoint_position import contradiction
from quorum import control
from quorum.types import SnapshotId
from simulation.memory_filesystem import KEEP_ALL
from snapshot.config import SnapshotConfig
from snapshot.naming import file_name
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from statemachine.dump import state_digest
from tests.support.crash_sites import WatchedFileSystem
from tests.support.lone_replica import LoneReplica
from tests.support.storage_script import (
    LOG,
    append,
    commit,
    format_node,
    opened,
    take_checkpoint,
    vote,
)

SMALL = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=2_000)


def written() -> LoneReplica:
    bench = LoneReplica(snapshot=SMALL).boot().lead()
    for n in range(45):
        change = (ConfigChange("match", value=f"a={n}"),)
        bench.write(IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), str(n % 5), change))
    return bench


def misnamed(bench: LoneReplica) -> SnapshotId:
    """Copy the newest checkpoint under the name of the log's end."""
    newest = bench.stores.snapshots.list()[-1]
    end = bench.stores.log.end
    assert newest.offset < end.offset
    path = bench.stores.snapshots.path(newest)
    bench.fs.write_bytes(path.with_name(file_name(end)), bench.fs.read_bytes(path))
    return end


def without_position(patch: pytest.MonkeyPatch) -> None:
    """Read headers as those of an earlier release, which have no position."""
    decode = control._DECODERS[control.SNAPSHOT_HEADER][1]
    decoders = {
        **control._DECODERS,
        control.SNAPSHOT_HEADER: (
            0,
            lambda value, version: replace(decode(value, version), end=None),
        ),
    }
    patch.setattr(control, "_DECODERS", decoders)


@pytest.mark.parametrize("says_position", [True, False])
def test_a_checkpoint_under_another_name_is_set_aside(
    says_position: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: attack 7. Method: the newest one under a later name; with and without a position."""
    bench = written()
    digest = state_digest(bench.replica.controller.image)
    wrong = misnamed(bench)
    if not says_position:
        without_position(monkeypatch)
    bench.crash(KEEP_ALL)
    bench.boot()
    report = bench.stores.report
    assert [taken for taken, _ in report.corrupt_snapshots] == [wrong]
    assert report.loaded_snapshot is not None
    assert report.loaded_snapshot.offset < wrong.offset
    assert wrong not in bench.stores.snapshots.list()
    assert bench.stores.election.load().vote_floor is None
    bench.lead()
    assert state_digest(bench.replica.controller.image) == digest


@pytest.mark.parametrize("says_position", [True, False])
def test_a_checkpoint_under_another_name_commits_nothing(
    says_position: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: copy one behind the high watermark, to every batch boundary of the log."""
    fs = WatchedFileSystem()
    format_node(fs)
    taken = SnapshotId(5, 1)
    for step in (vote(1), append(0, 1, 6), commit(5), take_checkpoint(taken)):
        step.run(fs)
    if not says_position:
        without_position(monkeypatch)
    content = fs.read_bytes(LOG / file_name(taken))
    for offset in (7, 9, 11, 13):
        disk, wrong = copy.deepcopy(fs), SnapshotId(offset, 1)
        disk.write_bytes(LOG / file_name(wrong), content)
        stores = opened(disk)
        assert [each for each, _ in stores.report.corrupt_snapshots] == [wrong]
        assert stores.state.high_watermark == stores.log.high_watermark == 5
        stores.log.close()


def test_what_contradicts_a_position() -> None:
    bench = written()
    log, newest = bench.stores.log, bench.stores.snapshots.list()[-1]
    head = bench.stores.snapshots.reader(newest).head()
    end = log.end
    assert contradiction(newest, head, log) == ""
    assert "log digest" in contradiction(end, head, log)
    assert "of epoch" in contradiction(SnapshotId(end.offset, end.epoch + 1), head, log)
    assert contradiction(end, replace(head, log_digest=b""), log) == "", "one of Kafka's"
    assert contradiction(SnapshotId(end.offset + 5, end.epoch), head, log) == "", "not in the log"
