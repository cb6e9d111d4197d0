"""The simulated disk loses exactly the unsynced data, and fails exactly as configured."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from quorum.errors import DiskFullError, StorageError
from simulation.memory_filesystem import (
    KEEP_ALL,
    REORDERED,
    TORN_TAIL,
    CrashMode,
    Faults,
    MemoryFileSystem,
    PowerLost,
)

HOME = Path("/home")


@pytest.fixture
def fs():
    fs = MemoryFileSystem()
    fs.make_directory(HOME)
    return fs


def make(fs, name, data=b"", *, durable=True):
    file = fs.open(HOME / name, create=True, writable=True)
    file.append(data)
    if durable:
        file.sync()
        fs.sync_directory(HOME)
    return file


def test_a_crash_takes_unsynced_bytes_overwrites_and_cuts_back(fs):
    file = make(fs, "a", b"0123456789")
    file.write_at(2, b"XX")
    file.truncate(5)
    file.append(b"new")
    assert fs.read_bytes(HOME / "a") == b"01XX4new"
    fs.crash(random.Random(0))
    assert fs.read_bytes(HOME / "a") == b"0123456789"
    with pytest.raises(StorageError):
        file.size()


def test_only_a_disk_with_a_capacity_reports_free_space(fs):
    make(fs, "a", b"0123456789")
    assert fs.free_bytes(HOME) is None
    fs.faults = Faults(capacity_bytes=12)
    assert fs.free_bytes(HOME) == 2
    fs.faults = Faults(capacity_bytes=3)
    assert fs.free_bytes(HOME) == 0
    fs.faults = Faults(full_at_write=0)
    assert fs.free_bytes(HOME) is None


def test_a_synced_file_without_a_synced_name_is_gone(fs):
    make(fs, "a", b"data", durable=False).sync()
    fs.crash(random.Random(0))
    assert fs.list_directory(HOME) == []


def test_a_rename_without_directory_sync_is_undone(fs):
    make(fs, "state", b"old")
    file = make(fs, "state.tmp", b"new", durable=False)
    file.sync()
    fs.rename(HOME / "state.tmp", HOME / "state")
    assert fs.read_bytes(HOME / "state") == b"new"
    fs.crash(random.Random(0))
    assert fs.list_directory(HOME) == ["state"]
    assert fs.read_bytes(HOME / "state") == b"old"


def test_a_removal_without_directory_sync_is_undone(fs):
    make(fs, "a", b"data")
    fs.unlink(HOME / "a")
    fs.crash(random.Random(0))
    assert fs.read_bytes(HOME / "a") == b"data"


def test_a_torn_tail_is_a_prefix_of_what_was_written(fs):
    seen = set()
    for seed in range(60):
        file = make(fs, f"f{seed}", b"durable")
        file.append(b"abc")
        file.append(b"def")
        fs.crash(random.Random(seed), TORN_TAIL)
        content = fs.read_bytes(HOME / f"f{seed}")
        assert b"durableabcdef".startswith(content)
        assert len(content) >= len(b"durable")
        seen.add(len(content))
    assert seen == set(range(7, 14))


def test_reordered_writes_leave_holes_of_zeros(fs):
    seen = set()
    for seed in range(40):
        file = make(fs, f"f{seed}", b"_")
        file.append(b"abc")
        file.append(b"def")
        fs.crash(random.Random(seed), REORDERED)
        seen.add(fs.read_bytes(HOME / f"f{seed}"))
    assert seen == {b"_", b"_abc", b"_abcdef", b"_\0\0\0def"}


def test_a_dead_process_on_a_living_machine_loses_nothing(fs):
    make(fs, "a", b"data", durable=False)
    fs.crash(random.Random(0), KEEP_ALL)
    assert fs.read_bytes(HOME / "a") == b"data"
    fs.crash(random.Random(0))
    assert fs.list_directory(HOME) == []


def test_the_kernel_writes_back_in_its_own_time(fs):
    make(fs, "a", b"data", durable=False)
    fs.write_back()
    fs.crash(random.Random(0))
    assert fs.read_bytes(HOME / "a") == b"data"


def test_names_survive_in_their_order(fs):
    seen = set()
    for seed in range(40):
        disk = fs.clone()
        for name in ("a", "b", "c"):
            make(disk, name, durable=False)
        disk.crash(random.Random(seed), CrashMode(keep_names=1.0))
        seen.add("".join(disk.list_directory(HOME)))
    assert seen == {"", "a", "ab", "abc"}


def test_a_failed_sync_loses_its_data_even_if_a_later_one_succeeds(fs):
    """As a kernel that marks pages clean although they were never written (fsyncgate)."""
    file = make(fs, "a", b"one ")
    file.append(b"two ")
    fs.faults = Faults(error_at_sync=0)
    with pytest.raises(StorageError, match="cannot sync"):
        file.sync()
    file.append(b"three")
    file.sync()
    fs.crash(random.Random(0))
    assert fs.read_bytes(HOME / "a") == b"one \0\0\0\0three"


def test_a_full_disk_refuses_from_the_nth_write_on(fs):
    file = make(fs, "a")
    fs.faults = Faults(full_at_write=1)
    file.append(b"x")
    for _ in range(2):
        with pytest.raises(DiskFullError):
            file.append(b"y")
    assert file.size() == 1
    fs.faults = Faults()
    file.append(b"z")


def test_capacity_bounds_all_files_together(fs):
    first, second = make(fs, "a", b"12345"), make(fs, "b")
    fs.faults = Faults(capacity_bytes=8)
    second.append(b"123")
    with pytest.raises(DiskFullError):
        first.append(b"6")
    first.write_at(0, b"54321")


def test_an_unreadable_file_fails_reads_only(fs):
    file = make(fs, "a", b"data")
    fs.faults = Faults(unreadable=lambda name: name == "a")
    with pytest.raises(StorageError, match="cannot read"):
        file.read_at(0, 1)
    file.append(b"x")


def test_power_is_lost_behind_the_chosen_call_and_stays_off(fs):
    file = make(fs, "a")
    fs.faults = Faults(stop_after_call=1)
    file.append(b"x")
    with pytest.raises(PowerLost):
        file.sync()
    with pytest.raises(PowerLost):
        file.append(b"y")
    fs.crash(random.Random(0))
    assert fs.read_bytes(HOME / "a") == b"x"


def test_a_clone_is_a_disk_of_its_own(fs):
    make(fs, "a", b"data")
    copy = fs.clone()
    fs.open(HOME / "a", writable=True).append(b"more")
    assert copy.read_bytes(HOME / "a") == b"data"
    copy.flip_bit(HOME / "a", 0)
    assert fs.read_bytes(HOME / "a") == b"datamore"


def test_the_same_seed_gives_the_same_disk():
    def run():
        fs = MemoryFileSystem()
        fs.make_directory(HOME)
        for name in "abc":
            file = make(fs, name, b"start")
            for _ in range(5):
                file.append(name.encode() * 3)
        fs.crash(random.Random(3), CrashMode(keep_writes=0.7, torn=True))
        return [fs.read_bytes(HOME / name) for name in "abc"]

    assert run() == run()


def test_every_call_that_a_fault_made_fail_is_reported():
    """A fault that is set and never met proves nothing, so lanes count those that bit."""
    fs = MemoryFileSystem()
    bites: list[str] = []
    fs.on_bite = bites.append
    file = fs.open(Path("/a"), create=True, writable=True)
    for faults in (
        Faults(full_at_write=0),
        Faults(error_at_sync=0),
        Faults(unreadable=lambda name: name == "a"),
    ):
        fs.faults = faults
        for call in (lambda: file.append(b"x"), file.sync, lambda: file.read_at(0, 1)):
            with contextlib.suppress(StorageError):
                call()
    assert bites == ["write", "sync", "read"]
