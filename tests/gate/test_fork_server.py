"""A forked process is as good as one that Python has loaded anew, and never outlives its maker."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import fork_server
from tests.support.fork_server import ForkedProcess

SECONDS = 30.0
PROGRAM = "tests.gate.forked_program"


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    """One of this module, beside the gate's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(fork_server.SOCKET, raising=False)
        with fork_server.running():
            yield


def run(*arguments: str, module: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    environment = {"ONLY": "this"}
    return fork_server.run(module, arguments, environment=environment, timeout=SECONDS)


def forked(*arguments: str) -> tuple[ForkedProcess, int]:
    """A process, and the end of its standard output to read from."""
    readable, writable = os.pipe()
    process = ForkedProcess(PROGRAM, arguments, files=(writable, writable), environment={})
    os.close(writable)
    return process, readable


def wait_until_it_waits(output: int) -> None:
    with os.fdopen(output) as lines:
        assert lines.readline() == "waiting\n"


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + SECONDS
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < deadline, f"{pid} is still there"
        time.sleep(0.01)


def test_a_process_begins_as_python_would_begin_it() -> None:
    done = run("describe", "two words", "ü")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["arguments"] == ["describe", "two words", "ü"]
    assert seen["name"] == "__main__"
    assert {name: seen["environment"].get(name) for name in ("ONLY", "PATH")} == {
        "ONLY": "this", "PATH": None,
    }  # fmt: skip
    assert seen["is_session_leader"]
    assert seen["signals"] == [signal.SIG_DFL, signal.SIG_DFL, "default_int_handler"]
    # The last of the four is the folder that was listed.
    assert len(seen["files"]) == 4
    assert seen["input"] == ""


def test_two_processes_draw_different_numbers() -> None:
    drawn = {json.loads(run("describe").stdout)["drawn"] for _ in range(3)}
    assert len(drawn) == 3
    assert random.random() not in drawn


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("exit", "7"), 7), (("die",), -signal.SIGKILL), (("raise",), 1), (("leave",), 0)],
)
def test_the_exit_code_is_its_own(arguments: tuple[str, ...], status: int) -> None:
    done = run(*arguments)
    assert done.returncode == status, done.stderr
    assert ("ZeroDivisionError" in done.stderr) == (arguments == ("raise",))
    # The interpreter came to its own end, with what had to be done then.
    assert ("at the end" in done.stdout) == (status >= 0)


def test_a_command_is_what_it_is_elsewhere() -> None:
    done = run("nonsense", module="quorate")
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr


def test_it_can_be_signalled_and_is_waited_for() -> None:
    process, output = forked("wait")
    wait_until_it_waits(output)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == process.poll() == process.returncode == -signal.SIGTERM
    process.kill()


def test_several_threads_may_wait_for_it() -> None:
    """As when one stops a node and another one looks whether it runs."""
    for _ in range(20):
        process, output = forked("wait")
        wait_until_it_waits(output)
        with ThreadPoolExecutor(8) as threads:
            statuses = [threads.submit(process.wait, SECONDS) for _ in range(7)]
            polled = threads.submit(polled_to_the_end, process)
            process.send_signal(signal.SIGTERM)
            assert {each.result() for each in (*statuses, polled)} == {-signal.SIGTERM}


def polled_to_the_end(process: ForkedProcess) -> int:
    while (status := process.poll()) is None:
        pass
    return status


def test_it_ends_when_its_maker_is_gone() -> None:
    maker = subprocess.Popen([sys.executable, "-m", PROGRAM, "make"], stdout=subprocess.PIPE)
    assert maker.stdout is not None
    with maker.stdout:
        pid = int(maker.stdout.readline())
        assert os.path.exists(f"/proc/{pid}")
        maker.kill()
        maker.wait(SECONDS)
        wait_until_gone(pid)


@pytest.mark.parametrize("said", [b"", b"\0\0\0\x09", b"\0\0\0\x09[]"])
def test_who_is_gone_before_it_has_asked_harms_nobody(said: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(fork_server.address())
        asker.sendall(said)
    assert run("leave").returncode == 0


def test_processor_time_is_counted() -> None:
    before = fork_server.processor_seconds
    run("work", "0.2")
    assert fork_server.processor_seconds - before >= 0.2


def test_what_takes_too_long_is_killed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "pid"
        with pytest.raises(subprocess.TimeoutExpired):
            fork_server.run(PROGRAM, ["wait", str(note)], environment={}, timeout=0.5)
        if note.exists():
            wait_until_gone(int(note.read_text()))


def test_nothing_is_left_when_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fork_server.SOCKET)
    with fork_server.running():
        process, output = forked("wait")
        wait_until_it_waits(output)
    assert not os.path.exists(f"/proc/{process.pid}")
    with pytest.raises(OSError, match="the fork server"):
        process.wait(SECONDS)
