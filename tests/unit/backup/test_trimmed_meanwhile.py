"""A leader that trims its log while the first backup is made: the backup begins again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorate.backup.create import ATTEMPTS_MAX, create
from quorate.backup.drill import drill
from quorate.backup.errors import BackupGapError, NoBackupError
from quorate.backup.manifest import Manifest, newest_manifest
from quorate.backup.source import DirectorySource, SourceState
from quorate.backup.storage import DirectoryStorage
from quorum.types import SnapshotId
from tests.support.audit_log import AuditLog
from tests.support.backed_up_log import CHUNK_BYTES, World, trimmed

SEGMENTS = 100
"""Steps that fill several segments."""


class TrimmingSource(DirectorySource):
    """A node that trims its log during the first ``trims`` runs.

    After a trim it refuses to read what is gone, as a leader does: ``NodeSource``.
    """

    def __init__(self, world: World, trims: int) -> None:
        super().__init__(world.log.home)
        self.world = world
        self.trims = trims
        self.runs = 0

    async def state(self) -> SourceState:
        self.runs += 1
        return await super().state()

    def _trim(self) -> bool:
        if self.trims == 0:
            return False
        self.trims -= 1
        self.world.grow()
        trimmed(self.world.log)
        return True

    async def batches(self, offset: int) -> AsyncIterator[bytes]:
        if self._trim():
            raise BackupGapError("the log was trimmed while it was read")
        async for batch in super().batches(offset):
            yield batch


class NewerCheckpointSource(TrimmingSource):
    """The trim comes before the checkpoint is read: it is of a later state than ``state`` saw."""

    async def checkpoint(self) -> tuple[SnapshotId, AsyncIterator[bytes]]:
        if self._trim():
            # What a leader finds at its log start now; the end of the run stays.
            other = DirectorySource(self.world.log.home)
            await other.state()
            return await other.checkpoint()
        return await super().checkpoint()


class DeletingSource(TrimmingSource):
    """The node deletes files of its directory when a run has listed them."""

    async def state(self) -> SourceState:
        state = await super().state()
        if self.trims:
            self.trims -= 1
            trimmed(self.world.log)
            self.world.grow(SEGMENTS)
        return state

    async def batches(self, offset: int) -> AsyncIterator[bytes]:
        async for batch in DirectorySource.batches(self, offset):
            yield batch


@pytest.fixture
def world(tmp_path: Path) -> World:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    world = World(log, DirectoryStorage(tmp_path / "target"))
    world.grow()
    return world


def back_up(world: World, source: DirectorySource) -> Manifest:
    made = create(source, world.storage, tool_version="test", created_ms=5, chunk_bytes=CHUNK_BYTES)
    return asyncio.run(made)[0]


def test_a_first_backup_begins_again(world: World, tmp_path: Path) -> None:
    source = TrimmingSource(world, ATTEMPTS_MAX - 1)
    manifest = back_up(world, source)
    assert source.runs == ATTEMPTS_MAX
    assert manifest.start.offset > 0, "it begins at the checkpoint"
    assert manifest.end.offset == world.log.end
    assert drill(world.storage, tmp_path / "scratch").problems == ()


def test_it_ends_with_the_error_if_the_log_is_trimmed_each_time(world: World) -> None:
    source = TrimmingSource(world, ATTEMPTS_MAX)
    with pytest.raises(BackupGapError):
        back_up(world, source)
    assert source.runs == ATTEMPTS_MAX
    with pytest.raises(NoBackupError):
        newest_manifest(world.storage)


def test_a_gap_behind_a_backup_is_an_error_at_once(world: World) -> None:
    """Goal: lost records are never passed over. Method: as above, but a backup is there."""
    former = back_up(world, DirectorySource(world.log.home))
    world.grow()
    source = TrimmingSource(world, 1)
    with pytest.raises(BackupGapError):
        back_up(world, source)
    assert source.runs == 1
    assert newest_manifest(world.storage)[0] == former


def test_a_checkpoint_of_a_later_state_is_not_used(world: World, tmp_path: Path) -> None:
    """Goal: a drill finds what the manifest says. Method: a trim between state and checkpoint."""
    trimmed(world.log)
    world.grow()
    source = NewerCheckpointSource(world, 1)
    back_up(world, source)
    assert source.runs == 2
    assert drill(world.storage, tmp_path / "scratch").problems == ()


def test_a_first_backup_of_a_directory_whose_files_are_deleted_begins_again(
    world: World, tmp_path: Path
) -> None:
    world.grow(SEGMENTS)
    source = DeletingSource(world, ATTEMPTS_MAX - 1)
    manifest = back_up(world, source)
    assert source.runs == ATTEMPTS_MAX
    assert manifest.end.offset == world.log.end
    assert drill(world.storage, tmp_path / "scratch").problems == ()


def test_a_file_that_is_deleted_each_time_is_named(world: World) -> None:
    world.grow(SEGMENTS)
    source = DeletingSource(world, ATTEMPTS_MAX)
    with pytest.raises(BackupGapError, match=r"\.log.*trimmed its log meanwhile"):
        back_up(world, source)
    assert source.runs == ATTEMPTS_MAX


def test_a_deleted_file_behind_a_backup_is_a_gap(world: World) -> None:
    """Goal: lost records are never passed over. Method: the node deletes what was not copied."""
    former = back_up(world, DirectorySource(world.log.home))
    world.grow(SEGMENTS)
    source = DeletingSource(world, 1)
    with pytest.raises(BackupGapError, match="its log begins at offset"):
        back_up(world, source)
    assert source.runs == 2
    assert newest_manifest(world.storage)[0] == former
