"""The bug zoo of backup and restore: one broken rule each, and the check that must find it.

Backups have no simulated code, so they have no entry in ``tests/simulation/zoo``. One story makes a
backup in two runs, verifies it, drills it and restores it. It says which rules are broken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate.backup import check, create, drill, restore, unpack
from quorate.backup.check import verify
from quorate.backup.manifest import Manifest, newest_manifest, write_manifest
from quorate.backup.restore import Restoration
from quorate.backup.source import DirectorySource
from quorate.backup.storage import DirectoryStorage, Storage
from quorate.recovery.incarnation import Beginning
from quorate.replica.boot import Stores, open_stores
from quorum.errors import QuorateError
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import MetaProperties, write_identity
from quorum.types import ZERO_UUID, Endpoint
from snapshot.config import SnapshotConfig
from statemachine.dump import state_digest
from tests.support.audit_log import AuditLog
from tests.support.backed_up_log import World
from tests.support.storage_script import clock

INCARNATION = b"i" * 16
NODE, DISK, ENDPOINTS = 7, b"d" * 16, (Endpoint("CONTROLLER", "n7", 9093),)
Patch = pytest.MonkeyPatch


class Story:
    """One backup of a log of two epochs, and all that is done with it."""

    def __init__(self, home: Path) -> None:
        self.broken: set[str] = set()
        self.digest = b""
        """Log digest of what was restored last, at the end of the source."""
        self.home = home
        self.log = AuditLog(home / "node", segment_bytes=3000)
        self.log.elect(1)
        self.world = World(self.log, DirectoryStorage(home / "target"))
        self.first_end = self.world.grow()
        self.first_digest = state_digest(self.log.machine.image)
        with self.rule("created"):
            self.world.back_up()
        self.log.elect(3)
        self.end = self.world.grow()
        with self.rule("created"):
            self.world.back_up()

    @contextmanager
    def rule(self, name: str) -> Iterator[None]:
        try:
            yield
        except (AssertionError, QuorateError):
            self.broken.add(name)

    def run(self) -> set[str]:
        storage = self.world.storage
        manifest, _ = newest_manifest(storage)
        with self.rule("verified"):
            assert verify(storage).problems == ()
        with self.rule("drilled"):
            assert drill.drill(storage, self.home / "scratch").problems == ()
        with self.rule("complete"):
            self.restored(manifest, "whole")
            assert self.digest == self.log.log.digest_at(self.end)
        with self.rule("at-an-offset"):
            self.restored(manifest, "earlier", self.first_end)
            found = self.backed_up_again("earlier")
            assert found.state_digest == self.first_digest.hex()
        with self.rule("new-incarnation"):
            stores = self.restored(manifest, "incarnation")
            assert stores.identity.log_incarnation_id == INCARNATION
            assert stores.state.voters[-1].incarnation.previous_id == ZERO_UUID
        with self.rule("above-all-epochs"):
            assert self.restored(manifest, "epoch", self.first_end).log.end.epoch > 3
        with self.rule("damage-found"):
            assert self.is_damage_found(manifest)
        with self.rule("other-state-found"):
            assert self.is_other_state_found()
        return self.broken

    def restored(self, manifest: Manifest, name: str, end: int | None = None) -> Stores:
        home, fs = self.home / name, OsFileSystem()
        restoration = Restoration(NODE, DISK, ENDPOINTS, INCARNATION, end)
        report = {"operation": "restore"}
        storage = self.world.storage
        restore.restore(storage, manifest, fs, home, restoration, lambda _: report, clock())
        config, snapshots = LogConfig(), SnapshotConfig()
        stores = open_stores(
            fs, home, node_id=NODE, log_config=config, snapshot_config=snapshots, clock=clock()
        )
        end = stores.log.end.offset
        self.digest = stores.log.digest_at(self.end) if end > self.end else b""
        stores.log.close()
        return stores

    def backed_up_again(self, name: str) -> Manifest:
        source = DirectorySource(self.home / name)
        target = DirectoryStorage(self.home / f"again {name}")
        made, _ = asyncio.run(create.create(source, target, tool_version="test", created_ms=6))
        return made

    def is_damage_found(self, manifest: Manifest) -> bool:
        """Flip a bit of each chunk and leave the manifest as it is."""
        for chunk in manifest.chunks:
            path = self.home / "target" / chunk.name
            intact = path.read_bytes()
            path.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
            problems = verify(self.world.storage).problems
            path.write_bytes(intact)
            if not problems:
                return False
        return True

    def is_other_state_found(self) -> bool:
        """Back up a source that reports another state than its log has, and drill that."""

        class Wrong(DirectorySource):
            async def state(self) -> Any:
                return replace(await super().state(), state_digest=b"another")

        target = DirectoryStorage(self.home / "wrong")
        source = Wrong(self.log.home)
        asyncio.run(create.create(source, target, tool_version="test", created_ms=5))
        return bool(drill.drill(target, self.home / "scratch of wrong").problems)


def segment_left_out(patch: Patch) -> None:
    """A backup does not name one of its chunks."""

    def write(storage: Storage, manifest: Manifest) -> None:
        chunks = (*manifest.chunks[:1], *manifest.chunks[2:])
        write_manifest(storage, replace(manifest, chunks=chunks))

    patch.setattr(create, "write_manifest", write)


def newest_segment_left_out(patch: Patch) -> None:
    """A backup names its end, but not the last chunk before it."""

    def write(storage: Storage, manifest: Manifest) -> None:
        write_manifest(storage, replace(manifest, chunks=manifest.chunks[:-1]))

    patch.setattr(create, "write_manifest", write)


def archive_out_of_order(patch: Patch) -> None:
    """A backup names its chunks in another order than the log's."""

    def write(storage: Storage, manifest: Manifest) -> None:
        write_manifest(storage, replace(manifest, chunks=manifest.chunks[::-1]))

    patch.setattr(create, "write_manifest", write)


