"""What the console reports when its port or its cluster is not there: one true line each."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from pathlib import Path

import pytest

from quorate.client import Client
from quorate.console.follower import Follower
from quorate.console.index import Index
from tests.support import fork_server


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listen = f"127.0.0.1:{listener.getsockname()[1]}"
        arguments = ("console", "--quiet", "--bootstrap", closed_port(), "--listen", listen)
        done = fork_server.run("quorate", arguments, environment=dict(os.environ), timeout=60)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert lines == [
        f"error: cannot listen on {listen}: Address already in use; is another process using the "
        "port?"
    ]


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
