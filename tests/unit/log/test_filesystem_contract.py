"""One contract, three file systems: the real one, the simulated one, the volatile shim."""

from __future__ import annotations

import os
import random
import stat
import time
from pathlib import Path

import pytest

from quorum.errors import StorageError
from quorum.log.descriptor_reserve import DescriptorReserve
from quorum.log.directory_lock import LOCK_NAME, DirectoryLock
from quorum.log.filesystem import OsFileSystem
from quorum.log.side_file import replace_file
from simulation.memory_filesystem import MemoryFileSystem
from tests.support.volatile_filesystem import NoSyncFileSystem, VolatileFileSystem


class ReservedFileSystem(OsFileSystem):
    """The real one of a server."""

    def __init__(self) -> None:
        super().__init__(DescriptorReserve(1))


KINDS = [OsFileSystem, ReservedFileSystem, MemoryFileSystem, VolatileFileSystem, NoSyncFileSystem]


@pytest.fixture(params=KINDS, ids=[kind.__name__ for kind in KINDS])
def fs(request):
    return request.param()


@pytest.fixture
def folder(fs, tmp_path):
    path = tmp_path / "data" / "log"
    fs.make_directory(path)
    return path


def test_appended_bytes_are_read_back_at_their_position(fs, folder):
    file = fs.open(folder / "a", create=True, writable=True)
    assert file.append(b"hello ") == 0
    assert file.append(b"world") == 6
    assert file.read_at(0, 100) == b"hello world"
    assert file.read_at(6, 2) == b"wo"
    assert file.read_at(11, 5) == b""
    assert file.size() == 11


def test_overwriting_changes_what_was_there_and_may_grow_the_file(fs, folder):
    file = fs.open(folder / "a", create=True, writable=True)
    file.append(b"0123456789")
    file.sync()
    file.write_at(2, b"ab")
    file.write_at(8, b"xyz")
    assert file.read_at(0, 20) == b"01ab4567xyz"
    file.write_at(13, b"!")
    assert file.read_at(0, 20) == b"01ab4567xyz\0\0!"


def test_truncation_cuts_and_a_later_append_follows_the_cut(fs, folder):
    file = fs.open(folder / "a", create=True, writable=True)
    file.append(b"0123456789")
    file.sync()
    file.write_at(3, b"XYZ")
    file.truncate(4)
    file.append(b"end")
    assert file.read_at(0, 20) == b"012Xend"
    file.sync()
    assert fs.open(folder / "a").read_at(0, 20) == b"012Xend"


def test_two_handles_see_one_file(fs, folder):
    writer = fs.open(folder / "a", create=True, writable=True)
    reader = fs.open(folder / "a")
    writer.append(b"data")
    assert reader.read_at(0, 10) == b"data"


def test_a_removed_file_stays_readable_through_its_handle(fs, folder):
    file = fs.open(folder / "a", create=True, writable=True)
    file.append(b"data")
    fs.unlink(folder / "a")
    fs.sync_directory(folder)
    assert not fs.exists(folder / "a")
    assert file.read_at(0, 10) == b"data"
    fs.unlink(folder / "a")


def test_rename_replaces_the_target(fs, folder):
    for name in ("old", "new"):
        fs.open(folder / name, create=True, writable=True).append(name.encode())
    fs.rename(folder / "old", folder / "new")
    assert fs.list_directory(folder) == ["new"]
    assert fs.open(folder / "new").read_at(0, 9) == b"old"
    fs.sync_directory(folder)
    assert fs.list_directory(folder) == ["new"]


def test_names_are_listed_in_order_with_directories(fs, folder):
    for name in ("b", "c", "a"):
        fs.open(folder / name, create=True, writable=True)
    fs.make_directory(folder / "aa" / "deep")
    fs.make_directory(folder / "aa")
    assert fs.list_directory(folder) == ["a", "aa", "b", "c"]
    assert fs.list_directory(folder / "missing") == []
    assert fs.exists(folder / "aa")
    assert not fs.exists(folder / "missing")


