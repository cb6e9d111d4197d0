"""The distribution ``quorate-client``: built, installed alone, and used as its README says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.served_node import cluster, serving

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "deploy" / "client" / "README.md"
ALONE = f"""
import sys
sys.path[:0] = [sys.argv[1], {sysconfig.get_path("purelib")!r}, {sysconfig.get_path("platlib")!r}]
"""
"""Neither the checkout nor ``quorate`` can be imported: the interpreter runs without ``site``."""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def run_alone(installed: Path, program: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", ALONE + program, str(installed)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    source, target = folder / "source", folder / "installed"
    run(sys.executable, str(ROOT / "deploy" / "client" / "build.py"), str(source))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-index", "--no-build-isolation"]
    run(*pip, "install", *options, "--target", str(target), str(source))
    return target


def programs() -> list[str]:
    return [part.split("```")[0] for part in README.read_text("utf-8").split("```python\n")[1:]]


def test_every_program_of_its_readme_writes(installed: Path) -> None:
    async def scenario() -> None:
        for program in programs():
            _, nodes = cluster(2)
            async with serving(*nodes):
                for name, node in zip(("n1:9190", "n2:9190"), nodes):
                    assert name in program
                    program = program.replace(name, node.address)
                await run_alone(installed, program)
            assert nodes[0].image.configs.value(2, "orders", "retention.ms") == "3600000"

    assert len(programs()) == 2
    asyncio.run(scenario())


def test_it_needs_nothing_of_ours(installed: Path) -> None:
    loaded = asyncio.run(
        run_alone(
            installed,
            """
import quorate_client
for name in quorate_client.__all__:
    getattr(quorate_client, name)
print(*{name.partition(".")[0] for name in sys.modules})
""",
        )
    ).split()
    assert "quorate_client" in loaded
    assert not {"quorate", "quorum", "statemachine", "msgpack", "prometheus_client"} & {*loaded}


def test_both_distributions_work_in_one_process(installed: Path) -> None:
    program = f"""
sys.path.append({str(ROOT)!r})
import quorate.client, quorate_client
for each in (quorate.client, quorate_client):
    each.Client, each.BlockingClient
from quorum.v1 import metadata_pb2
from quorate_client.v1 import metadata_pb2 as other
assert metadata_pb2.WriteRequest.DESCRIPTOR.full_name == other.WriteRequest.DESCRIPTOR.full_name
assert other.WriteRequest.FromString(metadata_pb2.WriteRequest().SerializeToString()) is not None
"""
    asyncio.run(run_alone(installed, program))


def test_a_folder_with_files_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    command = [sys.executable, str(ROOT / "deploy" / "client" / "build.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path} is not empty\n"
