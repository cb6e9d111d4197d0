"""The option ``endpoint`` of the Spark source: the log comes over the network, from a real node."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audit.directory import plan_source
from audit.errors import AuditError
from audit.source import ClusterMetadataSource
from quorate.client import Client
from quorate.config.server_config import ServerConfig
from quorate.demo.ports import free_ports
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_foreign_identity, write_identity
from quorum.log.layout import partition_directory
from quorum.log.recovery import open_log
from quorum.v1.commands_pb2 import ConfigResourceType
from tests.support.audit_log import table_rows
from tests.support.lone_server import lone_config

BROKER = ConfigResourceType.CONFIG_RESOURCE_TYPE_BROKER

pytest.importorskip("pyspark")


def read(path: Path, endpoint: str, table: str = "history") -> list[dict[str, Any]]:
    """Plan and read as Spark does: the driver's half, then every task."""
    options = {"path": str(path), "endpoint": endpoint, "table": table}
    reader = ClusterMetadataSource(options).reader(None)  # type: ignore[arg-type]
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def with_node(
    folder: Path,
    scenario: Callable[[str, Client, Any], Any],
    config: ServerConfig | None = None,
) -> ServerConfig:
    """Run a node, by default a new one; return its configuration."""
    (port,) = free_ports(1)
    used = lone_config(folder, shutdown_ms_max=1000, port=port) if config is None else config

    async def live() -> None:
        failures: list[BaseException] = []
        node = ServerNode(used, OsFileSystem(), rng=random.Random(1), on_failure=failures.append)
        await node.start()
        address = used.listeners.client
        client = Client([address])
        try:
            await scenario(address, client, node)
        finally:
            await client.close()
            await node.stop()
        assert failures == []

    asyncio.run(live())
    return used


def test_a_log_is_read_over_the_network(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"

    async def scenario(address: str, client: Client, _node: Any) -> None:
        for number in range(5):
            await client.set_config(BROKER, "", "log.retention.ms", str(number + 1))
        first = await asyncio.to_thread(read, mirror, address, "configs")
        assert [row["value"] for row in first] == ["1", "2", "3", "4", "5"]
        await client.set_config(BROKER, "", "log.retention.ms", "6")
        again = await asyncio.to_thread(read, mirror, address, "configs")
        assert [row["value"] for row in again][-1] == "6"
        assert again[:5] == first
        history = await asyncio.to_thread(read, mirror, address)
        plan = plan_source(tmp_path / "n1", with_unknown=True)
        theirs = table_rows(plan, "history", 0, plan_source(mirror).end_offset)
        assert [dict(row, commit_state="", append_time="") for row in history] == [
            dict(row, commit_state="", append_time="") for row in theirs
        ]

    with_node(tmp_path, scenario)


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_data_directory_is_never_written_to(tmp_path: Path) -> None:
    """Goal: no second writer, and no other history in a voter's log. Both of a node that runs, and
    of one that does not.
    """
    other = with_node(tmp_path / "other", nothing)

    async def scenario(address: str, _client: Client, _node: Any) -> None:
        stopped = Path(other.node.data_dir)
        before = content(stopped)
        for folder in (tmp_path / "n1", stopped):
            with pytest.raises(AuditError, match="a node's data directory") as caught:
                await asyncio.to_thread(read, folder, address)
            assert str(folder) in str(caught.value)
            assert not (folder / "copy.lock").exists()
        assert content(stopped) == before

    with_node(tmp_path, scenario)


async def nothing(_address: str, _client: Client, _node: Any) -> None:
    """Run a node until it has started."""


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(AuditError, match="neither empty nor a copy"):
        read(tmp_path, "localhost:1")
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_a_copy_of_another_cluster_is_refused(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"

    async def copied(address: str, _client: Client, _node: Any) -> None:
        await asyncio.to_thread(read, mirror, address)

    with_node(tmp_path / "one", copied)
    write_identity(
        OsFileSystem(),
        mirror,
        replace(load_foreign_identity(OsFileSystem(), mirror), cluster_id="another"),
    )
    before = content(mirror)

    async def refused(address: str, _client: Client, _node: Any) -> None:
        with pytest.raises(AuditError, match="the copy is of cluster another"):
            await asyncio.to_thread(read, mirror, address)

    with_node(tmp_path / "two", refused)
    assert content(mirror) == before


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [("foo", "'foo' is not host:port"), (",", "endpoint is empty"), ("a:1,b:99999", "above 65535")],
)
def test_an_address_that_is_none(endpoint: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=problem):
        read(tmp_path / "copy", endpoint)
    assert not (tmp_path / "copy").exists()


def test_a_python_without_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(AuditError, match="option endpoint needs Quorate, with grpcio"):
        read(tmp_path / "mirror", "localhost:1")


def test_options_of_a_connection_need_one(tmp_path: Path) -> None:
    source = ClusterMetadataSource({"path": str(tmp_path), "tlsCa": "ca.pem"})
    with pytest.raises(AuditError, match="option tlsCa needs option endpoint"):
        source.reader(None)  # type: ignore[arg-type]
    source = ClusterMetadataSource({"path": str(tmp_path), "endpoint": "a:1", "tlsCa": "/no/ca"})
    with pytest.raises(AuditError, match="option tlsCa /no/ca: No such file or directory"):
        source.reader(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (("tlsCa", "tlsCert"), "option tlsCert needs option tlsKey"),
        (("tlsCa", "tlsKey"), "option tlsKey needs option tlsCert"),
        (("tlsCert", "tlsKey"), "option tlsCert needs option tlsCa"),
        (("user",), "option user needs option passwordFile"),
        (("passwordFile",), "option passwordFile needs option user"),
    ],
)
def test_an_option_that_means_nothing_alone(
    given: tuple[str, ...], needed: str, tmp_path: Path
) -> None:
    """A certificate without its key would end the process inside gRPC."""
    options = {"path": str(tmp_path / "copy"), "endpoint": "a:1", **dict.fromkeys(given, "/no")}
    with pytest.raises(AuditError, match=needed):
        ClusterMetadataSource(options).reader(None)  # type: ignore[arg-type]
    assert not (tmp_path / "copy").exists()


