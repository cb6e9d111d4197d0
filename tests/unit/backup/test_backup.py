"""Backups from directories: what they hold, how they continue, and that nothing damaged passes."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.backup.check import verify
from quorate.backup.create import create
from quorate.backup.drill import drill
from quorate.backup.errors import (
    BackupDamagedError,
    BackupGapError,
    BackupTargetError,
    NoBackupError,
    NotInBackupError,
    OtherHistoryError,
)
from quorate.backup.manifest import MANIFESTS_KEPT, Manifest, manifest_name, newest_manifest
from quorate.backup.object_store import FsspecStorage
from quorate.backup.source import DirectorySource
from quorate.backup.storage import DirectoryStorage, Storage, storage_of
from quorate.backup.unpack import end_at_time, unpack
from quorum.errors import StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.recovery import open_log
from statemachine.dump import state_digest
from statemachine.records import FeatureLevelRecord, TopicRecord
from tests.support.audit_log import TIME_0, AuditLog
from tests.support.backed_up_log import CHUNK_BYTES, World, backed_up, trimmed
from tests.support.kafka_directory import KafkaDirectory

_URLS = itertools.count()


def storages(tmp_path: Path) -> dict[str, Storage]:
    return {
        "directory": DirectoryStorage(tmp_path / "target"),
        "memory": FsspecStorage(f"memory://backup{next(_URLS)}/quorate"),
        "local": FsspecStorage(f"file://{tmp_path}/target"),
    }


@pytest.fixture(params=["directory", "memory", "local"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    return World(log, storages(tmp_path)[request.param])


def test_a_backup_continues_and_is_restored_to_each_offset(world: World, tmp_path: Path) -> None:
    first_end = world.grow()
    first, added = world.back_up()
    assert (first.sequence, first.end.offset, first.size_bytes) == (1, first_end, added)
    assert len(first.chunks) > 1
    assert world.back_up() == (first, 0), "nothing new"
    world.log.elect(3)
    end = world.grow()
    manifest, added = world.back_up()
    assert (manifest.sequence, manifest.end.offset, manifest.end.epoch) == (2, end, 3)
    assert manifest.chunks[: len(first.chunks) - 1] == first.chunks[:-1]
    assert manifest.chunks[len(first.chunks) - 1].start_offset == first.chunks[-1].start_offset
    assert [each.epoch for each in manifest.epochs] == [1, 3]
    assert 0 < added < manifest.size_bytes
    assert manifest.log_digest == world.log.log.digest_at(end).hex()
    assert manifest.state_digest == state_digest(world.log.machine.image).hex()
    assert verify(world.storage).problems == ()
    for offset in (0, 1, first_end - 1, first_end, end):
        found = unpack(
            world.storage, manifest, OsFileSystem(), tmp_path / f"at-{offset}", end_offset=offset
        )
        assert found.end.offset == max(each for each in world.log.images if each <= offset)
        assert found.log_digest == world.log.log.digest_at(found.end.offset)
    with pytest.raises(NotInBackupError, match=f"not of {end + 1}"):
        unpack(world.storage, manifest, OsFileSystem(), tmp_path / "no", end_offset=end + 1)
    assert end_at_time(world.storage, manifest, TIME_0 + first_end) == first_end + 1
    assert end_at_time(world.storage, manifest, TIME_0 + 10**6) == end


def test_a_trimmed_log_begins_with_its_checkpoint(world: World, tmp_path: Path) -> None:
    world.grow()
    begin = trimmed(world.log)
    end = world.grow()
    manifest, _ = world.back_up()
    assert (manifest.start, manifest.end.offset) == (begin, end)
    assert manifest.checkpoint is not None
    assert manifest.checkpoint.snapshot_id == begin
    assert verify(world.storage).problems == ()
    drilled = drill(world.storage, tmp_path / "scratch")
    assert drilled.problems == ()
    assert drilled.found_digest == state_digest(world.log.machine.image).hex()


def test_a_drill_finds_a_state_that_is_not_the_sources(world: World, tmp_path: Path) -> None:
    """Goal: every file and every digest chain is intact, and yet the restored state is wrong."""
    world.grow()

    class Wrong(DirectorySource):
        async def state(self) -> Any:
            found = await super().state()
            return type(found)(*(getattr(found, name) for name in found.__slots__[:-1]), b"wrong")

    asyncio.run(create(Wrong(world.log.home), world.storage, tool_version="test", created_ms=5))
    assert verify(world.storage).problems == ()
    assert "not what the source reported" in drill(world.storage, tmp_path / "scratch").problems[0]


class CutError(Exception):
    pass


class Failing:
    """A storage that fails at its n-th write, in the middle of the file."""

    def __init__(self, inner: Storage, writes: int) -> None:
        self.inner = inner
        self.left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, name: str, content: Iterable[bytes]) -> None:
        self.left -= 1
        self.inner.write(name, content if self.left else self._half(b"".join(content)))

    def _half(self, data: bytes) -> Iterator[bytes]:
        yield data[: len(data) // 2]
        raise CutError


def test_an_interrupted_run_leaves_the_former_backup(world: World) -> None:
    """Goal: at every write, first run and second; the next run continues as if nothing happened."""
    first: Manifest | None = None
    for _ in range(2):
        end = world.grow()
        writes = 1
        while True:
            failing = Failing(world.storage, writes)
            try:
                manifest, _ = backed_up(world.log.home, failing)  # type: ignore[arg-type]
            except CutError:
                if first is None:
                    with pytest.raises((NoBackupError, BackupDamagedError)):
                        newest_manifest(world.storage)
                    if isinstance(world.storage, FsspecStorage):
                        # A store without atomic writes keeps half a manifest of a first run.
                        world.storage.remove(manifest_name(1))
                else:
                    assert newest_manifest(world.storage)[0] == first
                    assert verify(world.storage).problems == ()
                writes += 1
                continue
            break
        assert writes > 2
        assert manifest.end.offset == end
        assert verify(world.storage).problems == ()
        first = manifest


def test_any_flipped_byte_of_any_file_is_found(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    world = World(log, DirectoryStorage(tmp_path / "target"))
    world.grow(8)
    trimmed(log)
    world.grow(8)
    world.back_up()
    files = [each for each in (tmp_path / "target").rglob("*") if each.is_file()]
    files = [each for each in files if each.name != ".lock"]
    assert len(files) == 3
    for path in files:
        intact = path.read_bytes()
        for position in range(0, len(intact), 13):
            path.write_bytes(
                intact[:position] + bytes([intact[position] ^ 4]) + intact[position + 1 :]
            )
            try:
                problems = verify(world.storage).problems
            except BackupDamagedError:
                continue
            assert problems, (path.name, position)
            with pytest.raises(BackupDamagedError):
                unpack(
                    world.storage,
                    newest_manifest(world.storage)[0],
                    OsFileSystem(),
                    tmp_path / f"{path.name}-{position}",
                )
        path.unlink()
        with pytest.raises((BackupDamagedError, NoBackupError)):
            unpack(
                world.storage,
                newest_manifest(world.storage)[0],
                OsFileSystem(),
                tmp_path / f"{path.name}-gone",
            )
        path.write_bytes(intact)


def test_sources_that_do_not_continue_a_backup(world: World, tmp_path: Path) -> None:
    begin = world.grow()
    copy = world.log.copy(tmp_path / "copy")
    fork = world.log.fork(tmp_path / "fork", begin - 5, 7)
    for number in range(40):
        fork.command(TopicRecord(f"of the fork {number}", bytes([200, number]) * 8))
    fork.commit()
    other = AuditLog(tmp_path / "other", cluster_id="another")
    other.elect(1)
    other.commit()
    world.grow()
    manifest, _ = world.back_up()
    for source, kind, text in (
        (other.home, OtherHistoryError, "of cluster another"),
        (copy, OtherHistoryError, "before the backup"),
        (fork.home, OtherHistoryError, "not that of the backup"),
    ):
        with pytest.raises(kind, match=text):
            world.back_up(source)
    world.grow()
    trimmed(world.log)
    with pytest.raises(BackupGapError, match="begins at offset"):
        world.back_up()
    assert newest_manifest(world.storage)[0] == manifest


def test_old_manifests_are_removed(world: World) -> None:
    for _ in range(MANIFESTS_KEPT + 2):
        world.grow(2)
        world.back_up()
    names = [name for name in world.storage.names("") if name.startswith("manifest")]
    assert names == [manifest_name(each) for each in range(3, MANIFESTS_KEPT + 3)]
    # A newest one that is not intact is passed over, and reported.
    world.storage.write(names[-1], [b"half"])
    manifest, notes = newest_manifest(world.storage)
    assert manifest.sequence == MANIFESTS_KEPT + 1
    assert names[-1] in notes[0]


def test_a_kafka_controllers_directory(tmp_path: Path) -> None:
    directory = KafkaDirectory(tmp_path / "kafka")
    directory.batch(FeatureLevelRecord("metadata.version", 25), TopicRecord("a", b"t" * 16))
    storage = DirectoryStorage(tmp_path / "target")
    manifest, _ = backed_up(directory.path, storage)
    assert manifest.cluster_id == "any text"
    assert drill(storage, tmp_path / "scratch").problems == ()


def test_a_restored_log_is_a_log_of_ours(world: World, tmp_path: Path) -> None:
    end = world.grow()
    manifest, _ = world.back_up()
    unpacked = unpack(world.storage, manifest, OsFileSystem(), tmp_path / "restored")
    log, report = open_log(OsFileSystem(), unpacked.partition)
    assert (log.end.offset, report.torn_bytes) == (end, 0)
    log.close()


def test_targets_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(BackupTargetError, match="no-such-store"):
        storage_of("no-such-store://a/b")
    with pytest.raises(NoBackupError):
        newest_manifest(storage_of(str(tmp_path / "nothing")))
    storage = storage_of(str(tmp_path / "target"))
    with storage.lock(), pytest.raises(StorageError, match="in use"):
        storage.lock()


def test_small_chunks_are_merged_and_those_that_no_manifest_names_are_removed(
    world: World,
) -> None:
    """Goal: the number of files follows from the bytes, not from the runs."""
    runs = 30
    for _ in range(runs):
        world.grow(1)
        manifest, _ = world.back_up()
    assert len(manifest.chunks) <= manifest.size_bytes // CHUNK_BYTES + 1 < runs
    assert verify(world.storage).problems == ()
    stored = {f"log/{name}" for name in world.storage.names("log")}
    kept = {each.name for each in manifest.chunks}
    assert kept <= stored
    assert len(stored) <= len(kept) + MANIFESTS_KEPT
    # While one of the manifests is unreadable, what it names is not known, and all stay.
    world.storage.write(manifest_name(manifest.sequence - 1), [b"not intact"])
    world.grow(1)
    world.back_up()
    assert stored <= {f"log/{name}" for name in world.storage.names("log")}


def test_a_damaged_last_chunk_is_not_continued(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    world = World(log, DirectoryStorage(tmp_path / "target"))
    world.grow(2)
    manifest, _ = world.back_up()
    path = tmp_path / "target" / manifest.chunks[-1].name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    world.grow(2)
    with pytest.raises(BackupDamagedError, match="not the content that the manifest names"):
        world.back_up()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda found: found | {"version": 2}, "of version 2"),
        (lambda found: {"version": 1}, "not a manifest"),
        (lambda found: [], "not a manifest"),
        (lambda found: found | {"another": 1}, "not a manifest"),
        (
            lambda found: found | {"chunks": [{**found["chunks"][0], "name": "log/../../x"}]},
            "no file of a backup",
        ),
    ],
)
def test_manifests_that_are_intact_and_not_ours(
    change: Callable[[dict[str, Any]], object], text: str, tmp_path: Path
) -> None:
    """Goal: another release's, and one that leads out of the target."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    world = World(log, DirectoryStorage(tmp_path / "target"))
    world.grow(2)
    world.back_up()
    body = b"".join(world.storage.read(manifest_name(1))).partition(b"\n")[2]
    data = json.dumps(change(json.loads(body))).encode()
    digest = hashlib.sha256(data).hexdigest().encode()
    world.storage.write(manifest_name(1), [digest + b"\n" + data])
    with pytest.raises(BackupDamagedError, match=text):
        newest_manifest(world.storage)


def test_a_file_that_goes_away_while_it_is_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers of object stores ask for each part of a file anew."""
    storage = FsspecStorage(f"memory://backup{next(_URLS)}/quorate")
    storage.write("log/part", [b"content"])

    def gone(_file: object, _size: int = -1) -> bytes:
        raise FileNotFoundError("log/part")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.read", gone)
    with pytest.raises(BackupDamagedError, match="log/part: is missing"):
        list(storage.read("log/part"))
