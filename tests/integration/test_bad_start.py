"""A server that cannot start: the exit code, and a message with problem, place and next step.

Every case also shows that nothing on disk was changed: without the fault the same node starts and
has all its data.
"""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import HOST, LocalNode
from quorum.log.side_file import seal
from tests.chaos import disk as chaos_disk
from tests.integration.processes import Ended, Processes, running
from tests.integration.traffic import config_value, write_configs

pytestmark = pytest.mark.integration

VALUES = ["100", "200", "300"]
LOCK = ".lock"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """One voter that has written something and was stopped."""
    with running(tmp_path_factory.mktemp("node"), voters=1, starts=False) as cluster:
        cluster.environment["QUORATE__QUORUM__ELECTION_TIMEOUT_MS"] = "100"
        cluster.start_all()
        write_configs(cluster, VALUES)
        assert cluster.stop(cluster.nodes[1]) == 0
        yield cluster


@pytest.fixture
def cluster(stopped: Processes, tmp_path: Path) -> Iterator[Processes]:
    """The same for every test: whatever a test does to the files is taken back."""
    node = stopped.nodes[1]
    shutil.copytree(node.data_dir, tmp_path / "intact")
    yield stopped
    if node.is_running:
        stopped.stop(node)
    shutil.rmtree(node.data_dir)
    shutil.copytree(tmp_path / "intact", node.data_dir)
    stopped.configure(node)


@pytest.fixture
def node(cluster: Processes) -> LocalNode:
    return cluster.nodes[1]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; a lock is held by the process, not by the file."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("**/*")
        if path.is_file() and path.name != LOCK
    }


def refuse(cluster: Processes, node: LocalNode, *flags: str) -> Ended:
    """Start a server that cannot start, and see that it changed no file."""
    before = files_of(node.data_dir)
    ended = cluster.serve(node, *flags)
    assert files_of(node.data_dir) == before
    return ended


def assert_refused(ended: Ended, status: int, *words: str) -> None:
    """Check that it ended with lines that contain all of ``words``, without a traceback."""
    assert ended.status == status, ended.err
    assert "Traceback" not in ended.err
    assert "error: " in ended.err
    for word in words:
        assert word in ended.err


def test_a_directory_of_another_node(cluster: Processes, node: LocalNode) -> None:
    ended = refuse(cluster, node, "--set", "node.id=7")
    meta = str(node.data_dir / "meta.properties")
    assert_refused(ended, Exit.USAGE, meta, "belongs to node 1, not to node 7", "quorate format")


def test_the_other_record_codec(cluster: Processes, node: LocalNode) -> None:
    ended = refuse(cluster, node, "--set", "cluster.record_codec=kafka")
    words = ("cluster.record_codec is kafka", "native codec", "set it to native")
    assert_refused(ended, Exit.USAGE, str(node.data_dir), *words)


@pytest.mark.parametrize("node_id", ["-1", "-2", "one", "2147483648"])
def test_a_reserved_or_impossible_node_id(
    cluster: Processes, node: LocalNode, node_id: str
) -> None:
    ended = refuse(cluster, node, "--set", f"node.id={node_id}")
    assert_refused(ended, Exit.USAGE, "node")


def test_an_unformatted_directory(cluster: Processes, node: LocalNode, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ended = refuse(cluster, node, "--set", f"node.data_dir={empty}")
    assert_refused(ended, Exit.USAGE, str(empty), "not formatted", "quorate format")
    assert list(empty.glob("**/*.log")) == []