def test_a_checkpoint_stands_for_what_was_trimmed(tmp_path: Path) -> None:
    async def first(_address: str, client: Client, _node: Any) -> None:
        for number in range(3):
            await client.set_config(BROKER, "", "log.retention.ms", str(number + 1))
        await client.create_snapshot()

    async def second(address: str, client: Client, _node: Any) -> None:
        await client.set_config(BROKER, "", "log.retention.bytes", "2")
        rows = await asyncio.to_thread(read, tmp_path / "mirror", address, "configs")
        found = [(row["config_name"], row["value"], row["is_baseline"]) for row in rows]
        assert found == [("log.retention.ms", "3", True), ("log.retention.bytes", "2", False)]
        assert rows[0]["append_time"] is None

    config = with_node(tmp_path, first)
    checkpoint = plan_source(tmp_path / "n1", with_unknown=True).checkpoints[-1].snapshot_id
    log, _ = open_log(OsFileSystem(), partition_directory(tmp_path / "n1"), snapshots=[checkpoint])
    log.advance_start(checkpoint)
    log.close()
    with_node(tmp_path, second, config)


def test_a_copy_of_another_history_is_kept(tmp_path: Path) -> None:
    """As after an unsafe recovery: the cluster no longer has what was copied."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    async def longer(address: str, client: Client, _node: Any) -> None:
        for number in range(9):
            await client.set_config(BROKER, "", "log.retention.ms", str(number + 1))
        await asyncio.to_thread(read, tmp_path / "mirror", address)

    async def shorter(address: str, client: Client, _node: Any) -> None:
        await client.set_config(BROKER, "", "log.retention.ms", "77")
        with pytest.raises(AuditError, match="name another folder") as caught:
            await asyncio.to_thread(read, tmp_path / "mirror", address)
        assert "\n" not in str(caught.value)

    with_node(tmp_path / "a", longer)
    before = plan_source(tmp_path / "mirror")
    with_node(tmp_path / "b", shorter)
    assert plan_source(tmp_path / "mirror") == before
