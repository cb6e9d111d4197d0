"""`quorate demo` as a user runs it, only smaller: the whole job, its failures and its ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.processes import COMMAND_SECONDS_MAX, PATIENCE_SECONDS, POLL_SECONDS
from tests.support.kafka_directory import whole_sample

pytestmark = pytest.mark.integration

SMALL = ("--brokers", "5", "--topics", "20", "--partitions", "4")
WHOLE_SECONDS_MAX = 5 * COMMAND_SECONDS_MAX
STEPS = 12
SECURED_STEPS = STEPS + 1
CHUNKS_MIN = 20


def servers(folder: Path) -> list[psutil.Process]:
    """The nodes' processes that were started in ``folder``."""
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if "server" in command and any(part.startswith(str(folder)) for part in command):
            found.append(process)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the demo works; whatever it leaves running ends with the test."""
    place = tmp_path / "a demo"
    yield place
    for process in servers(place):
        process.kill()


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The demo, in a process group of its own and with signals as a terminal would have them."""

    def read_output() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "quorate", "demo", "--folder", str(folder), *SMALL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "GRPC_VERBOSITY": "NONE"},
        process_group=0,
        # Tests that run under nohup or in the background ignore some of them.
        preexec_fn=read_output,
    )


def test_the_whole_job_on_a_real_log_and_a_cluster_that_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    """Goal: every step of the demo works as described. Method: import the sample; keep all files.

    A second demo in the same folder is refused and changes nothing. Its message shows how to stop
    the first one's servers.
    """
    demo = start(folder, "--input", str(whole_sample(tmp_path)), "--keep")
    out, _ = demo.communicate(timeout=WHOLE_SECONDS_MAX)
    assert demo.returncode == 0, out
    assert "The whole job was done." in out
    for step in range(1, STEPS + 1):
        assert f"[{step}/{STEPS}]" in out
    assert out.count(f"chunk {CHUNKS_MIN}: ") == 2, "two replicas are bootstrapped in slices"
    alive = servers(folder)
    assert len(alive) == 5
    stop = f"kill {' '.join(str(each.pid) for each in sorted(alive, key=_number))}"
    assert stop in out

    files = sorted(path for path in folder.rglob("*.checkpoint"))
    again = start(folder)
    output, _ = again.communicate(timeout=COMMAND_SECONDS_MAX)
    assert again.returncode == 1, output
    assert "5 servers of an earlier demo still run" in output
    assert stop in output
    assert {each.pid for each in servers(folder)} == {each.pid for each in alive}
    assert all(path.exists() for path in files)

    subprocess.run(stop.split(), check=True)
    psutil.wait_procs(alive, timeout=PATIENCE_SECONDS)
    assert servers(folder) == []


def _number(process: psutil.Process) -> str:
    return next(part for part in process.cmdline() if "node-" in part)


@pytest.mark.long
def test_the_whole_job_on_a_secured_cluster(folder: Path) -> None:
    """Goal: every step also works in mode bound, with a password, ACLs and TLS everywhere.

    The refusals are steps of the demo itself. Beside them: nothing that the demo wrote can be read
    by others, and its cluster answers nobody who shows nothing.
    """
    demo = start(folder, "--secure", "--keep")
    out, _ = demo.communicate(timeout=WHOLE_SECONDS_MAX)
    assert demo.returncode == 0, out
    for step in range(1, SECURED_STEPS + 1):
        assert f"[{step}/{SECURED_STEPS}]" in out
    for refused in ("CLUSTER_AUTHORIZATION_FAILED", "wrong password", "authenticate first", "401"):
        assert refused in out
    alive = servers(folder)
    assert len(alive) == 5
    shown = dict(re.findall(r"export (QUORATE_TLS_\w+)='?([^'\n]+)", out))
    address = re.search(r"--bootstrap (\S+) topic list", out)
    assert address is not None
    command = [sys.executable, "-m", "quorate", "acl", "list", "--bootstrap", address[1]]
    asked = {
        who: subprocess.run(
            command, env={**os.environ, **extra}, capture_output=True, text=True, check=False
        )
        for who, extra in (("operator", shown), ("nobody", {}))
    }
    assert "User:demo" in asked["operator"].stdout, asked
    assert asked["nobody"].returncode != 0, asked
    private = (*folder.glob("node-*/data/**/*"), *folder.glob("security/**/*.key"),
               folder / "security", *folder.glob("security/*.password"),
               *folder.glob("security/*.token"))  # fmt: skip
    assert len(private) > 30
    assert [path for path in private if path.stat().st_mode & 0o077] == []
    for each in alive:
        each.terminate()
    psutil.wait_procs(alive, timeout=PATIENCE_SECONDS)
    assert servers(folder) == []


@pytest.mark.long
def test_a_failed_step_is_reported_and_leaves_no_process(folder: Path, tmp_path: Path) -> None:
    """Goal: a failed demo can be understood and repeated. Method: a folder without a log."""
    (tmp_path / "no log").mkdir()
    demo = start(folder, "--input", str(tmp_path / "no log"))
    out, _ = demo.communicate(timeout=WHOLE_SECONDS_MAX)
    assert demo.returncode == 1, out
    assert f"error: step [3/{STEPS}] Write the metadata of a cluster through gRPC" in out
    assert "quorate import " in out
    assert "the nodes' logs are below" in out
    assert servers(folder) == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_demo_that_is_stopped_stops_its_servers(folder: Path, number: signal.Signals) -> None:
    """Goal: a closed terminal leaves nothing behind. Method: the signal comes while servers run."""
    demo = start(folder)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(servers(folder)) < 4:
        assert time.monotonic() < deadline
        assert demo.poll() is None, demo.communicate()[0]
        time.sleep(POLL_SECONDS)
    # Once, and again in impatience.
    for _ in range(2):
        demo.send_signal(number)
    out, _ = demo.communicate(timeout=WHOLE_SECONDS_MAX)
    assert demo.returncode != 0, out
    assert servers(folder) == []
