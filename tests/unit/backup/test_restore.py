"""A backup becomes the only voter of a new incarnation of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.backup.errors import NotInBackupError
from quorate.backup.manifest import Manifest, newest_manifest
from quorate.backup.restore import Restoration, restore
from quorate.backup.storage import DirectoryStorage, Storage
from quorate.recovery.incarnation import Begun
from quorate.replica.boot import Stores, open_stores
from quorum.errors import IdentityError
from quorum.incarnation import FIRST_INCARNATION
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_identity
from quorum.ports import FileSystem
from quorum.types import ZERO_UUID, Endpoint, OffsetAndEpoch, uuid_to_text
from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL
from snapshot.config import SnapshotConfig
from statemachine.dump import state_digest
from tests.support.audit_log import AuditLog
from tests.support.backed_up_log import World, backed_up, trimmed
from tests.support.crash_scripts import crashed
from tests.support.crash_sites import WatchedFileSystem
from tests.support.storage_script import HOME, clock

ENDPOINTS = (Endpoint("CONTROLLER", "n7", 9093),)


@pytest.fixture
def world(tmp_path: Path) -> World:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    return World(log, DirectoryStorage(tmp_path / "target"))


def restored(
    storage: Storage,
    fs: FileSystem,
    home: Path,
    *,
    end: int | None = None,
    incarnation_id: bytes = b"i" * 16,
) -> Begun:
    manifest, _ = newest_manifest(storage)
    restoration = Restoration(7, b"d" * 16, ENDPOINTS, incarnation_id, end)
    report = {"operation": "restore"}
    found, begun = restore(storage, manifest, fs, home, restoration, lambda _: report, clock())
    assert begun.incarnation.kept.offset == found.end.offset
    return begun


def opened(fs: FileSystem, home: Path) -> Stores:
    return open_stores(
        fs,
        home,
        node_id=7,
        log_config=LogConfig(),
        snapshot_config=SnapshotConfig(),
        clock=clock(),
    )


def test_a_restored_node_has_the_state_of_the_backup_and_votes_alone(
    world: World, tmp_path: Path
) -> None:
    world.grow()
    world.log.elect(3)
    end = world.grow()
    manifest, _ = world.back_up()
    begun = restored(world.storage, OsFileSystem(), tmp_path / "new")
    stores = opened(OsFileSystem(), tmp_path / "new")
    assert begun.end == stores.log.end == OffsetAndEpoch(end + 3, 1003)
    assert stores.identity.log_incarnation_id == begun.incarnation.id == b"i" * 16
    assert (begun.incarnation.number, begun.incarnation.previous_id) == (1, ZERO_UUID)
    assert begun.incarnation.kept == OffsetAndEpoch(end, 3)
    (voter,) = stores.state.voters[-1].voters
    assert (voter.key.id, voter.endpoints) == (7, ENDPOINTS)
    assert stores.state.high_watermark == begun.end.offset
    assert stores.log.digest_at(end).hex() == manifest.log_digest
    stores.log.close()
    after = backed_up(tmp_path / "new", DirectoryStorage(tmp_path / "again"))[0]
    assert after.state_digest == manifest.state_digest
    assert (after.incarnation_number, after.incarnation_id) == (1, uuid_to_text(b"i" * 16))
    assert (manifest.incarnation_number, manifest.incarnation_id) == (0, "")


def test_an_earlier_offset_leaves_out_what_came_later(world: World, tmp_path: Path) -> None:
    first_end = world.grow()
    digest = state_digest(world.log.machine.image).hex()
    world.log.elect(3)
    end = world.grow()
    world.back_up()
    begun = restored(world.storage, OsFileSystem(), tmp_path / "new", end=first_end)
    # The epoch is above that of the records that were left out, too.
    assert begun.end == OffsetAndEpoch(first_end + 3, 1003)
    assert begun.incarnation.kept == OffsetAndEpoch(first_end, 1)
    after = backed_up(tmp_path / "new", DirectoryStorage(tmp_path / "again"))[0]
    assert after.state_digest == digest
    with pytest.raises(NotInBackupError):
        restored(world.storage, OsFileSystem(), tmp_path / "no", end=end + 1)


def test_a_backup_of_a_restored_cluster_is_restored_again(world: World, tmp_path: Path) -> None:
    world.grow()
    trimmed(world.log)
    world.grow()
    world.back_up()
    restored(world.storage, OsFileSystem(), tmp_path / "second")
    again = DirectoryStorage(tmp_path / "again")
    backed_up(tmp_path / "second", again)
    third = restored(again, OsFileSystem(), tmp_path / "third", incarnation_id=b"j" * 16)
    assert third.incarnation.number == 2
    assert third.incarnation.previous_id == b"i" * 16
    # Up to before the first restore: again a second incarnation, and another one.
    manifest: Manifest = newest_manifest(again)[0]
    other = restored(
        again,
        OsFileSystem(),
        tmp_path / "other",
        end=manifest.end.offset - 3,
        incarnation_id=b"k" * 16,
    )
    assert (other.incarnation.number, other.incarnation.previous_id) == (1, ZERO_UUID)


@pytest.mark.parametrize("mode", [LOSE_ALL, KEEP_ALL], ids=["lose-all", "keep-all"])
def test_an_interrupted_restore_is_no_node(world: World, tmp_path: Path, mode: object) -> None:
    """Goal: all or nothing. Method: lose power behind every change; it has no identity, or all."""
    end = world.grow(5)
    world.back_up()
    complete = interrupted = 0
    for number in range(10_000):
        fs = crashed(
            WatchedFileSystem(),
            lambda fs: restored(world.storage, fs, HOME),
            number,
            mode,  # type: ignore[arg-type]
            number,
        )
        if fs is None:
            break
        try:
            load_identity(fs, HOME)
        except IdentityError:
            interrupted += 1
            continue
        stores = opened(fs, HOME)
        assert stores.log.end.offset == end + 3
        assert stores.state.voters[-1].incarnation != FIRST_INCARNATION
        complete += 1
    assert interrupted > 10
    assert complete >= 1
