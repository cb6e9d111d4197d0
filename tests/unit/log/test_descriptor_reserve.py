"""Files of the log are opened when connections have taken every descriptor.

Each test runs in a process of its own, because it uses up all of its descriptors.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PREPARE = """
import errno, os, resource, socket, sys
from pathlib import Path
from quorum.errors import StorageError
from quorum.log.descriptor_reserve import DESCRIPTORS, DescriptorReserve
from quorum.log.filesystem import OsFileSystem
from quorum.log.side_file import replace_file

def exhaust():
    held = []
    try:
        while True:
            held.append(socket.socket())
    except OSError as error:
        assert error.errno == errno.EMFILE
    return held

folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
"""


def run(tmp_path: Path, script: str) -> None:
    command = [sys.executable, "-c", PREPARE + script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_side_file_is_replaced_while_no_descriptor_is_left(tmp_path: Path) -> None:
    """Many times: the reserve gets each descriptor back, though connections want it."""
    run(
        tmp_path,
        """
reserve = DescriptorReserve()
fs = OsFileSystem(reserve)
held = exhaust()
for number in range(100):
    replace_file(fs, folder / "quorum-state", b"%d" % number)
    held += exhaust()
    assert fs.list_directory(folder) == ["quorum-state"]
    held += exhaust()
assert reserve.spare_count >= DESCRIPTORS - 1
file = fs.open(folder / "quorum-state")
assert file.read_at(0, 100) == b"99"
""",
    )


def test_files_that_stay_open_use_the_reserve_up(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
reserve = DescriptorReserve()
fs = OsFileSystem(reserve)
held = exhaust()
files = [fs.open(folder / str(number), create=True) for number in range(DESCRIPTORS)]
assert reserve.spare_count == 0
try:
    fs.open(folder / "one more", create=True)
except StorageError as error:
    assert "Too many open files" in str(error)
else:
    raise AssertionError("opened")
for file in files:
    file.close()
assert reserve.spare_count == DESCRIPTORS
""",
    )


def test_without_a_reserve_the_file_cannot_be_opened(tmp_path: Path) -> None:
    """The shortage of these tests is real."""
    run(
        tmp_path,
        """
held = exhaust()
try:
    OsFileSystem().open(folder / "a", create=True)
except StorageError as error:
    assert "Too many open files" in str(error)
else:
    raise AssertionError("opened")
""",
    )