def test_a_directory_that_is_not_there(cluster: Processes, node: LocalNode, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    ended = refuse(cluster, node, "--set", f"node.data_dir={missing}")
    assert_refused(ended, Exit.USAGE, str(missing), "no such data directory", "quorate format")
    assert not missing.exists()


def test_formatting_for_another_cluster(cluster: Processes, node: LocalNode) -> None:
    ended = cluster.run("format", "--config", str(node.config_path), "--cluster-id", "other",
                        "--standalone")  # fmt: skip
    assert ended.status != 0
    assert str(node.data_dir) in ended.err


def test_a_reserved_directory_id(cluster: Processes, node: LocalNode, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    ended = cluster.run(
        "format", "--config", str(node.config_path), "--cluster-id", "integration",
        "--data-dir", str(fresh), "--initial-voters", f"1@{node.address}:{'A' * 22}",
    )  # fmt: skip
    assert ended.status != 0
    assert "Traceback" not in ended.err
    assert "reserved" in ended.err or "directory" in ended.err
    assert not (fresh / "meta.properties").exists()


@pytest.mark.long
@pytest.mark.parametrize("damage", ["flipped", "emptied", "cut", "garbage"])
@pytest.mark.parametrize("name", ["meta.properties", "__cluster_metadata-0/partition.metadata"])
def test_a_damaged_identity_is_damage_and_no_wrong_usage(
    cluster: Processes, node: LocalNode, name: str, damage: str
) -> None:
    path = node.data_dir / name
    whole = path.read_bytes()
    path.write_bytes(
        {
            "flipped": whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:],
            "emptied": b"",
            "cut": whole[: len(whole) // 2],
            "garbage": bytes(range(256)),
        }[damage]
    )
    assert_refused(refuse(cluster, node), Exit.DAMAGED, path.name, "operations/recover.md")


@pytest.mark.long
@pytest.mark.parametrize("damage", ["future", "flipped", "empty", "torn", "a folder"])
def test_an_unusable_quorum_state(cluster: Processes, node: LocalNode, damage: str) -> None:
    """A node that may forget its vote may vote twice, so it does not start."""
    path = node.data_dir / "__cluster_metadata-0" / "quorum-state"
    intact = path.read_bytes()
    fields = json.loads(intact.splitlines()[0])
    if damage == "future":
        fields["data_version"] = 9
        path.write_bytes(seal(json.dumps(fields)))
    elif damage == "flipped":
        path.write_bytes(intact.replace(b'"leaderEpoch":', b'"leaderEpoch":1', 1))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "torn":
        path.write_bytes(intact[: len(intact) // 2])
    else:
        path.unlink()
        path.mkdir()
    ended = refuse(cluster, node)
    assert_refused(ended, Exit.DAMAGED, str(path), "docs/operations/recover.md")
    if damage == "future":
        assert "data_version 9" in ended.err


def test_a_disk_that_fails_while_the_node_starts(cluster: Processes, node: LocalNode) -> None:
    """The exit code is the same as later: a supervisor must not simply restart the server."""
    log = next(iter((node.data_dir / "__cluster_metadata-0").glob("*.log")))
    intact = log.read_bytes()
    # A torn tail, so that recovery has something to write.
    log.write_bytes(intact + intact[-20:])
    switch = node.folder / chaos_disk.SYNC_FAILS
    switch.touch()
    try:
        ended = cluster.serve(node, "--set", f"node.filesystem={chaos_disk.NAME}")
    finally:
        switch.unlink()
    assert_refused(ended, Exit.DAMAGED, "cannot sync: Input/output error")
    assert "event=serving" not in ended.err
    cluster.start_all()
    assert config_value(cluster) == VALUES[-1]


def test_every_mistake_of_a_configuration_at_once(cluster: Processes, node: LocalNode) -> None:
    node.config_path.write_text(
        node.config_path.read_text()
        + "\n[quorm]\nelection_timeout_ms = 5\n"
        + "\n[quorum]\nelection_timout_ms = 500\nfetch_timeout_ms = 0\n"
        + '\n[log]\nsegment_bytes = "large"\n'
    )
    ended = refuse(cluster, node, "--set", "logging.level=loud")
    assert_refused(
        ended,
        Exit.USAGE,
        str(node.config_path),
        "did you mean quorum.election_timeout_ms?",
        "fetch_timeout_ms must be at least 1, not 0",
        "log.segment_bytes must be a whole number, not 'large'",
        "logging.level must be one of debug, info, warning, error, not 'loud'",
    )
    assert len([line for line in ended.err.splitlines() if line.startswith("error: ")]) >= 5


@pytest.mark.parametrize("text", ["[node", "\x00\x01", "node.id = 99999999999999999999e"])
def test_a_configuration_that_is_not_toml(cluster: Processes, node: LocalNode, text: str) -> None:
    node.config_path.write_text(text)
    ended = refuse(cluster, node)
    assert_refused(ended, Exit.USAGE, str(node.config_path))


@pytest.mark.long
@pytest.mark.parametrize("which", ["client", "metrics"])
def test_a_port_in_use(cluster: Processes, node: LocalNode, which: str) -> None:
    port = node.port if which == "client" else node.metrics_port
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, port))
        other.listen()
        ended = cluster.serve(node)
    assert_refused(ended, Exit.FAILED, f"cannot listen on {HOST}:{port}", "another process")
    cluster.start_all()
    assert config_value(cluster) == VALUES[-1]


@pytest.mark.parametrize("key", ["listeners.client", "metrics.listen"])
def test_an_address_of_another_machine(cluster: Processes, node: LocalNode, key: str) -> None:
    """192.0.2.0/24 is for documents only."""
    flags = ("security.unsafe_insecure_listeners=true", f"{key}=192.0.2.1:9190")
    ended = cluster.serve(node, *(part for flag in flags for part in ("--set", flag)))
    assert_refused(ended, Exit.USAGE, "cannot listen on 192.0.2.1:9190", "of this machine?")


def test_a_directory_that_is_used_already(cluster: Processes, node: LocalNode) -> None:
    cluster.start_all()
    ended = cluster.serve(node)
    assert_refused(ended, Exit.FAILED, str(node.data_dir))
    assert node.is_running
    assert config_value(cluster) == VALUES[-1]


def test_a_file_system_that_cannot_be_loaded(cluster: Processes, node: LocalNode) -> None:
    ended = refuse(cluster, node, "--set", "node.filesystem=no.such.module:Class")
    assert_refused(ended, Exit.USAGE, "node.filesystem", "no.such.module")
