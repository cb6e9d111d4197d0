"""A replay in parts side by side finds what one replay finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.directory import plan_source
from quorate.verification.checkpoint_files import VerifiedCheckpoint, verify_checkpoint_files
from quorate.verification.parts import parts_of, replay_in_parts
from quorate.verification.replay import replay
from quorum.batch import encode_batch
from quorum.errors import LogDamagedError
from quorum.types import SnapshotId
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_record
from statemachine.delta import ImageDelta
from statemachine.dump import dump_values, state_digest
from statemachine.image import MetadataImage
from statemachine.records import PartitionChangeRecord, TopicRecord
from tests.support.audit_log import AuditLog


def written(log: AuditLog, image: MetadataImage, offset: int) -> SnapshotId:
    """Write the checkpoint of a position as a node does, with both digests."""
    snapshot_id = SnapshotId(offset, 1)
    log.log.flush()
    write_checkpoint(
        log.fs,
        log.partition,
        snapshot_id,
        values=dump_values(image),
        last_contained_log_timestamp=1,
        log_digest=log.log.digest_at(offset),
        state_digest=state_digest(image),
    )
    return snapshot_id


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    """A log with three checkpoints, the last one at its end."""
    found = AuditLog(tmp_path / "node", segment_bytes=3000)
    found.elect(1)
    world = found.world(5, 40)
    written(found, found.machine.image, found.end)
    found.more(world, 40)
    written(found, found.machine.image, found.end)
    found.more(world, 20)
    found.commit()
    written(found, found.machine.image, found.end)
    return found


def checkpoints(log: AuditLog) -> list[VerifiedCheckpoint]:
    return verify_checkpoint_files(log.fs, log.partition)


def test_parts_lead_from_checkpoint_to_checkpoint(log: AuditLog) -> None:
    plan, every = plan_source(log.home), checkpoints(log)
    ends = [each.snapshot_id.offset for each in every]
    parts = parts_of(plan, every, 1)
    assert [each.end_offset for each in parts] == ends
    assert [each.begin and each.begin.end_offset for each in parts] == [None, *ends[:2]]
    assert [len(each.checkpoints) for each in parts] == [1, 1, 1]
    assert len(parts_of(plan, every, 1 << 30)) == 1
    read: list[int] = []
    found = replay_in_parts(plan, every, processes=2, part_bytes_min=1, progress=read.append)
    assert found == replay(plan, every)
    assert found.state_digest == state_digest(log.machine.image)
    assert all(each.is_replayed for each in found.checkpoints)
    assert read[-1] == found.size_bytes == sum(each.stat().st_size for each in segments(log))


def segments(log: AuditLog) -> list[Path]:
    return list(log.partition.glob("*.log"))


def test_a_wrong_checkpoint_is_found_although_the_parts_behind_it_agree(log: AuditLog) -> None:
    """Goal: a wrong state that every later checkpoint repeats; only the first link breaks.

    So no part may be believed that begins with a checkpoint which nothing has proven.
    """
    first, second, last = (each.snapshot_id for each in checkpoints(log))
    extra = TopicRecord("of no record", b"n" * 16)

    def with_extra(offset: int) -> MetadataImage:
        delta = ImageDelta(log.image_at(offset))
        delta.replay(extra)
        return delta.finish(log.image_at(offset).provenance)

    for each in (first, second, last):
        written(log, with_extra(each.offset), each.offset)
    plan, every = plan_source(log.home), checkpoints(log)
    found = replay_in_parts(plan, every, processes=2, part_bytes_min=1)
    assert found == replay(plan, every)
    assert [bool(each.problem) for each in found.checkpoints] == [True] * 3
    assert found.state_digest == state_digest(log.machine.image)


def test_a_record_that_contradicts_the_state_is_reported_as_by_one_replay(
    tmp_path: Path,
) -> None:
    """Goal: in the last part; the message names file, position and offset."""
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    log.world(5, 40)
    written(log, log.machine.image, log.end)
    offset = log.end
    record = encode_record(PartitionChangeRecord(3, b"?" * 16, leader=1))
    data = encode_batch([record], base_offset=offset, epoch=1, timestamp=5)
    log.log.append(data, base_offset=offset, end_offset=offset + 1)
    log.commit()
    plan, every = plan_source(log.home), checkpoints(log)
    assert len(parts_of(plan, every, 1)) == 2
    with pytest.raises(LogDamagedError, match="change to no partition") as one:
        replay(plan, every)
    with pytest.raises(LogDamagedError) as parted:
        replay_in_parts(plan, every, processes=2, part_bytes_min=1)
    assert str(parted.value) == str(one.value)
    assert parted.value.offset == offset
