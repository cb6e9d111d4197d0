"""Opening a directory after whatever happened, through the whole replica."""

from __future__ import annotations

import pytest

from quorate.formatting import FormatPlan, format_directory
from quorate.replica.boot import open_stores
from quorum.errors import ConfigError, ElectionStateError, ErrorCode, IdentityError
from quorum.log.config import LogConfig
from quorum.log.layout import EPOCH_FILE_NAME, partition_directory
from quorum.types import OffsetAndEpoch, SnapshotId
from simulation.memory_filesystem import (
    KEEP_ALL,
    LOSE_ALL,
    REORDERED,
    TORN_TAIL,
    CrashMode,
    Faults,
    MemoryFileSystem,
)
from snapshot.config import SnapshotConfig
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.naming import FileState, file_name
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from statemachine.dump import state_digest
from tests.support.lone_replica import DATA_DIR, LoneReplica

SMALL = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=2_000)


KEY = "match"


def change(name: str, value: str) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs(
        int(ResourceType.CLIENT_METRICS), name, (ConfigChange(KEY, value=f"a={value}"),)
    )


def test_acknowledged_writes_survive_any_crash() -> None:
    """Goal: acked means present. Method: write, crash in every way, boot, compare."""
    for seed, mode in enumerate((KEEP_ALL, LOSE_ALL, TORN_TAIL, REORDERED)):
        bench = LoneReplica().boot().lead()
        answers = [bench.write(change(str(n), "v" * 50))[0] for n in range(30)]
        bench.write(change("lost", "unflushed"), persist=False)
        crash_and_boot(bench, mode, seed)
        image = bench.replica.controller.image
        assert all(answer.code is ErrorCode.NONE for answer in answers)
        assert image.provenance.end_offset >= answers[-1].offset
        for n in range(30):
            assert image.configs.value(ResourceType.CLIENT_METRICS, str(n), KEY) == f"a={'v' * 50}"


def crash_and_boot(bench: LoneReplica, mode: CrashMode, seed: int) -> None:
    bench.crash(mode, seed)
    bench.boot().lead()


def test_checkpoints_come_by_both_thresholds_and_load_at_boot() -> None:
    """Goal: 630.4 and 630.15. Method: overwrite few keys often, restart, compare digests."""
    bench = LoneReplica(snapshot=SMALL).boot().lead()
    for n in range(120):
        bench.write(change(str(n % 10), f"value-{n}"))
    frozen = [taken for taken in bench.stores.snapshots.list() if taken.offset]
    assert frozen, "no checkpoint was written"
    digest = state_digest(bench.replica.controller.image)
    bench.crash(KEEP_ALL)
    bench.boot()
    assert bench.stores.report.loaded_snapshot == frozen[-1]
    bench.lead()
    assert state_digest(bench.replica.controller.image) == digest


