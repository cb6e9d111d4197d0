"""``quorate log verify``: an intact log, corruption anywhere in it, and files that are gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import main
from quorum.batch import encode_batch
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.recovery import open_log
from quorum.types import EpochStart, SnapshotId
from snapshot.naming import parse_name
from snapshot.reader import CheckpointReader
from snapshot.writer import write_checkpoint
from statemachine.dump import dump_values, state_digest
from statemachine.image import MetadataImage
from statemachine.records import FeatureLevelRecord, TopicRecord
from tests.support.audit_log import AuditLog
from tests.support.kafka_directory import (
    PARTITION,
    SAMPLE_BATCHES,
    SAMPLE_END_OFFSET,
    SEGMENT,
    KafkaDirectory,
    whole_sample,
)

BATCHES = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed log of several segments, as a node leaves it."""
    log, _ = open_log(OsFileSystem(), tmp_path, LogConfig(segment_bytes=400))
    for offset in range(BATCHES):
        data = encode_batch([b"v" * 40], base_offset=offset, epoch=1, timestamp=5)
        epochs = (EpochStart(1, 0),) if offset == 0 else ()
        log.append(data, base_offset=offset, end_offset=offset + 1, epochs=epochs)
        log.flush()
    log.store_high_watermark(BATCHES)
    log.close()
    assert len(segments(tmp_path)) > 2
    return tmp_path


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def verified(
    capsys: pytest.CaptureFixture[str], folder: Path, *options: str
) -> tuple[int, dict[str, Any], str]:
    status = main(["log", "verify", str(folder), "-o", "json", *options])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else {}, captured.err


def test_a_intact_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, _ = verified(capsys, folder, "--no-replay")
    assert status == 0
    assert (found["kind"], found["is_intact"]) == ("LogVerification", True)
    assert (found["end_offset"], found["batches"], found["damaged_offset"]) == (
        BATCHES,
        BATCHES,
        -1,
    )