def former_incarnation_kept(patch: Patch) -> None:
    """A restore makes the directory a node's, in the incarnation that the backup is of."""

    def begin(
        fs: OsFileSystem, home: Path, identity: MetaProperties, beginning: Beginning, clock: object
    ) -> None:
        write_identity(fs, home, identity)

    patch.setattr(restore, "begin", begin)


def epochs_of_what_is_left_out_forgotten(patch: Patch) -> None:
    """A restore continues behind the epoch where the backup begins."""
    patch.setattr(restore, "newest_epoch", lambda manifest: manifest.epochs[0].epoch - 1_000)


def offset_passed_over(patch: Patch) -> None:
    """A restore to an offset writes everything that the backup has."""
    patch.setattr(unpack, "_below", lambda headers, end_offset: headers)


def drill_compares_nothing(patch: Patch) -> None:
    """A drill replays the log and takes any state for the right one."""
    run = drill.drill

    def drilled(*arguments: Any, **options: Any) -> Any:
        return replace(run(*arguments, **options), problems=())

    patch.setattr(drill, "drill", drilled)


def verify_compares_nothing(patch: Patch) -> None:
    """A check reads each chunk and believes what it reads."""

    def chunks(storage: Storage, manifest: Manifest) -> Iterator[Any]:
        for chunk in manifest.chunks:
            data = b"".join(storage.read(chunk.name))
            yield chunk, data, check.scan_batches(data, verify_crc=False)

    patch.setattr(check, "verified_chunks", chunks)


BUGS: dict[Callable[[Patch], None], str] = {
    segment_left_out: "verified",
    newest_segment_left_out: "drilled",
    archive_out_of_order: "verified",
    former_incarnation_kept: "new-incarnation",
    epochs_of_what_is_left_out_forgotten: "above-all-epochs",
    offset_passed_over: "at-an-offset",
    drill_compares_nothing: "other-state-found",
    verify_compares_nothing: "damage-found",
}
"""The rule that each one must be found to break; it may break others, too."""


def test_without_a_bug_no_rule_is_broken(tmp_path: Path) -> None:
    story = Story(tmp_path)
    manifest, _ = newest_manifest(story.world.storage)
    assert len(manifest.chunks) > 3
    assert story.run() == set()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(
    bug: Callable[[Patch], None], tmp_path: Path, monkeypatch: Patch
) -> None:
    bug(monkeypatch)
    broken = Story(tmp_path).run()
    assert BUGS[bug] in broken, broken
