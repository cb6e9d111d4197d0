"""Every Python example of docs/operations/client.md runs against a real node, as it is printed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.lone_node import Node

pytestmark = pytest.mark.integration

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "client.md"
EXAMPLES = [part.split("```")[0] for part in PAGE.read_text("utf-8").split("```python\n")[1:]]
PRELUDE = """
import asyncio
from quorate.client import TOPIC, Client, LogPosition, ResetPolicy
from quorum.v1 import commands_pb2 as wire

def change(value):
    command = wire.Command()
    command.incremental_alter_configs.resource_type = TOPIC
    command.incremental_alter_configs.resource_name = "orders"
    command.incremental_alter_configs.alterations.add(
        name="retention.ms", operation=wire.CONFIG_OPERATION_SET, value=str(value)
    )
    return command

async def main():
    client = Client(["n1:9190"], ordered=ORDERED)
    command, commands = change(1), [change(2), change(3)]
"""
"""What the page takes as given: a client, and commands."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"), "native")
    words = ("broker", "register", "5", "--listener", "PLAINTEXT://b5:9092", "--stay")
    broker = node.start(*words)
    try:
        node.wait_for(broker, "sending heartbeats")
        assert node.run("topic", "create", "orders", "--assignment", "5")[0] == 0
        yield node
    finally:
        broker.send_signal(signal.SIGINT)
        broker.communicate(timeout=30)
        assert node.stop() == 0


def program_of(example: str, node: Node) -> str:
    """The example; inside of a coroutine where it is a part of one."""
    if "import" not in example:
        ordered = str("begin_epoch()  # go on" in example)
        body = textwrap.indent(example, "    ") + "\n    await client.close()\n"
        example = f"{PRELUDE.replace('ORDERED', ordered)}{body}\nasyncio.run(main())\n"
    assert "n1:9190" in example
    for name in ("n1:9190", "n2:9190"):
        example = example.replace(name, f"127.0.0.1:{node.port}")
    return example


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(node: Node, number: int) -> None:
    example = EXAMPLES[number]
    goes_on_for_ever = "client.watch()" in example
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program_of(example, node)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        if goes_on_for_ever:
            assert process.stdout is not None
            # The first event, or nothing if the program has failed.
            first = process.stdout.readline()
            process.terminate()
        else:
            first = ""
        _, errors = process.communicate(timeout=120)
    assert bool(first) == goes_on_for_ever, errors
    assert process.returncode == (-signal.SIGTERM if goes_on_for_ever else 0), errors


def test_the_examples_are_all_of_the_page() -> None:
    assert len(EXAMPLES) == PAGE.read_text("utf-8").count("```python") >= 5
