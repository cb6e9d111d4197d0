"""The completion scripts in the shells they are for, on a terminal, with a node to ask.

A key is typed and Tab is pressed; then the line is run, and what the command got is compared. A
shell that is not installed is skipped.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.processes import PATIENCE_SECONDS, ROOT, Processes, running

pytestmark = pytest.mark.integration

COMMAND = """\
import os, sys
if "_QUORATE_COMPLETE" not in os.environ:
    print("<" + "> <".join(sys.argv[1:]) + ">")
    raise SystemExit
from quorate.cli import completions
from quorate.cli.main import main
completions.SECONDS_MAX = 60.0
raise SystemExit(main())
"""
"""Says what it was called with. A shell that asks for words gets them from the real command."""
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ""),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u; "),
    "fish": (["fish", "--no-config", "-i"], ""),
}
LOAD = {
    "bash": 'eval "$(quorate-script bash)"',
    "zsh": 'eval "$(quorate-script zsh)"',
    "fish": "quorate-script fish | source",
}
SIZE = (50, 200)


class Terminal:
    """A shell on a pseudo terminal."""

    def __init__(self, shell: str, environment: dict[str, str]) -> None:
        program, first = START[shell]
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            os.execvpe(program[0], program, environment)
        self._seen = ""
        self.type(f"stty rows {SIZE[0]} cols {SIZE[1]}; {first}{LOAD[shell]}; echo 'rea''dy'\r")
        self.until("ready")

    def type(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def until(self, words: str) -> None:
        """Read until the words were printed, behind those that were waited for before."""
        end = time.monotonic() + PATIENCE_SECONDS
        while words not in self._seen:
            left = end - time.monotonic()
            assert left > 0, f"{words!r} was not printed: {self._seen}"
            if select.select([self._file], [], [], left)[0]:
                self._seen += os.read(self._file, 1 << 16).decode(errors="replace")
        self._seen = self._seen.partition(words)[2]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._file)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("cluster"), voters=1) as cluster:
        secret = cluster.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text("a password of some length")
        for arguments in (
            ("user", "add", "annabel", "--new-password-file", str(secret)),
            ("acl", "add", "User:annabel", "--operation", "read", "--group", "readers"),
        ):
            done = cluster.run("--bootstrap", cluster.addresses[0], *arguments)
            assert done.status == 0, done.err
        with broker(cluster):
            create = ("topic", "create", "orders", "--assignment", "12")
            cluster.until(
                "a topic",
                lambda: cluster.run("--bootstrap", cluster.addresses[0], *create).status == 0,
            )
            yield cluster


@contextlib.contextmanager
def broker(cluster: Processes) -> Iterator[None]:
    """Broker 12, active for as long as the block."""
    command = ("broker", "register", "12", "--listener", "PLAINTEXT://b:9092", "--stay")
    process = subprocess.Popen(
        [sys.executable, "-m", "quorate", "--bootstrap", cluster.addresses[0], *command],
        env=cluster.environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=START)
def terminal(
    request: pytest.FixtureRequest, tmp_path: Path, cluster: Processes
) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    tools = tmp_path / "bin"
    tools.mkdir()
    source = tmp_path / "program" / "quorate"
    source.parent.mkdir()
    source.write_text(COMMAND)
    # Not by a first line that names Python: its path may have a space.
    for name, arguments in (
        ("quorate", f"'{source}'"),
        ("quorate-script", "-m quorate completion"),
    ):
        program = tools / name
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' {arguments} \"$@\"\n")
        program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "TERM": "xterm",
        "GRPC_VERBOSITY": "NONE",
    }
    environment.pop("QUORATE_BOOTSTRAP", None)
    done = cluster.run(
        *("context", "add", "production", "--bootstrap", cluster.addresses[0]),
        environment={"XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert done.status == 0, done.err
    terminal = Terminal(request.param, environment)
    try:
        yield terminal
    finally:
        terminal.close()


def test_words_of_every_kind(terminal: Terminal, cluster: Processes) -> None:
    address = cluster.addresses[0]
    for typed, run in (
        ("conte\t use prod\t", "<context> <use> <production>"),
        ("server --set metrics.lis\t:9", "<server> <--set> <metrics.listen=:9>"),
        ("topic describe --context production ord\t", "<orders>"),
        (f"--bootstrap {address} topic describe or\t", f"<{address}> <topic> <describe> <orders>"),
        ("--context=prod\t broker describe 1\t", "<--context=production> <broker> <describe> <12>"),
        ("--context production quorum may-stop \t", "<may-stop> <1>"),
        ("--context production user remove ann\t", "<user> <remove> <annabel>"),
        ("--context production acl add User:ann\t", "<acl> <add> <User:annabel>"),
        ("--context production config get group read\t", "<group> <readers>"),
        ("config set topic orders retention.m\t5", "<orders> <retention.ms=5>"),
    ):  # fmt: skip
        terminal.type(f"quorate {typed}\r")
        terminal.until(run)
