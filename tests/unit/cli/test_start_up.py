"""What a command loads before it does anything. Modules are counted, because times vary.

gRPC and what it brings takes two thirds of a second: nobody waits for that to read a help text, to
complete a word or to be told of a mistake.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("grpc", "google.protobuf", "prometheus_client", "quorate.client.client", "ssl", "asyncio")

WORK = (
    "grpc", "quorum.batch", "quorum.core", "snapshot", "statemachine.records",
    "quorate.config.load", "quorate.controller", "simulation.cluster",
)  # fmt: skip
"""What only the work of a command needs. All else that it needs brings one of these along."""
NODE_ONLY = ("statemachine.records", "snapshot", "quorum.log", "quorum.core", "quorate.config.load")
"""What nodes and tools for their files need: a third of a second more."""
OF_CLUSTERS = (
    "acl", "broker", "config", "feature", "health", "quorum", "top", "topic", "user", "watch",
)  # fmt: skip

RUN = """
import contextlib, io, sys
from quorate.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    status = main(sys.argv[1:])
print(status, *sorted(sys.modules))
"""

SCAN = f"""
import click, contextlib, io, sys
from quorate.cli.main import cli, main

def scan(command, path):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main([*path, "--help"]) == 0
        assert main([*path, "--nonsense"]) == 2
    found = [name for name in {WORK} if name in sys.modules]
    if found:
        sys.exit("help of quorate " + " ".join(path) + " loads " + ", ".join(found))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            scan(command.get_command(context, name), (*path, name))

scan(cli, ())
"""


def loaded(*arguments: str) -> tuple[int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True
    )
    status, *modules = done.stdout.split()
    return int(status), set(modules)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--help",), 0),
        (("version",), 0),
        (("version", "-o", "json"), 0),
        (("random-uuid",), 0),
        (("completion", "bash"), 0),
        (("context", "list"), 0),
        (("nonsense",), 2),
        (("version", "--nonsense"), 2),
    ],
    ids=str,
)
def test_what_reaches_no_cluster_loads_no_client(arguments: tuple[str, ...], status: int) -> None:
    found, modules = loaded(*arguments)
    assert found == status
    assert modules.isdisjoint(HEAVY), modules & set(HEAVY)


def test_neither_help_nor_a_mistake_loads_what_does_the_work() -> None:
    done = subprocess.run([sys.executable, "-c", SCAN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_command_that_reaches_a_cluster_loads_nothing_of_a_node() -> None:
    program = (
        "import click, sys; from quorate.cli.main import cli\n"
        f"for name in {OF_CLUSTERS}: assert cli.get_command(click.Context(cli), name)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "quorate.cli.connection" in modules
    assert modules.isdisjoint(NODE_ONLY), modules & set(NODE_ONLY)
    assert loaded("version")[1] >= {"statemachine.records"}, "the rule sees one that does"


def test_the_rule_sees_a_command_that_loads_it() -> None:
    _, modules = loaded("topic", "list", "--bootstrap", "127.0.0.1:1", "--timeout", "0.2")
    assert "grpc" in modules
