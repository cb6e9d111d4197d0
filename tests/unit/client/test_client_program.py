"""The program in docs/operations/client.md: it runs as printed, and its first call has effect."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from quorum.transport.poller import VARIABLE
from tests.support.served_node import cluster, serving

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "operations" / "client.md").read_text(encoding="utf-8")
PROGRAM = TEXT.split("# Use it from a program")[1].split("```python\n")[1].split("```")[0]
WATCHED = f"""
import os, sys

class Watcher:
    def find_spec(self, name, path=None, target=None):
        if name == "grpc":
            print("grpc is imported with", repr(os.environ.get({VARIABLE!r})))

sys.meta_path.insert(0, Watcher())
"""
"""Prints the environment that gRPC finds when a program imports it."""


async def run(program: str) -> str:
    """What a fresh interpreter prints, without the variable in its environment."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


def test_the_documented_program_writes_with_the_engine_it_chose() -> None:
    async def scenario() -> None:
        _, nodes = cluster(2)
        program = PROGRAM
        async with serving(*nodes):
            for name, node in zip(("n1:9190", "n2:9190"), nodes):
                assert name in program
                program = program.replace(name, node.address)
            output = await run(WATCHED + program)
        assert "event_engine_client" in output
        assert output.count("grpc is imported") == 1
        assert nodes[0].image.configs.value(2, "orders", "retention.ms") == "3600000"

    asyncio.run(scenario())


def test_importing_the_client_changes_nothing_in_the_process() -> None:
    code = """
import os
before = dict(os.environ)
import quorate.client
for name in quorate.client.__all__:
    getattr(quorate.client, name)
assert dict(os.environ) == before, set(os.environ) ^ set(before)
"""
    assert asyncio.run(run(WATCHED + code)) == "grpc is imported with None\n"
