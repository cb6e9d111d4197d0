"""A download resumes where an earlier process run left it; all kept bytes were verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.batch import HEADER_BYTES, peek_size
from quorum.errors import SnapshotCorruptError, StorageError
from quorum.ports import FileSystem
from quorum.types import SnapshotId
from snapshot.download import RESERVE_BYTES, FoundDownload
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.naming import FileState, file_name
from snapshot.store import DirectorySnapshotStore
from snapshot.verifier import CheckpointVerifier
from tests.support.recording_filesystem import RecordingFileSystem

ID = SnapshotId(20, 2)
VALUES = [b"%04d" % n * 100 for n in range(2000)]
BATCHES = [batch for batch, _ in checkpoint_batches(ID, CheckpointHead(9), VALUES)]
WHOLE = b"".join(BATCHES)
TWO = len(BATCHES[0]) + len(BATCHES[1])
"""Where the second data batch begins."""
CHUNK = 100_000


def digest_of(content: bytes) -> bytes:
    verifier = CheckpointVerifier()
    verifier.feed(content)
    return verifier.finish().digest


class Site:
    """One directory of real files, and the process runs that open it one after the other."""

    def __init__(self, fs: FileSystem, directory: Path, clock: object) -> None:
        self.fs, self.directory, self.clock = fs, directory, clock
        self.part = directory / file_name(ID, FileState.PART)
        self.store = self.opened()

    def opened(self) -> DirectorySnapshotStore:
        return DirectorySnapshotStore(self.fs, self.directory, self.clock)  # type: ignore[arg-type]

    def restart(self) -> FoundDownload | None:
        self.store = self.opened()
        self.store.clean_up()
        return self.store.recover_download()

    def fill(self, begin: int, end: int) -> None:
        for position in range(begin, end, CHUNK):
            self.store.write_chunk(ID, position, WHOLE[position : min(position + CHUNK, end)])


@pytest.fixture
def site(fs: RecordingFileSystem, directory: Path, clock) -> Site:
    return Site(fs, directory, clock)


def test_the_checkpoint_has_several_batches() -> None:
    assert len(BATCHES) >= 5
    assert peek_size(BATCHES[1]) == len(BATCHES[1])


@pytest.mark.parametrize("graceful", [False, True], ids=["killed", "closed"])
def test_it_goes_on_behind_the_last_whole_batch(site: Site, *, graceful: bool) -> None:
    site.store.begin_download(ID)
    site.fill(0, TWO + 1000)
    if graceful:
        site.store.close()
    assert site.restart() == FoundDownload(ID, TWO, 1000, "")
    site.fill(TWO, len(WHOLE))
    site.store.seal_download(ID, digest_of(WHOLE))
    assert site.store.path(ID).read_bytes() == WHOLE
    assert not site.part.exists()
    assert site.restart() is None


def test_a_complete_file_lacks_its_footer_only(site: Site) -> None:
    """The process ended between the last chunk and the seal: a leader is contacted anyway."""
    site.store.begin_download(ID)
    site.fill(0, len(WHOLE))
    body = len(WHOLE) - len(BATCHES[-1])
    assert site.restart() == FoundDownload(ID, body, len(BATCHES[-1]), "")
    site.fill(body, len(WHOLE))
    site.store.seal_download(ID, digest_of(WHOLE))
    assert site.store.path(ID).read_bytes() == WHOLE


@pytest.mark.parametrize(
    ("at", "kept"),
    [
        (10, 0),
        (len(BATCHES[0]) + HEADER_BYTES + 7, len(BATCHES[0])),
        (TWO + 5000, TWO),
        (TWO + 3, TWO),
    ],
)
def test_a_flipped_bit_ends_what_is_kept(site: Site, at: int, kept: int) -> None:
    site.store.begin_download(ID)
    site.fill(0, len(WHOLE) - 10)
    corrupt = bytearray(site.part.read_bytes())
    corrupt[at] ^= 4
    site.part.write_bytes(corrupt)
    found = site.restart()
    assert found is not None
    assert (found.size_bytes, found.cut_bytes) == (kept, len(corrupt) - kept)
    assert "corrupt" in found.damage
    assert site.part.exists() == (kept > 0)
    if not kept:
        site.store.begin_download(ID)
    site.fill(kept, len(WHOLE))
    site.store.seal_download(ID, digest_of(WHOLE))
    assert site.store.path(ID).read_bytes() == WHOLE


@pytest.mark.parametrize("tail", [bytes(70_000), b"\xff" * 70_000], ids=["zeros", "ones"])
def test_garbage_that_was_never_synced_is_cut(site: Site, tail: bytes) -> None:
    site.store.begin_download(ID)
    site.part.write_bytes(WHOLE[:TWO] + tail)
    found = site.restart()
    assert found is not None
    assert (found.size_bytes, found.cut_bytes) == (TWO, len(tail))
    assert site.part.read_bytes() == WHOLE[:TWO]


def test_a_part_file_that_contradicts_its_name_is_removed(site: Site) -> None:
    other = SnapshotId(30, 2)
    foreign = b"".join(b for b, _ in checkpoint_batches(other, CheckpointHead(9), VALUES))
    site.part.write_bytes(foreign[:TWO])
    found = site.restart()
    assert found is not None
    assert found.size_bytes == 0
    assert "30/2" in found.damage
    assert not site.part.exists()


def test_nothing_whole_leaves_nothing(site: Site) -> None:
    site.store.begin_download(ID)
    site.fill(0, len(BATCHES[0]) - 1)
    assert site.restart() == FoundDownload(ID, 0, len(BATCHES[0]) - 1, "")
    assert not site.part.exists()


def test_the_rest_of_another_file_is_found_out(site: Site) -> None:
    """Goal: two files are never mixed. Method: every batch is intact, and the digest is not."""
    other = [b"%04d" % (n + (n > 1500)) * 100 for n in range(2000)]
    second = b"".join(b for b, _ in checkpoint_batches(ID, CheckpointHead(9), other))
    assert second[:TWO] == WHOLE[:TWO]
    site.store.begin_download(ID)
    site.fill(0, TWO)
    assert site.restart() == FoundDownload(ID, TWO, 0, "")
    site.store.write_chunk(ID, TWO, second[TWO:])
    with pytest.raises(SnapshotCorruptError, match="digest"):
        site.store.seal_download(ID, digest_of(WHOLE))
    assert site.store.list() == ()
    assert [each.snapshot_id for each in site.store.quarantined] == [ID]
    assert site.restart() is None


def test_one_whose_sync_failed_is_not_gone_on_with(site: Site, fs: RecordingFileSystem) -> None:
    """What a failed sync has dropped may still be read, until the machine stops (fsyncgate)."""
    site.store.begin_download(ID)
    site.fill(0, len(WHOLE))
    fs.fail_at = "sync"
    with pytest.raises(StorageError):
        site.store.seal_download(ID)
    fs.fail_at = None
    assert site.restart() is None
    assert not site.part.exists()


def test_an_older_one_is_removed_and_so_is_one_that_is_frozen(site: Site) -> None:
    older = SnapshotId(10, 1)
    for snapshot_id in (older, ID):
        site.store.begin_download(snapshot_id)
        site.store._download = None
    (site.directory / file_name(ID)).write_bytes(WHOLE)
    assert site.store.clean_up() == (
        file_name(older, FileState.PART),
        file_name(ID, FileState.PART),
    )
    assert site.store.recover_download() is None


def test_a_part_that_cannot_be_opened_is_removed_and_reported(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be had again, so it keeps no node from starting."""
    site.store.begin_download(ID)
    site.fill(0, CHUNK)
    site.store.close()
    opened = site.fs.open

    def fail(path: Path, **how: bool) -> object:
        if path == site.part:
            raise StorageError("Input/output error", path)
        return opened(path, **how)

    monkeypatch.setattr(site.fs, "open", fail)
    found = site.restart()
    assert found is not None
    assert found.size_bytes == 0
    assert "cannot be opened" in found.damage
    assert not site.fs.exists(site.part)


def test_on_a_full_disk_it_is_removed_and_reported(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may need the space to start, and the download can be had again."""
    site.store.begin_download(ID)
    site.fill(0, TWO)
    site.store.close()
    for free in (None, RESERVE_BYTES):
        monkeypatch.setattr(site.fs, "free_bytes", lambda _, free=free: free)
        assert site.restart() == FoundDownload(ID, TWO, 0, "")
        site.store.close()
    monkeypatch.setattr(site.fs, "free_bytes", lambda _: RESERVE_BYTES - 1)
    found = site.restart()
    assert found is not None
    assert (found.size_bytes, found.cut_bytes) == (0, TWO)
    assert f"{RESERVE_BYTES - 1} free bytes" in found.damage
    assert not site.part.exists()