@pytest.mark.parametrize(
    "action",
    [
        lambda fs, folder: fs.open(folder / "missing"),
        lambda fs, folder: fs.open(folder / "missing" / "a", create=True, writable=True),
        lambda fs, folder: fs.rename(folder / "missing", folder / "b"),
    ],
    ids=["open", "create-in-nothing", "rename"],
)
def test_a_missing_path_is_an_error_that_names_it(fs, folder, action):
    with pytest.raises(StorageError, match="missing"):
        action(fs, folder)


def test_a_closed_file_refuses_work_and_may_be_closed_again(fs, folder):
    file = fs.open(folder / "a", create=True, writable=True)
    file.close()
    file.close()
    for use in (lambda: file.read_at(0, 1), lambda: file.append(b"x"), file.size):
        with pytest.raises(StorageError):
            use()


def test_random_changes_leave_what_a_plain_bytearray_has(fs, folder):
    """The overlay of the shim and the undo log of the simulator lose or mix nothing."""
    rng = random.Random(7)
    model = bytearray()
    file = fs.open(folder / "a", create=True, writable=True)
    fs.sync_directory(folder)
    for _ in range(400):
        action = rng.randrange(4)
        if action == 0:
            data = rng.randbytes(rng.randrange(1, 30))
            assert file.append(data) == len(model)
            model += data
        elif action == 1 and model:
            position = rng.randrange(len(model))
            data = rng.randbytes(rng.randrange(1, 20))
            file.write_at(position, data)
            model[position : position + len(data)] = data
        elif action == 2:
            size = rng.randint(len(model) // 2, len(model))
            file.truncate(size)
            del model[size:]
        else:
            file.sync()
        assert file.size() == len(model)
        position = rng.randint(0, len(model))
        size = rng.randrange(60)
        assert file.read_at(position, size) == model[position : position + size]


def test_replacing_a_file_leaves_the_new_content_and_no_temporary(fs, folder):
    replace_file(fs, folder / "state", b"one")
    replace_file(fs, folder / "state", b"two")
    assert fs.open(folder / "state").read_at(0, 10) == b"two"
    assert fs.list_directory(folder) == ["state"]


def test_root_level_paths_work_in_memory():
    fs = MemoryFileSystem()
    fs.make_directory(Path("/n"))
    fs.open(Path("/n/a"), create=True, writable=True).append(b"x")
    assert fs.list_directory(Path("/n")) == ["a"]
    assert fs.list_directory(Path("/")) == ["n"]


def test_free_space_is_a_number_or_unknown_and_asking_never_fails(fs, folder):
    free = fs.free_bytes(folder)
    assert free is None or free > 0
    assert not fs.free_bytes(folder / "no" / "such")


def test_a_file_has_an_age_or_none_and_asking_never_fails(fs, folder):
    began_ms = time.time_ns() // 1_000_000
    file = fs.open(folder / "aged", create=True, writable=True)
    file.append(b"x")
    file.sync()
    fs.sync_directory(folder)
    changed_ms = fs.modified_ms(folder / "aged")
    # File systems may round a time down to two seconds.
    assert changed_ms is None or began_ms - 2_000 <= changed_ms <= time.time_ns() // 1_000_000
    assert fs.modified_ms(folder / "no" / "such") is None


def test_new_files_and_directories_are_for_their_owner_only(tmp_path):
    """Whatever the umask lets through; a parent that had to be made has the usual mode."""
    fs = OsFileSystem()
    folder = tmp_path / "parent" / "data"
    before = os.umask(0o022)
    try:
        fs.make_directory(folder)
        fs.open(folder / "a", create=True, writable=True).close()
        replace_file(fs, folder / "b", b"content")
        DirectoryLock(folder).release()
    finally:
        os.umask(before)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert modes == dict.fromkeys(("a", "b", LOCK_NAME), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
