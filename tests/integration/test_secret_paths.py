"""Every path by which metadata leaves a node, or its files, without a secret in it; by codec.

A password-like configuration is set and changed, and a user gets a password. Then each path is
asked for everything it has. Secrets are looked for as they are, and as base64 and hexadecimal text.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import grpc
import pyarrow.parquet as pq
import pytest

from quorate.cli.main import cli
from quorate.client import Client, LogPosition
from quorate.demo.ports import free_ports
from quorum.batch import BatchHeader, record_values, scan_batches
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2, metadata_pb2_grpc
from statemachine.codec import decode_record, encode_record
from statemachine.records import ConfigRecord, FeatureLevelRecord, UserScramCredentialRecord
from statemachine.redaction import REDACTED
from tests.integration.lone_node import Node
from tests.integration.secret_commands import ASKS, BROKER, READS, SHOWS_NO_VALUES

pytestmark = [pytest.mark.integration, pytest.mark.long]

KEY = "listener.name.internal.ssl.keystore.password"
OLD, NEW, PASSWORD = "old-hunter2-value", "new-hunter2-value", "correct-horse-battery"
PLAIN = "1234567"
"""A value that is no secret: a path that does not show it shows nothing."""


@dataclass(frozen=True)
class Served:
    """A node with secrets, and a copy of what it has written."""

    node: Node
    data: Path
    needles: tuple[bytes, ...]
    before: int
    """An offset before the first secret."""
    end: int

    def hidden_in(self, text: str | bytes) -> str:
        """Return the text; no secret may be in it."""
        data = text if isinstance(text, bytes) else text.encode()
        found = [each for each in self.needles if each in data]
        assert found == [], data[:2000]
        return data.decode("utf-8", "replace")

    def command(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        status, out, err = self.node.run(*arguments)
        assert status in codes, err
        self.hidden_in(err)
        return self.hidden_in(out)


def forms(secret: bytes) -> list[bytes]:
    """Return a secret as it is, in hexadecimal digits, and in base64 of both alphabets."""
    plain, safe = base64.b64encode(secret), base64.urlsafe_b64encode(secret)
    return [secret, secret.hex().encode(), plain.rstrip(b"="), safe.rstrip(b"=")]


async def all_batches(address: str, *, secrets: bool) -> bytes:
    found, offset = b"", 0
    async with Client([address]) as client:
        while True:
            request = metadata_pb2.FetchLogRequest(offset=offset, include_secrets=secrets)
            response = await client.fetch_log(request)
            if not response.records:
                return found
            found += response.records
            offset = scan_batches(response.records)[-1].end_offset


def batch(data: bytes, header: BatchHeader) -> bytes:
    return data[header.position : header.position + header.size]


async def import_secrets(address: str) -> None:
    """Write configurations that only a Kafka cluster sets, as its import does: one each batch."""
    values = [
        FeatureLevelRecord("metadata.version", 25),
        ConfigRecord(4, BROKER, KEY, OLD),
        ConfigRecord(4, BROKER, KEY, NEW),
        ConfigRecord(4, BROKER, "log.retention.ms", PLAIN),
    ]
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = metadata_pb2_grpc.MetadataServiceStub(channel)  # type: ignore[no-untyped-call]
        for number, value in enumerate([None, *values]):
            begin = max(0, number - 1)
            batch = wire.ImportBatch(source_cluster_id="theirs", is_last=number == len(values))
            batch.begin.offset, batch.end.offset = begin, number
            if value is not None:
                batch.records.append(encode_record(value))
            # Without a producer: an import begins in an empty cluster.
            request = metadata_pb2.WriteRequest(command=wire.Command(import_batch=batch))
            answer = (await stub.Write(request, timeout=60)).answer
            assert answer.error_code == 0, answer


@pytest.fixture(scope="module", params=["native", "kafka"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp(request.param)
    os.environ["QUORATE__LOGGING__LEVEL"] = "debug"
    try:
        node = Node(folder, request.param)
    finally:
        del os.environ["QUORATE__LOGGING__LEVEL"]
    # A node whose output nobody reads would stop in the middle of a line.
    said: list[str] = []
    assert node.process.stderr is not None
    reader = threading.Thread(target=said.extend, args=(node.process.stderr,))
    reader.start()
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        # It leads once it can confirm a read.
        node.ask("user", "list", "--timeout", "60")
        asyncio.run(import_secrets(f"127.0.0.1:{node.port}"))
        refused = node.run("config", "set", "broker", "7", f"{KEY}={OLD}")
        assert refused[0] != 0
        assert OLD not in refused[1] + refused[2]
        node.ask("user", "add", "alice", "--new-password-file", str(secret))
        address = f"127.0.0.1:{node.port}"
        data = asyncio.run(all_batches(address, secrets=True))
        users = [
            record
            for header in scan_batches(data)
            if not header.is_control
            for record in map(decode_record, record_values(data, header))
            if isinstance(record, UserScramCredentialRecord)
        ]
        assert [each.name for each in users] == ["", "alice"]
        keys = [part for each in users for part in (each.salt, each.stored_key, each.server_key)]
        texts = [each.encode() for each in (OLD, NEW, PASSWORD)]
        needles = tuple(form for each in (*texts, *keys) for form in forms(each))
        assert all(each in data for each in (*texts[:2], *keys))
        ends = [header.end_offset for header in scan_batches(data)]
        first = next(each for each in scan_batches(data) if OLD.encode() in batch(data, each))
        yield Served(node, folder / "data", needles, first.base_offset, ends[-1])
    finally:
        node.process.terminate()
        node.process.wait(60)
        reader.join(60)
        for pipe in (node.process.stdout, node.process.stderr):
            assert pipe is not None
            pipe.close()
    # Everything that the node said since its start, at level debug.
    text = "".join(said)
    assert "event=stopped" in text
    assert not [each for each in needles if each.decode("latin-1") in text]


def segments(served: Served) -> list[str]:
    return [str(path) for path in sorted(served.data.rglob("*.log"))]


def checkpoint(served: Served, folder: Path) -> str:
    """Return a checkpoint of a copy of the directory."""
    copied = folder / "copy"
    shutil.copytree(served.data, copied, ignore=shutil.ignore_patterns(".lock"))
    served.command("snapshot", "create", str(copied), "--out", str(folder))
    return str(next(folder.glob("*.checkpoint")))


def test_what_a_client_fetches_and_consumes(served: Served) -> None:
    address = f"127.0.0.1:{served.node.port}"
    assert PLAIN in served.hidden_in(asyncio.run(all_batches(address, secrets=False)))

    async def consumed(position: LogPosition | None) -> str:
        async with Client([address]) as client:
            consumer = client.consumer(position=position)
            found = ""
            while PLAIN not in found:
                found += repr(await consumer.poll())
            return found

    assert PLAIN in served.hidden_in(asyncio.run(consumed(None)))


def leaves(command: click.Command, *path: str) -> Iterator[str]:
    """Yield the full names of all commands."""
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, *path, name)


def test_somebody_has_decided_about_every_command() -> None:
    """A new command is missing here until it is looked at, or until what it shows is said."""
    names = list(leaves(cli))
    asked = {
        next(name for name in names if f"{' '.join(each)} ".startswith(f"{name} ")) for each in ASKS
    }
    spared = [name for group in SHOWS_NO_VALUES.values() for name in group]
    assert sorted(names) == sorted([*asked, *READS, *spared])


@pytest.mark.parametrize("arguments", ASKS, ids=" ".join)
@pytest.mark.parametrize("form", ["table", "json"])
def test_commands_that_ask_the_node(served: Served, arguments: tuple[str, ...], form: str) -> None:
    form = "jsonl" if (arguments[0], form) == ("watch", "json") else form
    out = served.command("-o", form, *arguments)
    if arguments[0] in ("watch", "config"):
        assert "keystore.password" in out


@pytest.mark.parametrize("form", ["table", "json"])
def test_commands_that_read_files(served: Served, form: str, tmp_path: Path) -> None:
    data = str(served.data)
    say = ("-o", form)
    newest = checkpoint(served, tmp_path)
    assert PLAIN in served.command(*say, "log", "dump", "--records", *segments(served))
    assert PLAIN in served.command(*say, "snapshot", "dump", "--records", newest)
    assert PLAIN in served.command(*say, "state", data)
    assert PLAIN in served.command(*say, "state", newest)
    shown = [
        served.command(*say, "shell", data, command, f"/{entity}")
        for command in ("cat", "log")
        for entity in (f"config/broker:{BROKER}/{KEY}", "scram/alice/2")
    ]
    assert "alice" in shown[1]
    assert REDACTED in shown[0]
    served.command(*say, "snapshot", "list", data)
    for question in ("configs", "leaders", "partitions", "quorum"):
        found = served.command(*say, "audit", question, "--log", data)
        assert question != "configs" or "keystore.password" in found
    served.command(*say, "log", "verify", str(tmp_path / "copy"), codes=(0, 3))
    ends = (str(served.before), str(served.end))
    compared = served.command(*say, "diff", "--in", data, *ends, codes=(3,))
    assert "keystore.password" in compared


def test_secrets_are_there_for_who_asks(served: Served) -> None:
    """Otherwise the other tests show nothing."""
    status, out, _ = served.node.run(
        "log", "dump", "--records", "--show-secrets", *segments(served)
    )
    assert status == 0
    assert OLD in out
    assert NEW in out


def test_exports_and_questions_about_them(served: Served, tmp_path: Path) -> None:
    out = tmp_path / "export"
    served.command("export", str(served.data), "--to", str(out))
    files = sorted(out.rglob("*.parquet"))
    assert files
    for path in files:
        served.hidden_in(path.read_bytes())
        served.hidden_in(repr(pq.read_table(path).to_pylist()))
    for form in ("table", "json"):
        found = served.command("-o", form, "audit", "configs", "--export", str(out))
        assert "keystore.password" in found
    export = ("--export", str(out))
    for table in ("history", "configs", "config_changes"):
        query = ("--sql", f"SELECT * FROM {table}")
        found = served.command("-o", "json", "audit", "query", *export, *query)
        assert "keystore.password" in found
    page = tmp_path / "report.html"
    served.command("audit", "report", *export, "--to", str(page))
    served.hidden_in(page.read_bytes())


def test_what_a_backup_says_about_itself(served: Served, tmp_path: Path) -> None:
    """The copied files have everything, and are for their owner; the manifest has no secret."""
    target = tmp_path / "backup"
    served.command("backup", "create", str(target), "--from", str(served.data))
    served.command("-o", "json", "backup", "verify", str(target))
    for path in target.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
        if path.suffix == ".json":
            served.hidden_in(path.read_bytes())


def test_the_metrics(served: Served) -> None:
    assert "quorate_raft_state" in served.hidden_in(served.node.page("/metrics"))
    served.hidden_in(served.node.page("/readyz"))


def test_the_console(served: Served) -> None:
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-m", "quorate", "console", "--listen", f"127.0.0.1:{port}",
         "--bootstrap", f"127.0.0.1:{served.node.port}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "event=serving" in line or "http://" in line:
                break
        pages = {}
        for view in (
            "", "quorum", "leadership", "topics", "brokers", "features", "alerts", "history",
            "history?kind=config", "history?kind=scram", "search?q=alice", "search?q=password",
            "search?q=hunter2", f"diff?before={served.before}&after={served.end}",
        ):  # fmt: skip
            for prefix in ("", "api/"):
                name = prefix + (view or ("overview" if prefix else ""))
                pages[name] = served.hidden_in(fetched(f"http://127.0.0.1:{port}/{name}"))
        assert PLAIN in json.dumps(pages)
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=60)
    served.hidden_in(rest)


def fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return error.read()
