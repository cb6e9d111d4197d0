"""The program in examples/go: built from the .proto files, it writes, reads and watches."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.lone_node import Node

pytestmark = [pytest.mark.interop, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "go"


@pytest.fixture(scope="module")
def program() -> Path:
    """Built where Go, a compiler of protos and the modules are."""
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    if not (ROOT / ".venv/proto-toolchain/bin/python").exists() and shutil.which("protoc") is None:
        pytest.skip("needs protoc")
    download = subprocess.run(
        ["go", "mod", "download"], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    if download.returncode != 0:
        pytest.skip(f"needs modules of Go that cannot be loaded: {download.stderr.strip()[:200]}")
    done = subprocess.run(["./build.sh"], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return FOLDER / "topicleaders"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"), "native")
    words = ("broker", "register", "5", "--listener", "PLAINTEXT://b5:9092", "--stay")
    broker = node.start(*words)
    try:
        node.wait_for(broker, "sending heartbeats")
        assert node.run("topic", "create", "orders", "--assignment", "5,5")[0] == 0
        yield node
    finally:
        broker.send_signal(signal.SIGINT)
        broker.communicate(timeout=30)
        assert node.stop() == 0


def run(program: Path, node: Node, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), "-address", f"127.0.0.1:{node.port}", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_writes_reads_and_watches(program: Path, node: Node) -> None:
    done = run(program, node, "-topic", "orders", "-retention", "2h", "-for", "5s")
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first.startswith("written: below offset ")
    assert others[0] == "read: retention.ms=7200000"
    assert {*others[1:]} >= {
        "orders-0: leader 5", "orders-1: leader 5", "orders: retention.ms=7200000"
    }  # fmt: skip
    (row,) = node.ask("config", "get", "topic", "orders")["rows"]
    assert (row["key"], row["value"]) == ("retention.ms", "7200000")


def test_a_refused_write_is_an_error(program: Path, node: Node) -> None:
    done = run(program, node, "-topic", "nothing", "-for", "5s")
    assert done.returncode == 1
    assert "there is no topic 'nothing'" in done.stderr
