"""What the shim has not synced is not on the operating system's disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quorum.log.filesystem import OsFileSystem
from quorum.log.recovery import open_log
from tests.support.volatile_filesystem import NoSyncFileSystem, VolatileFileSystem

ROOT = Path(__file__).parents[3]


@pytest.fixture
def fs():
    return VolatileFileSystem()


def on_disk(path):
    return path.read_bytes() if path.exists() else None


def test_bytes_reach_the_disk_with_sync_and_not_before(fs, tmp_path):
    path = tmp_path / "a"
    file = fs.open(path, create=True, writable=True)
    file.append(b"one")
    file.sync()
    assert on_disk(path) is None
    fs.sync_directory(tmp_path)
    assert on_disk(path) == b"one"
    file.append(b"two")
    file.write_at(0, b"O")
    assert on_disk(path) == b"one"
    assert file.read_at(0, 9) == b"Onetwo"
    file.sync()
    assert on_disk(path) == b"Onetwo"
    file.truncate(2)
    assert on_disk(path) == b"Onetwo"
    file.sync()
    assert on_disk(path) == b"On"


def test_a_name_synced_before_its_content_is_an_empty_file(fs, tmp_path):
    fs.open(tmp_path / "a", create=True, writable=True).append(b"data")
    fs.sync_directory(tmp_path)
    assert on_disk(tmp_path / "a") == b""
    assert fs.open(tmp_path / "a").read_at(0, 9) == b"data"


def test_renames_and_removals_reach_the_disk_with_the_directory(fs, tmp_path):
    for name in ("old", "target", "gone"):
        (tmp_path / name).write_bytes(name.encode())
    fs.rename(tmp_path / "old", tmp_path / "target")
    fs.unlink(tmp_path / "gone")
    assert fs.list_directory(tmp_path) == ["target"]
    assert sorted(os.listdir(tmp_path)) == ["gone", "old", "target"]
    fs.sync_directory(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["target"]
    assert on_disk(tmp_path / "target") == b"old"


def test_existing_files_are_read_and_extended(fs, tmp_path):
    (tmp_path / "a").write_bytes(b"before ")
    file = fs.open(tmp_path / "a", writable=True)
    file.append(b"after")
    assert file.read_at(0, 99) == b"before after"
    assert on_disk(tmp_path / "a") == b"before "


def test_without_fsync_nothing_ever_reaches_the_disk(tmp_path):
    fs = NoSyncFileSystem()
    file = fs.open(tmp_path / "a", create=True, writable=True)
    file.append(b"data")
    file.sync()
    fs.sync_directory(tmp_path)
    assert file.read_at(0, 9) == b"data"
    assert on_disk(tmp_path / "a") is None


def test_a_killed_process_leaves_what_it_synced(tmp_path):
    """SIGKILL a real process between a synced and an un-synced write."""
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.support.volatile_filesystem import VolatileFileSystem\n"
        "fs = VolatileFileSystem()\n"
        "path = Path(sys.argv[1])\n"
        "file = fs.open(path, create=True, writable=True)\n"
        "file.append(b'kept'); file.sync(); fs.sync_directory(path.parent)\n"
        "file.append(b'lost')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    file = OsFileSystem().open(tmp_path / "a")
    assert file.read_at(0, 99) == b"kept"
    file.close()


@pytest.mark.parametrize(("kind", "kept"), [("VolatileFileSystem", 3), ("NoSyncFileSystem", 0)])
def test_a_killed_node_keeps_its_flushed_log_and_only_that(tmp_path, kind, kept):
    """The same kill exposes a build without fsync: its acknowledged data is lost."""
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from quorum.log.config import LogConfig\n"
        "from quorum.log.recovery import open_log\n"
        f"from tests.support.volatile_filesystem import {kind}\n"
        "from tests.support.log_builder import make_batch\n"
        f"log, _ = open_log({kind}(), Path(sys.argv[1]), LogConfig(segment_bytes=150))\n"
        "for offset in range(4):\n"
        "    data = make_batch(offset, 1, [b'v' * 40])\n"
        "    log.append(data, base_offset=offset, end_offset=offset + 1)\n"
        "    if offset == 2:\n"
        "        log.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    folder = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    log, report = open_log(OsFileSystem(), folder)
    assert report.end.offset == kept
    log.close()