def test_an_idle_log_is_trimmed_by_both_thresholds() -> None:
    """Goal: NoOpRecords do not fill the disk (630.4). Method: forty settings, then nothing at all.

    The ratio is one of the checkpoint's records: with fewer than half as many idle records as it
    holds none follows, however many bytes there are.
    """
    snapshot = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=1_000)
    bench = LoneReplica(snapshot=snapshot, idle_interval_ms=500).boot().lead()
    for n in range(40):
        bench.write(change(str(n), "v"))
    bench.replica.checkpoints.write_now()
    base = bench.stores.snapshots.latest()
    assert base is not None
    progress = bench.replica.controller.checkpoint
    records = progress.changes.snapshot_records
    assert records >= 40
    for _ in range(records // 2 - 1):
        bench.advance(500)
    assert progress.bytes_since > 1_000
    assert bench.stores.snapshots.latest() == base
    ends = set()
    for _ in range(10 * records):
        bench.advance(500)
        ends.add(bench.stores.snapshots.latest())
        assert (
            bench.replica.node.log_end_offset - bench.replica.node.log_start.offset <= 2 * records
        )
    assert len(ends) > 10


def test_equal_histories_give_equal_checkpoint_bytes() -> None:
    """Goal: ADR 6. Method: two replicas, the same writes, the same file."""
    files = []
    for _ in range(2):
        bench = LoneReplica(snapshot=SMALL).boot().lead()
        for n in range(80):
            bench.write(change(str(n % 10), f"value-{n}"))
        newest = bench.stores.snapshots.list()[-1]
        size = bench.stores.snapshots.size(newest)
        files.append((newest, bench.stores.snapshots.read_chunk(newest, 0, size)))
    assert files[0] == files[1]


def test_a_corrupt_checkpoint_behind_a_trimmed_log_keeps_the_node_from_standing() -> None:
    """Goal: ADR 7. Method: flip a byte in the checkpoint that the log begins behind."""
    bench = LoneReplica(snapshot=SMALL).boot().lead()
    for n in range(40):
        bench.write(change(str(n % 5), f"value-{n}"))
    end = bench.replica.node.log_end
    newest = bench.stores.snapshots.list()[-1]
    assert bench.stores.log.start.offset == newest.offset
    file = bench.fs.open(bench.stores.snapshots.path(newest), writable=True)
    file.write_at(100, bytes([file.read_at(100, 1)[0] ^ 0xFF]))
    bench.crash(KEEP_ALL)
    bench.boot()
    assert [taken for taken, _ in bench.stores.report.corrupt_snapshots] == [newest]
    assert newest not in bench.stores.snapshots.list()
    assert len(bench.stores.snapshots.quarantined) == 1
    floor = bench.stores.election.load().vote_floor
    assert floor is not None
    assert floor.is_at_least(end)
    bench.advance(10_000)
    assert not bench.replica.node.is_leader, "it led without what it had acknowledged"


def test_a_damaged_segment_stores_a_vote_floor() -> None:
    """Goal: ADR 7. Method: flip a byte in the middle of the log; see what is stored."""
    bench = LoneReplica(voters=1).boot().lead()
    for n in range(20):
        bench.write(change(str(n), "v" * 100))
    end = bench.replica.node.log_end
    path = partition_directory(DATA_DIR) / "00000000000000000000.log"
    file = bench.fs.open(path, writable=True)
    file.write_at(900, bytes([file.read_at(900, 1)[0] ^ 0x10]))
    bench.crash(KEEP_ALL)
    bench.boot()
    assert len(bench.stores.report.losses) == 1
    floor = bench.stores.election.load().vote_floor
    assert floor is not None
    assert floor.is_at_least(OffsetAndEpoch(end.offset, end.epoch))
    bench.advance(10_000)
    assert not bench.replica.node.is_leader, "it led without what it had acknowledged"


def test_an_older_epoch_file_does_not_lower_the_vote_floor() -> None:
    """Goal: ADR 7. Method: damage below, and the epoch file of a time before the newest epoch."""
    bench = LoneReplica(log=LogConfig(segment_bytes=600)).boot().lead()
    for n in range(10):
        bench.write(change(str(n), "v" * 100))
    directory = partition_directory(DATA_DIR)
    earlier = bench.fs.read_bytes(directory / EPOCH_FILE_NAME)
    bench.crash(KEEP_ALL)
    bench.boot().lead()
    for n in range(10):
        bench.write(change(str(n), "w" * 100))
    end = bench.replica.node.log_end
    assert end.epoch > 1
    bench.crash(KEEP_ALL)
    bench.fs.write_bytes(directory / EPOCH_FILE_NAME, earlier)
    bench.fs.flip_bit(directory / "00000000000000000000.log", 200)
    bench.boot()
    assert bench.stores.election.load().vote_floor == end


def test_a_directory_of_another_node_is_refused() -> None:
    """Goal: identities are checked. Method: a data directory formatted as node 1, asked as 2."""
    bench = LoneReplica()
    with pytest.raises(IdentityError, match="belongs to node 1, not to node 2"):
        open_stores(
            bench.fs,
            DATA_DIR,
            node_id=2,
            log_config=LogConfig(),
            snapshot_config=SnapshotConfig(),
            clock=bench,  # type: ignore[arg-type]
        )


def _open(bench: LoneReplica, *, uses_native_codec: bool) -> None:
    open_stores(
        bench.fs,
        DATA_DIR,
        node_id=1,
        log_config=LogConfig(),
        snapshot_config=SnapshotConfig(),
        clock=bench,  # type: ignore[arg-type]
        uses_native_codec=uses_native_codec,
    )


def _lose_checkpoints(bench: LoneReplica) -> None:
    folder = partition_directory(DATA_DIR)
    for name in bench.fs.list_directory(folder):
        if name.endswith(".checkpoint"):
            bench.fs.unlink(folder / name)


def test_the_codec_of_a_directory_is_found_from_its_records() -> None:
    """Goal: ADR 47. Method: as formatted; with a checkpoint; without any, from the log alone."""
    bench = LoneReplica(voters=1)
    for prepare in (
        lambda: None,
        lambda: bench.boot().lead().write(change("1", "v")),
        lambda: _lose_checkpoints(bench),
    ):
        prepare()
        with pytest.raises(ConfigError, match=r"record_codec is kafka, but .* native codec"):
            _open(bench, uses_native_codec=False)
        _open(bench, uses_native_codec=True)


def test_a_directory_in_kafkas_codec_stays_in_it() -> None:
    """Goal: the other way round. Method: a directory that was formatted with it."""
    bench = LoneReplica(voters=1)
    bench.fs = MemoryFileSystem()
    bench.fs.make_directory(DATA_DIR)
    key = bench.voters[0].key
    plan = FormatPlan(
        DATA_DIR, "cluster", 1, key.directory_id, bench.voters, uses_native_codec=False
    )
    format_directory(bench.fs, plan)
    with pytest.raises(ConfigError, match=r"record_codec is native, but .* kafka codec"):
        _open(bench, uses_native_codec=True)
    _open(bench, uses_native_codec=False)


def test_a_lost_quorum_state_is_not_taken_for_a_vote_never_cast() -> None:
    """Goal: no amnesia. Method: lose the file alone, then the log with it; neither may start."""
    folder = partition_directory(DATA_DIR)
    bench = LoneReplica().boot().lead()
    bench.write(change("1", "v"))
    bench.fs.unlink(folder / "quorum-state")
    with pytest.raises(ElectionStateError, match="may have forgotten a vote"):
        bench.boot()
    for name in bench.fs.list_directory(folder):
        if not name.endswith(".checkpoint"):
            bench.fs.unlink(folder / name)
    with pytest.raises(ElectionStateError, match="may have forgotten a vote"):
        bench.boot()


def test_a_vote_floor_names_the_epoch_that_was_lost() -> None:
    """Goal: ADR 7. Method: damage the log, compare the stored floor with the lost end."""
    bench = LoneReplica().boot().lead()
    for n in range(20):
        bench.write(change(str(n), "v" * 100))
    end = bench.replica.node.log_end
    file = bench.fs.open(partition_directory(DATA_DIR) / "00000000000000000000.log", writable=True)
    file.write_at(900, bytes([file.read_at(900, 1)[0] ^ 0x10]))
    bench.crash(KEEP_ALL)
    bench.boot()
    assert bench.stores.election.load().vote_floor == end


def test_feature_levels_replayed_at_boot_are_reported_after_the_disk_state() -> None:
    """Goal: no message before the start. Method: boot over a committed change of a feature."""
    bench = LoneReplica().boot().lead()
    for level in (1, 2):
        bench.write(change(str(level), "v"))
    levels = bench.replica.controller.image.features.levels
    assert levels, "the log begins with feature levels"
    bench.advance(5_000)
    bench.crash(KEEP_ALL)
    bench.boot()
    assert bench.replica.controller.image.provenance.end_offset > 0, "nothing was applied"
    assert bench.replica.controller.image.features.levels == levels
    assert bench.replica.driver.node.epoch > 0


@pytest.mark.parametrize("is_full", [True, False])
def test_a_download_left_on_a_full_disk_keeps_no_node_from_starting(is_full: bool) -> None:
    """Goal: it gives its space to the log. Method: a side file to write anew, and no byte free."""
    bench = LoneReplica().boot().lead()
    bench.write(change("a", "v"))
    bench.crash(KEEP_ALL)
    directory = partition_directory(DATA_DIR)
    newer = SnapshotId(1000, 1)
    values = [b"%04d" % n * 100 for n in range(2000)]
    part = directory / file_name(newer, FileState.PART)
    batches = checkpoint_batches(newer, CheckpointHead(9), values)
    bench.fs.write_bytes(part, b"".join(batch for batch, _ in batches))
    bench.fs.take_away(directory / EPOCH_FILE_NAME)
    if is_full:
        bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes())
    found = bench.boot().stores.report.download
    assert found is not None
    assert found.snapshot_id == newer
    assert bench.fs.exists(part) is not is_full
    assert (found.size_bytes == 0) is is_full
    assert ("0 free bytes" in found.damage) is is_full
