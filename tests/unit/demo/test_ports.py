"""Ports are chosen once, also by processes that choose at the same time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.demo.ports import LOOPBACK, PortReservations

RANGE = range(19_000, 19_200)
EACH = 40

CHOOSER = f"""
import sys
from pathlib import Path
from quorate.demo.ports import PortReservations
ours = PortReservations(Path(sys.argv[1]), range({RANGE.start}, {RANGE.stop}))
print(*ours.choose({EACH}), flush=True)
sys.stdin.read()
"""


def chooser(file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHOOSER, str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def chosen_by(process: subprocess.Popen[str]) -> set[int]:
    assert process.stdout is not None
    return {int(word) for word in process.stdout.readline().split()}


def test_processes_that_choose_at_once_share_no_port(tmp_path: Path) -> None:
    """The ports are not bound in between; without locks 120 of 200 would certainly collide."""
    file = tmp_path / "ports"
    choosers = [chooser(file) for _ in range(3)]
    try:
        found = [chosen_by(each) for each in choosers]
        assert [len(each) for each in found] == [EACH] * 3
        assert len(set.union(*found)) == 3 * EACH
    finally:
        for each in choosers:
            each.communicate()


def test_a_killed_process_leaves_its_ports(tmp_path: Path) -> None:
    """The kernel frees the locks, so nothing runs out over the years."""
    file = tmp_path / "ports"
    owner = chooser(file)
    held = chosen_by(owner)
    ours = PortReservations(file, range(min(held), min(held) + 1))
    with pytest.raises(RuntimeError, match="fewer than 1 ports"):
        ours.choose(1)
    owner.kill()
    owner.communicate()
    assert ours.choose(1) == [min(held)]
    with pytest.raises(RuntimeError):
        ours.choose(1)


def test_a_port_in_use_is_not_chosen(tmp_path: Path) -> None:
    """Servers that hold no reservation are seen by their sockets."""
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        port = other.getsockname()[1]
        ours = PortReservations(tmp_path / "ports", range(port, port + 1))
        with pytest.raises(RuntimeError):
            ours.choose(1)
    assert ours.choose(1) == [port]


def test_a_forked_child_chooses_for_itself(tmp_path: Path) -> None:
    """It knows what its parent knew, has none of its locks, and must not take its ports."""
    ours = PortReservations(tmp_path / "ports", RANGE)
    first = set(ours.choose(EACH))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, " ".join(map(str, ours.choose(EACH))).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as answer:
        second = {int(word) for word in answer.read().split()}
    assert len(second) == EACH
    assert not first & second
