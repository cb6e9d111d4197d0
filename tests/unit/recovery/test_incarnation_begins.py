"""Beginning an incarnation of the log: what is in it, and what a crash leaves."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from quorate.recovery.errors import RecoveryRefusedError
from quorate.recovery.incarnation import begin
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control, encode_control_batch
from quorum.control_incarnation import INCARNATION_REPORT_TAG
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.errors import ElectionStateError, ErrorCode
from quorum.log.identity import load_identity
from quorum.log.quarantine_mark_file import QuarantineMark, write_quarantine_mark
from quorum.types import EPOCH_MAX, ZERO_UUID, ElectionState, Endpoint, OffsetAndEpoch
from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL, TORN_TAIL, CrashMode
from snapshot.config import SnapshotConfig
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from tests.support.crash_scripts import check, crashes, go_on, prepared, states
from tests.support.crash_sites import WatchedFileSystem
from tests.support.lone_replica import DATA_DIR, LoneReplica
from tests.support.recovery_script import (
    RECOVERY_SCRIPT,
    SECOND,
    begin_on,
    read_recovered,
)
from tests.support.storage_script import LOG, ME, opened


def with_log(steps: int = 0) -> WatchedFileSystem:
    fs = prepared(RECOVERY_SCRIPT)
    for step in RECOVERY_SCRIPT.steps[:steps]:
        step.run(fs)
    return fs


def last_batch(fs: WatchedFileSystem) -> list[object]:
    log = opened(fs).log
    data = log.read(log.end.offset - 1, 1)
    (header,) = scan_batches(data)
    assert header.epoch == log.end.epoch
    return [decode_control(record) for record in iterate_records(data, header)]


def test_one_batch_begins_it_with_the_node_as_only_voter() -> None:
    fs = with_log()
    before = read_recovered(fs)
    begun = begin_on(fs, SECOND)
    change, version, voters = last_batch(fs)
    assert isinstance(change, LeaderChange)
    assert isinstance(voters, Voters)
    report = dict(change.tagged)[INCARNATION_REPORT_TAG]
    assert json.loads(report) == {"operation": "recovery"}
    assert version == KRaftVersion(1)
    assert voters.incarnation == begun.incarnation
    assert (begun.incarnation.number, begun.incarnation.previous_id) == (1, ZERO_UUID)
    assert begun.incarnation.kept == OffsetAndEpoch(12, 4)
    assert begun.incarnation.report_digest == hashlib.sha256(report).digest()
    after = read_recovered(fs)
    assert before.end is not None
    assert after.end == begun.end == OffsetAndEpoch(before.end.offset + 3, 1004)
    assert after.high_watermark == begun.end.offset
    assert after.election == ElectionState(1004, voted=ME)
    assert after.voters == (ME,)


def test_the_next_one_names_the_one_before() -> None:
    fs = with_log(len(RECOVERY_SCRIPT.steps))
    found = read_recovered(fs).incarnation
    assert found is not None
    assert (found.number, found.id, found.previous_id) == (2, b"j" * 16, b"i" * 16)


def test_all_other_voters_get_tombstones() -> None:
    fs = with_log()
    other = replace(ME, id=2, directory_id=b"e" * 16)
    unknown = replace(ME, id=3, directory_id=ZERO_UUID)
    stores = opened(fs)
    first = stores.state.voters[-1].voters[0]
    base = stores.log.end.offset
    voters = (first, replace(first, key=other), replace(first, key=unknown))
    gone = (replace(ME, id=9, directory_id=b"f" * 16),)
    batch = encode_control_batch(
        [Voters(voters, removed=gone)], base_offset=base, epoch=4, timestamp=9
    )
    stores.log.append(batch, base_offset=base, end_offset=base + 1)
    stores.log.flush()
    stores.log.close()
    assert begin_on(fs, SECOND).removed == (other, *gone)
    state = opened(fs).state.voters[-1]
    assert (state.removed, [each.key for each in state.voters]) == ((other, *gone), [ME])


def test_the_epoch_is_above_all_that_are_known() -> None:
    fs = with_log()
    assert begin_on(fs, replace(SECOND, newest_epoch=50)).end.epoch == 1050
    fs = with_log()
    stores = opened(fs)
    stores.election.save(ElectionState(3000))
    stores.log.close()
    assert begin_on(fs, SECOND).end.epoch == 4000
    with pytest.raises(RecoveryRefusedError, match="no epoch is left"):
        begin_on(with_log(), replace(SECOND, newest_epoch=EPOCH_MAX - 999))


def test_the_address_is_the_one_that_was_given() -> None:
    fs = with_log()
    begin_on(fs, replace(SECOND, endpoints=(Endpoint("CONTROLLER", "new", 1),)))
    assert opened(fs).state.voters[-1].voters[0].endpoints[0].host == "new"


def test_repeating_it_changes_nothing() -> None:
    fs = with_log()
    begin_on(fs, SECOND)
    once = read_recovered(fs)
    assert begin_on(fs, SECOND).was_unfinished
    assert read_recovered(fs) == once


@pytest.mark.parametrize("work", ["quarantine", "older vote"])
def test_what_waits_for_a_repair_is_refused_unchanged(work: str) -> None:
    fs = with_log()
    stores = opened(fs)
    stores.log.store_high_watermark(12)
    stores.log.close()
    if work == "quarantine":
        write_quarantine_mark(fs, LOG, QuarantineMark(10, "another history"))
    else:
        stores.election.save(ElectionState(1))
    end = fs.read_bytes(LOG / "00000000000000000000.log")
    with pytest.raises((RecoveryRefusedError, ElectionStateError)):
        begin_on(fs, SECOND)
    assert fs.read_bytes(LOG / "00000000000000000000.log") == end


@pytest.mark.parametrize(
    "mode",
    [LOSE_ALL, TORN_TAIL, KEEP_ALL, CrashMode(reordered=True, keep_names=0.5)],
    ids=["lose-all", "torn", "keep-all", "reordered"],
)
def test_power_is_lost_behind_every_change(mode: CrashMode) -> None:
    """Goal: the former incarnation, unfinished, or the next. Method: every crash, then go on."""
    expected = states(RECOVERY_SCRIPT)
    unfinished = 0
    for crash in crashes(RECOVERY_SCRIPT, mode):
        check(RECOVERY_SCRIPT, expected, crash)
        unfinished += read_recovered(crash.fs).incarnation is None
        go_on(RECOVERY_SCRIPT, expected, crash)
    assert unfinished >= 2


def test_one_of_three_leads_alone_and_its_checkpoints_repeat_the_incarnation() -> None:
    """Goal: a recovered node works, and trimming forgets nothing. Method: the whole replica."""
    bench = LoneReplica(voters=3, snapshot=SnapshotConfig(max_bytes_between=2_000))
    identity = load_identity(bench.fs, DATA_DIR)
    begun = begin(bench.fs, DATA_DIR, identity, replace(SECOND, kept_end=0), bench.clock)
    assert [key.id for key in begun.removed] == [2, 3]
    bench.boot().lead()
    for n in range(40):
        change = (ConfigChange("match", value=f"a={'v' * 90}"),)
        kind = int(ResourceType.CLIENT_METRICS)
        (answer,) = bench.write(IncrementalAlterConfigs(kind, str(n % 3), change))
        assert answer.code is ErrorCode.NONE
    bench.replica.checkpoints.write_now()
    bench.crash(LOSE_ALL)
    bench.boot().lead()
    loaded = bench.stores.report.loaded_snapshot
    assert loaded is not None
    assert loaded.offset > begun.end.offset
    head = bench.stores.snapshots.reader(loaded).head()
    assert (head.incarnation, head.removed) == (begun.incarnation, begun.removed)
    in_force = bench.replica.node.voter_set_at(bench.replica.node.log_end_offset)
    assert (in_force.incarnation, in_force.removed) == (begun.incarnation, begun.removed)
    assert in_force.ids == (1,)
