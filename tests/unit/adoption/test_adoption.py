"""A directory changes hands: the real sample, trimmed and many-voter ones, and a crash anywhere."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.adoption.adopt import adopt, plan_adoption
from quorate.adoption.errors import AdoptionRefusedError
from quorate.adoption.release import plan_release, release
from quorate.cli.exits import CliError, Exit
from quorate.cli.main import cli
from quorate.replica.boot import Stores, open_stores
from quorum.batch import encode_batch
from quorum.errors import ElectionStateError, IdentityError, StorageError
from quorum.log.config import LogConfig
from quorum.log.directory_lock import DirectoryLock
from quorum.log.filesystem import OsFileSystem
from quorum.log.high_watermark_file import load_watermarks
from quorum.ports import FileSystem
from quorum.runtime.clock import SystemClock
from quorum.types import OffsetAndEpoch
from simulation.memory_filesystem import (
    KEEP_ALL,
    LOSE_ALL,
    CrashMode,
    Faults,
    MemoryFileSystem,
    PowerLost,
)
from snapshot.config import SnapshotConfig
from statemachine.codec import encode_record
from statemachine.machine import StateMachine
from statemachine.records import FeatureLevelRecord, NoOpRecord, TopicRecord
from tests.support.kafka_directory import (
    PARTITION,
    SAMPLE_CLUSTER_ID,
    SAMPLE_END_OFFSET,
    SEGMENT,
    KafkaDirectory,
    whole_sample,
)

DISK = b"D" * 16
KAFKA_STATE = (
    '{"leaderId":2,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    '"data_version":1}'
)


def opened(fs: FileSystem, folder: Path) -> Stores:
    """The directory as a server opens it."""
    return open_stores(
        fs,
        folder,
        node_id=1,
        log_config=LogConfig(),
        snapshot_config=SnapshotConfig(),
        clock=SystemClock(),
    )


def adopt_now(fs: FileSystem, folder: Path) -> None:
    adopt(fs, plan_adoption(fs, folder, DISK))


def made(folder: Path, *, start: int = 0, voters: int = 1) -> KafkaDirectory:
    """A small directory of a controller that has followed node 2."""
    kafka = KafkaDirectory(folder, start=start, cluster_id="abc", voters=voters)
    kafka.batch(FeatureLevelRecord("metadata.version", 20))
    kafka.batch(TopicRecord("t", b"T" * 16))
    (kafka.partition / "quorum-state").write_text(KAFKA_STATE)
    return kafka


def trimmed(folder: Path) -> KafkaDirectory:
    """Return one whose first segment begins at 10; the older of two checkpoints ends inside it."""
    kafka = made(folder, start=10, voters=3)
    for end in (12, 13):
        kafka.checkpoint(end, FeatureLevelRecord("metadata.version", 20))
    kafka.batch(NoOpRecord())
    return kafka


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_sample_goes_there_and_back(tmp_path: Path) -> None:
    """A replay of the adopted log is the replay of the sample; what is given back is the sample."""
    folder = whole_sample(tmp_path)
    before = files(folder)
    expected = StateMachine()
    expected.apply(before[f"{PARTITION}/{SEGMENT}"])
    fs = OsFileSystem()
    with pytest.raises(IdentityError, match="`quorate adopt DIR`"):
        opened(fs, folder)
    adopt_now(fs, folder)
    stores = opened(fs, folder)
    assert stores.identity.cluster_id == SAMPLE_CLUSTER_ID
    assert stores.state.log_end == OffsetAndEpoch(SAMPLE_END_OFFSET, 1)
    assert (stores.state.election.epoch, stores.state.election.vote_floor) == (1, None)
    assert not stores.report.losses
    stores.machine.apply(stores.log.read(0, 1 << 20))
    assert stores.machine.image == expected.image
    stores.log.close()
    stores.snapshots.close()
    assert plan_adoption(fs, folder, DISK).changes() == []

    release(fs, plan_release(fs, folder))
    after = files(folder)
    state = json.loads(after.pop(f"{PARTITION}/quorum-state"))
    assert (state["leaderEpoch"], state["leaderId"], state["data_version"]) == (1, 1, 1)
    del before[f"{PARTITION}/quorum-state"]
    # Kafka keeps an index beside a segment too.
    after.pop(f"{PARTITION}/{SEGMENT.replace('.log', '.index')}")
    assert after == before
    assert plan_release(fs, folder).is_done
    adopt_now(fs, folder)
    assert opened(fs, folder).state.log_end.offset == SAMPLE_END_OFFSET


def test_a_trimmed_log_begins_at_its_oldest_checkpoint(tmp_path: Path) -> None:
    folder = trimmed(tmp_path / "n").path
    fs = OsFileSystem()
    plan = plan_adoption(fs, folder, DISK)
    assert ("log-start", "written: the log begins at 12/1") in plan.changes()
    adopt(fs, plan)
    stores = opened(fs, folder)
    assert (stores.state.log_start, stores.state.log_end) == (
        OffsetAndEpoch(12, 1),
        OffsetAndEpoch(14, 1),
    )
    assert not stores.report.losses
    assert stores.identity.directory_id == DISK
    assert stores.report.loaded_snapshot == OffsetAndEpoch(13, 1)
    stores.log.close()
    release(fs, plan_release(fs, folder))
    assert not (folder / PARTITION / "log-start").exists()


def test_kafka_may_have_run_in_between(tmp_path: Path) -> None:
    """Adopted, then started by Kafka after all: its log has grown, and our side files are stale."""
    kafka = trimmed(tmp_path / "n")
    fs = OsFileSystem()
    adopt_now(fs, kafka.path)
    kafka.batch(TopicRecord("later", b"L" * 16))
    (kafka.partition / "quorum-state").write_text(KAFKA_STATE)
    with pytest.raises(ElectionStateError, match="`quorate adopt DIR`"):
        opened(fs, kafka.path)
    plan = plan_adoption(fs, kafka.path, DISK)
    assert "high-watermark" in plan.removed
    adopt(fs, plan)
    stores = opened(fs, kafka.path)
    assert stores.state.log_end == OffsetAndEpoch(15, 1)
    assert stores.state.log_start == OffsetAndEpoch(12, 1)


def spoil(folder: Path, what: str) -> None:
    partition = folder / PARTITION
    segment = next(partition.glob("*.log"))
    match what:
        case "state":
            (partition / "quorum-state").unlink()
        case "old state":
            (partition / "quorum-state").write_text(KAFKA_STATE.replace('Epoch":1', 'Epoch":0'))
        case "record":
            data = segment.read_bytes()
            segment.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        case "checkpoints":
            for path in partition.glob("*.checkpoint"):
                path.unlink()
        case "checkpoint":
            path = max(partition.glob("*.checkpoint"))
            path.write_bytes(path.read_bytes()[:-9])
        case "partition":
            partition.rename(folder / "elsewhere")
        case "identity":
            (folder / "meta.properties").unlink()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("state", "a vote may have been forgotten"),
        ("old state", "quorum-state has no epoch after 0"),
        ("record", "checksum|crc"),
        ("checkpoints", "no checkpoint"),
        ("checkpoint", "checkpoint"),
        ("partition", "no __cluster_metadata-0"),
        ("identity", "not formatted"),
    ],
)
def test_what_is_not_whole_is_refused_and_left(tmp_path: Path, what: str, message: str) -> None:
    folder = trimmed(tmp_path / "n").path
    spoil(folder, what)
    before = files(folder)
    with pytest.raises((AdoptionRefusedError, StorageError), match=f"(?i){message}"):
        adopt_now(OsFileSystem(), folder)
    assert files(folder) == before


def test_a_level_that_this_release_cannot_run_with_is_refused(tmp_path: Path) -> None:
    kafka = made(tmp_path / "n")
    kafka.batch(FeatureLevelRecord("metadata.version", 4_000))
    with pytest.raises(AdoptionRefusedError, match="must be from"):
        adopt_now(OsFileSystem(), kafka.path)


def test_what_kafka_cannot_read_or_would_forget_is_not_released(tmp_path: Path) -> None:
    fs = OsFileSystem()
    folder = made(tmp_path / "n").path
    adopt_now(fs, folder)
    stores = opened(fs, folder)
    end = stores.state.log_end
    election = stores.election.load()
    stores.election.save(replace(election, vote_floor=OffsetAndEpoch(end.offset + 1, 1)))
    with pytest.raises(AdoptionRefusedError, match="were acknowledged and are lost here"):
        plan_release(fs, folder)
    stores.election.save(replace(election, vote_floor=end))
    assert not plan_release(fs, folder).is_done
    stores.election.save(replace(election, disqualified="removed"))
    with pytest.raises(AdoptionRefusedError, match="never votes again: removed"):
        plan_release(fs, folder)
    stores.election.save(election)
    stores.log.close()
    native = made(tmp_path / "m")
    adopt_now(fs, native.path)
    log = opened(fs, native.path).log
    offset = log.end.offset
    data = encode_batch(
        [encode_record(NoOpRecord())], base_offset=offset, epoch=1, timestamp=offset
    )
    log.append(data, base_offset=offset, end_offset=offset + 1)
    log.close()
    with pytest.raises(AdoptionRefusedError, match=f"native codec, at offset {offset} first"):
        plan_release(fs, native.path)


# ------------------------------------------------------------------ crashes

HOME = Path("/data/n")


def in_memory(folder: Path) -> MemoryFileSystem:
    """A copy of a directory, all of it durable."""
    fs = MemoryFileSystem()
    fs.make_directory(HOME / PARTITION)
    for name, data in files(folder).items():
        fs.write_bytes(HOME / name, data)
    fs.write_back()
    return fs


MODES = {
    "lose-all": LOSE_ALL,
    "names-in-order": CrashMode(keep_names=1.0),
    "names-reordered": CrashMode(reordered=True, keep_names=0.5),
    "keep-all": KEEP_ALL,
}


def through_every_crash(
    base: MemoryFileSystem, work: Callable[[MemoryFileSystem], None], mode: CrashMode
) -> int:
    """Stop ``work`` behind each change in turn, crash, and run it again to its end."""
    call = 0
    while True:
        fs = base.clone()
        fs.faults = Faults(stop_after_call=call)
        try:
            work(fs)
        except PowerLost:
            fs.faults = Faults()
            fs.crash(random.Random(call), mode)
            work(fs)
            check_adopted_or_released(fs)
            call += 1
            continue
        return call


def check_adopted_or_released(fs: MemoryFileSystem) -> None:
    """All records are there, and it is one thing or the other."""
    if plan_adoption(fs, HOME, DISK).is_done:
        stores = opened(fs.clone(), HOME)
        assert not stores.report.losses
        assert stores.state.election.vote_floor is None
        assert (stores.state.log_start.offset, stores.state.log_end.offset) == (12, 14)
    else:
        assert plan_release(fs, HOME).is_done


def test_power_loss_after_an_adoption_leaves_the_durable_end(tmp_path: Path) -> None:
    """Else damage anywhere in the log would pass for a torn tail at the first start."""
    fs = in_memory(trimmed(tmp_path / "n").path)
    adopt_now(fs, HOME)
    fs.crash(random.Random(1), LOSE_ALL)
    marks = load_watermarks(fs, HOME / PARTITION, DISK)
    assert marks is not None
    assert marks.durable_offset == 14


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_an_adoption_is_repeated_after_a_crash_anywhere(tmp_path: Path, mode: CrashMode) -> None:
    base = in_memory(trimmed(tmp_path / "n").path)
    assert through_every_crash(base, lambda fs: adopt_now(fs, HOME), mode) > 15


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_a_release_is_repeated_after_a_crash_anywhere(tmp_path: Path, mode: CrashMode) -> None:
    base = in_memory(trimmed(tmp_path / "n").path)
    adopt_now(base, HOME)
    base.write_back()
    calls = through_every_crash(base, lambda fs: release(fs, plan_release(fs, HOME)), mode)
    assert calls > 8


# ------------------------------------------------------------------ the commands


def quorate(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments)
    if isinstance(result.exception, CliError):
        return result.exception.code, f"{result.exception} ({result.exception.hint})"
    return result.exit_code, result.output + (repr(result.exception) if result.exception else "")


def test_a_dry_run_lists_changes_and_writes_nothing(tmp_path: Path) -> None:
    folder = trimmed(tmp_path / "n").path
    before = files(folder)
    status, printed = quorate("adopt", str(folder), "--dry-run")
    assert status == Exit.OK
    for text in ("log-start", "begins at 12/1", "quorum-state", "meta.properties", "bootstrap.vot"):
        assert text in printed
    assert files(folder) == before
    assert quorate("adopt", str(folder))[0] == Exit.OK
    before = files(folder)
    status, printed = quorate("release", str(folder), "--dry-run")
    assert (status, files(folder)) == (Exit.OK, before)
    assert "checksum line taken out" in printed
    status, printed = quorate("adopt", str(folder))
    assert (status, files(folder)) == (Exit.OK, before)
    assert "nothing changed" in printed


def test_a_refusal_has_its_own_status(tmp_path: Path) -> None:
    folder = trimmed(tmp_path / "n").path
    spoil(folder, "checkpoints")
    status, printed = quorate("adopt", str(folder))
    assert (status, "nothing was changed" in printed) == (Exit.REFUSED, True)


@pytest.mark.parametrize("command", ["adopt", "release"])
def test_a_directory_in_use_is_left_alone(tmp_path: Path, command: str) -> None:
    """Locked by a Quorate node, or by a Java process, which uses another kind of lock."""
    folder = trimmed(tmp_path / "n").path
    with DirectoryLock(folder):
        assert "in use by another process" in quorate(command, str(folder), "--dry-run")[1]
    code = (
        "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT);"
        "fcntl.lockf(fd, fcntl.LOCK_EX); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as java:
        assert java.stdout is not None
        assert java.stdin is not None
        assert java.stdout.readline() == b"locked\n"
        assert "in use by another process" in quorate(command, str(folder))[1]
        java.stdin.close()
