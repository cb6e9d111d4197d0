"""A program whose ``token`` function raised closes its client; gRPC does not hang the process then.

Method: a process of its own opens and closes clients, one after another, so that each ``close``
ends the last channel. Without the channel that ``quorate.client.proof`` keeps, such a process hung
after 14 to 290 clients, in ``Channel.close`` and deaf to signals: this test fails then in more than
nine of ten runs.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import grpc
import pytest

from tests.support.certificates import authority, node
from tests.support.served_node import cluster, serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

PROCESSES = 3
CLIENTS = 130
SECONDS_MAX = 600
PROGRAM = f"""
import asyncio, pathlib, sys
import grpc
from quorate.client import TOPIC, Client, UnavailableError

address, authorities = sys.argv[1:]
trusted = grpc.ssl_channel_credentials(pathlib.Path(authorities).read_bytes())
refused = 0
is_down = True


def token():
    if is_down:
        raise LookupError("no login")
    return "a.b.c"


async def use():
    global refused, is_down
    async with Client([address], credentials=trusted, token=token) as client:
        is_down = True
        try:
            await client.set_config(TOPIC, "orders", "retention.ms", "1", timeout=0.1)
        except UnavailableError:
            refused += 1
        is_down = False
        await client.set_config(TOPIC, "orders", "retention.ms", "1")


for _ in range({CLIENTS}):
    asyncio.run(use())
print(refused)
"""


def test_a_client_whose_calls_got_no_token_can_be_closed(tmp_path: Path) -> None:
    async def use_clients(address: str, authorities: Path) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, address, str(authorities), stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(SECONDS_MAX):
                printed, _ = await process.communicate()
        except TimeoutError:
            return "hung"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return f"{printed.decode().strip()}, exit {process.returncode}"

    async def scenario() -> None:
        authority(tmp_path, "ours")
        files = node(tmp_path, "ours", "n1", "DNS:localhost")
        _, (served,) = cluster(1)
        credentials = grpc.ssl_server_credentials(
            [(files.key.read_bytes(), files.certificate.read_bytes())]
        )
        async with serving(served, credentials=credentials):
            tried = [use_clients(served.address, files.authorities) for _ in range(PROCESSES)]
            assert await asyncio.gather(*tried) == [f"{CLIENTS}, exit 0"] * PROCESSES

    asyncio.run(scenario())