def test_any_flipped_byte_of_any_segment_ends_with_8(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: header fields that no batch checksum covers are seen as well."""
    for path in segments(folder):
        intact = path.read_bytes()
        for position in range(0, len(intact), 7):
            path.write_bytes(
                intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :]
            )
            status, found, error = verified(capsys, folder)
            assert status == 8, (path.name, position)
            assert found["is_intact"] is False
            assert isinstance(found["damaged_offset"], int)
            assert 0 <= found["damaged_offset"] < BATCHES
            assert "section Damage" in error
        path.write_bytes(intact)


@pytest.mark.parametrize("gone", ["first", "last", "all"])
def test_segments_that_are_gone(
    folder: Path, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    every = segments(folder)
    for path in {"first": every[:1], "last": every[-1:], "all": every}[gone]:
        path.unlink()
    status, found, _ = verified(capsys, folder)
    assert status == 8
    assert found["is_intact"] is False


def test_an_empty_directory_is_nothing_to_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = verified(capsys, tmp_path)
    assert status == 4
    assert "neither log segments nor checkpoints" in error


# ------------------------------------------------------------------ checkpoints and the state


@pytest.fixture
def node(tmp_path: Path) -> AuditLog:
    """The closed directory of a node with two checkpoints."""
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    world = log.world(5, 40)
    log.checkpoint()
    log.more(world, 40)
    log.checkpoint()
    log.more(world, 20)
    log.commit()
    log.log.close()
    return log


def checkpoint_files(log: AuditLog) -> list[Path]:
    return sorted(log.partition.glob("*.checkpoint"))


def test_every_checkpoint_is_compared_with_the_replay(
    node: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, _ = verified(capsys, node.home)
    assert status == 0
    assert (found["replayed_from"], found["replayed_to"]) == (0, node.end)
    assert found["state_digest"] == state_digest(node.machine.image).hex()
    assert [(row["is_intact"], row["is_replayed"]) for row in found["rows"]] == [(True, True)] * 2
    assert found["records"] == node.end
    assert found["bytes_per_second"] > 0
    assert found["replayed_bytes_per_second"] > 0
    status, found, _ = verified(capsys, node.home, "--no-replay")
    assert status == 0
    assert [row["is_replayed"] for row in found["rows"]] == [False, False]
    assert found["state_digest"] is None


def test_a_trimmed_log_is_replayed_from_its_oldest_checkpoint(
    node: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: there is nothing to compare the first one with, and the second is compared."""
    snapshots = [parse_name(path.name)[0] for path in checkpoint_files(node)]  # type: ignore[index]
    log, _ = open_log(node.fs, node.partition, node.config)
    log.advance_start(snapshots[0])
    log.close()
    status, found, _ = verified(capsys, node.home)
    assert status == 0
    assert found["replayed_from"] == snapshots[0].offset
    assert [row["is_replayed"] for row in found["rows"]] == [False, True]
    assert found["state_digest"] == state_digest(node.machine.image).hex()


def test_any_flipped_byte_of_a_checkpoint_ends_with_8(
    node: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in checkpoint_files(node):
        intact = path.read_bytes()
        for position in range(0, len(intact), 97):
            path.write_bytes(
                intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :]
            )
            status, found, error = verified(capsys, node.home, "--no-replay")
            assert status == 8, (path.name, position)
            assert [row["file"] for row in found["rows"] if not row["is_intact"]] == [path.name]
            assert path.name in error
        path.write_bytes(intact)


def rewritten(log: AuditLog, image: MetadataImage, offset: int, log_digest: bytes) -> None:
    """Write an intact checkpoint of ``image`` for a position of the log."""
    write_checkpoint(
        log.fs,
        log.partition,
        SnapshotId(offset, 1),
        values=dump_values(image),
        last_contained_log_timestamp=1,
        log_digest=log_digest,
        state_digest=state_digest(image),
    )


def test_an_intact_checkpoint_with_another_state_is_found(
    node: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: no checksum and no digest of the file can show this, only the replay."""
    newest = parse_name(checkpoint_files(node)[-1].name)[0]  # type: ignore[index]
    digest = CheckpointReader(checkpoint_files(node)[-1]).head().log_digest
    earlier = node.image_at(newest.offset // 2)
    rewritten(node, earlier, newest.offset, digest)
    assert verified(capsys, node.home, "--no-replay")[0] == 0
    status, found, error = verified(capsys, node.home)
    assert status == 8
    assert "is not that of the log's replay" in error
    assert [row["is_intact"] for row in found["rows"]] == [True, False]


def test_a_checkpoint_of_another_log_is_found_without_a_replay(
    node: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = parse_name(checkpoint_files(node)[-1].name)[0]  # type: ignore[index]
    rewritten(node, node.image_at(newest.offset), newest.offset, b"x" * 16)
    status, _, error = verified(capsys, node.home, "--no-replay")
    assert status == 8
    assert "its log digest is not the log's" in error
    rewritten(node, node.image_at(newest.offset), newest.offset, b"")
    assert verified(capsys, node.home)[0] == 0


def test_a_checkpoint_inside_a_batch_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    end = log.command(TopicRecord("a", b"t" * 16), TopicRecord("b", b"u" * 16))
    log.commit()
    rewritten(log, log.image_at(1), end - 1, b"")
    status, _, error = verified(capsys, tmp_path, "--no-replay")
    assert (status, f"no batch of the log ends at offset {end - 1}" in error) == (8, True)


# ------------------------------------------------------------------ Kafka's directories


def test_a_real_controllers_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, _ = verified(capsys, whole_sample(tmp_path))
    assert status == 0
    assert found["is_foreign"] is True
    assert (found["batches"], found["end_offset"]) == (SAMPLE_BATCHES, SAMPLE_END_OFFSET)
    assert found["replayed_to"] == SAMPLE_END_OFFSET


def test_a_copied_partition_directory_of_kafka_is_no_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a log is verified wherever it lies. Method: without the files of its data directory."""
    (tmp_path / "copied").mkdir()
    copy = (whole_sample(tmp_path) / PARTITION).rename(tmp_path / "copied" / "log")
    status, found, announced = verified(capsys, copy)
    assert (status, found["is_intact"]) == (0, True)
    assert "meta.properties" in announced


def test_checksums_of_kafkas_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = whole_sample(tmp_path)
    path = sample / PARTITION / SEGMENT
    intact = bytearray(path.read_bytes())
    intact[len(intact) // 2] ^= 1
    path.write_bytes(intact)
    status, found, error = verified(capsys, sample)
    assert status == 8
    assert 0 < found["damaged_offset"] < SAMPLE_END_OFFSET
    assert "section Damage" in error


def test_epochs_of_kafkas_batches_against_its_epoch_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a wrong epoch is outside of every checksum."""
    sample = whole_sample(tmp_path)
    path = sample / PARTITION / "leader-epoch-checkpoint"
    lines = path.read_text().splitlines()
    epoch, offset = lines[-1].split()
    path.write_text("\n".join([*lines[:-1], f"{int(epoch) + 1} {offset}"]) + "\n")
    status, found, error = verified(capsys, sample)
    assert status == 8
    assert found["is_intact"] is False
    assert "leader-epoch-checkpoint" in error


def test_a_torn_tail_is_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = whole_sample(tmp_path)
    path = sample / PARTITION / SEGMENT
    path.write_bytes(path.read_bytes()[:-5])
    status, found, error = verified(capsys, sample)
    assert status == 0
    assert found["is_intact"] is True
    assert "torn tail" in error
    assert SEGMENT in found["torn_tail"]


def test_a_kafka_checkpoint_is_compared_with_the_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: Kafka's checkpoints have neither a log digest nor a state digest."""
    directory = KafkaDirectory(tmp_path / "kafka")
    topic = TopicRecord("a", b"t" * 16)
    _, end = directory.batch(FeatureLevelRecord("metadata.version", 25), topic)
    directory.batch(TopicRecord("b", b"u" * 16))
    records = [FeatureLevelRecord("metadata.version", 25), topic]
    directory.checkpoint(end, *records)
    status, found, _ = verified(capsys, directory.path)
    assert (status, found["rows"][0]["is_replayed"]) == (0, True)
    directory.checkpoint(end, *records[:1])
    status, _, error = verified(capsys, directory.path)
    assert status == 8
    assert "topic a" in error
