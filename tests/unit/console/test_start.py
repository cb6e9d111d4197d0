"""What the console reports when its port or its cluster is not there: one true line each."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from pathlib import Path

import pytest

from quorate.cli.exits import Exit, exit_for, hint_for
from quorate.client import Client
from quorate.console.binding import checked_binding
from quorate.console.follower import Follower
from quorate.console.index import Index
from quorate.console.run import run_console
from quorum.errors import ListenError
from tests.support import fork_server


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listen = f"127.0.0.1:{listener.getsockname()[1]}"
        arguments = ("console", "--quiet", "--bootstrap", closed_port(), "--listen", listen)
        done = fork_server.run("quorate", arguments, environment=dict(os.environ), timeout=60)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert lines == [
        f"error: cannot listen on {listen}: Address already in use; is another process using the "
        "port?"
    ]


def test_a_port_that_the_account_may_not_use_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns files has nothing to do with it, so no hint speaks of them."""

    def refuse(_host: str, _port: int) -> list[socket.socket]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("quorate.console.run.open_sockets", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    binding = checked_binding("127.0.0.1:80")
    with pytest.raises(ListenError) as refused:
        asyncio.run(run_console(lambda: Client([closed_port()]), binding))
    assert str(refused.value) == (
        "cannot listen on 127.0.0.1:80: Permission denied; is the port below 1024? Choose a "
        "higher one, or give the process the capability CAP_NET_BIND_SERVICE"
    )
    assert (exit_for(refused.value), hint_for(refused.value)) == (Exit.USAGE, "")


def test_a_name_without_an_address_is_one_line() -> None:
    arguments = (
        "console", "--quiet", "--bootstrap", closed_port(), "--unsafe-insecure-listener",
        "--listen", "no-such-host.invalid:1",
    )  # fmt: skip
    done = fork_server.run("quorate", arguments, environment=dict(os.environ), timeout=60)
    assert done.returncode == 2
    said = "error: cannot listen on no-such-host.invalid:1: the name has no address (DNS: "
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dead_cluster_is_one_line_without_words_of_grpc(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def explain() -> str:
        return "cannot reach the cluster through x: connection refused"

    async def scenario() -> Follower:
        index = Index(tmp_path)
        async with Client([closed_port()], timeout_seconds=0.3) as client:
            follower = Follower(client, index, explain)
            following = asyncio.create_task(follower.run())
            async with asyncio.timeout(30):
                while len(follower.problems) < 2:
                    await asyncio.sleep(0.01)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        index.close()
        return follower

    with caplog.at_level(logging.WARNING, logger="quorate.console"):
        follower = asyncio.run(scenario())
    assert set(follower.problems.values()) == {asyncio.run(explain())}
    assert [each.getMessage().partition(": ")[2] for each in caplog.records] == [
        "cannot reach the cluster through x: connection refused"
    ]
