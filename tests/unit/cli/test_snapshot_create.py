"""``quorate snapshot create``: the node's own bytes, for any position, from files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import main
from quorum.log.directory_lock import DirectoryLock
from quorum.log.layout import partition_directory
from simulation.harness.replica_node import DATA_DIR
from snapshot.config import SnapshotConfig
from snapshot.naming import file_path
from snapshot.reader import CheckpointReader
from statemachine.dump import state_digest
from statemachine.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from tests.support.audit_log import TIME_0, AuditLog
from tests.support.kafka_directory import KafkaDirectory
from tests.support.lone_replica import LoneReplica
from tests.unit.replica.test_checkpoint_space import change

RARELY = SnapshotConfig(max_bytes_between=1 << 30)


def created(
    capsys: pytest.CaptureFixture[str], directory: Path, *options: object
) -> tuple[int, dict[str, Any], str]:
    status = main(["snapshot", "create", str(directory), "-o", "json", *map(str, options)])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else {}, captured.err


def stopped(bench: LoneReplica, folder: Path) -> Path:
    """Copy the disk of a replica to real files."""
    for path in bench.fs.list_directory(DATA_DIR):
        if path != partition_directory(DATA_DIR).name:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(bench.fs.read_bytes(DATA_DIR / path))
    partition_directory(folder).mkdir(parents=True)
    for name in bench.fs.list_directory(partition_directory(DATA_DIR)):
        data = bench.fs.read_bytes(partition_directory(DATA_DIR) / name)
        (partition_directory(folder) / name).write_bytes(data)
    return folder


def test_the_bytes_are_those_of_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: from the log's beginning, and from the checkpoint at which a trimmed log begins."""
    bench = LoneReplica(snapshot=RARELY).boot().lead()
    for number in range(12):
        bench.write(change(number, resources=5, size=100))
        if number % 4 != 3:
            continue
        data_dir = stopped(bench, tmp_path / f"node-{number}")
        snapshot_id = bench.replica.checkpoints.write_now()
        assert snapshot_id is not None
        # The stored high watermark is a lower bound, so that the position may lie above it.
        status, found, error = created(
            capsys,
            data_dir,
            *("--at-offset", snapshot_id.offset, "--uncommitted", "--out", tmp_path / "out"),
        )
        assert status == 0, error
        written = bench.fs.read_bytes(bench.stores.snapshots.path(snapshot_id))
        assert file_path(tmp_path / "out", snapshot_id).read_bytes() == written
        assert found["voters"] == [1]
    assert bench.stores.log.start.offset > 0, "trimmed below an earlier one"


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    """A log with a transaction in it, committed up to its last batch but one."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.voters(1)
    log.world(3, 30)
    log.command(BeginTransactionRecord("tx"))
    log.command(TopicRecord("in-transaction", b"t" * 16))
    log.command(EndTransactionRecord())
    log.commit()
    log.command(TopicRecord("uncommitted", b"u" * 16))
    log.log.flush()
    log.log.close()
    return log


def test_offsets_and_times(
    log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    high_watermark = log.end - 1
    status, found, _ = created(capsys, log.home, "--out", out)
    assert (status, found["end_offset"]) == (0, high_watermark)
    assert found["state_digest"] == state_digest(log.image_at(high_watermark)).hex()
    status, found, _ = created(capsys, log.home, "--out", out, "--at-time", TIME_0 + 11)
    assert status == 0
    assert found["state_digest"] == state_digest(log.image_at(found["end_offset"])).hex()
    inside = high_watermark - 2
    status, found, error = created(capsys, log.home, "--out", out, "--at-offset", inside)
    assert (status, found["end_offset"]) == (0, inside - 1)
    assert "inside a batch or a transaction" in error
    CheckpointReader(Path(found["file"])).verify()


def test_refusals(log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, error = created(capsys, log.home, "--at-offset", log.end)
    assert (status, f"to {log.end - 1} are" in error) == (4, True)
    status, _, error = created(capsys, log.home, "--at-offset", log.end, "--uncommitted")
    assert (status, "--out" in error) == (6, True)
    status, _, error = created(capsys, log.home, "--at-offset", 0, "--out", tmp_path / "out")
    assert (status, "offset 0" in error) == (4, True)
    with DirectoryLock(log.home):
        status, _, error = created(capsys, log.home)
    assert (status, "in use" in error, "`quorate snapshot now`" in error) == (6, True, True)
    assert not list(log.partition.glob("*.checkpoint"))


def test_kafkas_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: its records stay in Kafka's codec, and a second file of the same id is refused."""
    directory = KafkaDirectory(tmp_path / "kafka")
    topic = TopicRecord("a", b"t" * 16)
    _, end = directory.batch(FeatureLevelRecord("metadata.version", 25), topic)
    status, found, _ = created(capsys, directory.path)
    assert (status, found["end_offset"], found["kraft_version"]) == (0, end, 0)
    data = Path(found["file"]).read_bytes()
    assert main(["log", "verify", str(directory.path)]) == 0
    capsys.readouterr()
    assert created(capsys, directory.path)[0] == 5
    _, again, _ = created(capsys, directory.path, "--out", tmp_path / "out")
    assert Path(again["file"]).read_bytes() == data


def test_configured_voters_are_not_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a file that the node itself would write otherwise is not written."""
    log = AuditLog(tmp_path)
    log.elect(1)
    log.world(3, 5)
    log.commit()
    log.log.close()
    status, _, error = created(capsys, log.home)
    assert (status, "bootstrap.voters" in error) == (6, True)
    assert not list(log.partition.glob("*.checkpoint"))
