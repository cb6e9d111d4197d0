"""``quorate import`` against real servers: the whole of a real Kafka controller's directory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quorate.client import LINEARIZABLE, Client
from quorate.importer.run import Import, ImportReport
from quorate.importer.source import open_source
from quorum.batch import iterate_records, scan_batches
from statemachine.codec import decode_record
from statemachine.dump import state_digest
from statemachine.machine import StateMachine
from statemachine.records import (
    AbortTransactionRecord,
    BeginImportRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ImportStateRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.integration.processes import Processes, running
from tests.support.kafka_directory import (
    PARTITION,
    SAMPLE_BATCHES,
    SAMPLE_CLUSTER_ID,
    SAMPLE_END_OFFSET,
    SEGMENT,
    KafkaDirectory,
    whole_sample,
)

pytestmark = pytest.mark.integration

MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class KilledError(Exception):
    """The importer is gone in the middle of a message."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def replay_digest(sample: Path) -> str:
    """What the state machine makes of the directory, with nothing of the importer in between."""
    machine = StateMachine()
    machine.apply((sample / PARTITION / SEGMENT).read_bytes())
    return state_digest(machine.image).hex()


def digests(cluster: Processes) -> set[str]:
    """State digests of all running nodes."""

    async def of(address: str) -> str:
        async with Client([address]) as client:
            return (await client.describe_image()).state_digest.hex()

    return {asyncio.run(of(node.address)) for node in cluster.running_nodes}


def import_until(
    cluster: Processes, source: Path, on_step: Callable[[int], None]
) -> ImportReport | None:
    """Import in this process; None when ``on_step`` killed it. ``on_step`` gets copied offsets."""

    async def work() -> ImportReport | None:
        copied = 0

        def count(offsets: int) -> None:
            nonlocal copied
            copied += offsets
            on_step(copied)

        async with Client(cluster.addresses, client_id="test") as client:
            job = Import(client, open_source(source), stall_seconds=20, on_step=count)
            try:
                return await job.run()
            except KilledError:
                return None

    return asyncio.run(work())


def kill_importer_at(offset: int) -> Callable[[int], None]:
    def on_step(copied: int) -> None:
        if copied >= offset:
            raise KilledError

    return on_step


def status(cluster: Processes) -> tuple[int, bool]:
    """How far the import has come, and whether it is finished."""

    async def ask() -> tuple[int, bool]:
        async with Client(cluster.addresses) as client:
            found = (await client.describe_image(read=LINEARIZABLE)).import_status
            return (found.position.offset, found.is_finished) if found else (0, False)

    return asyncio.run(ask())


def batches_of(
    directory: Path,
) -> Iterator[tuple[dict[str, bytes | None], list[MetadataRecord]]]:
    """Headers of the first record and all records, for each data batch of a directory's log."""
    for segment in sorted((directory / PARTITION).glob("*.log")):
        data = segment.read_bytes()
        for header in scan_batches(data):
            if not header.is_control:
                found = iterate_records(data, header)
                yield dict(found[0].headers), [decode_record(r.value or b"") for r in found]


def dumped(cluster: Processes, *arguments: str) -> list[dict[str, Any]]:
    """Batches of a log, one document each."""
    done = cluster.run("-o", "jsonl", "log", "dump", *arguments)
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.long
def test_the_whole_sample(tmp_path: Path, sample: Path, replay_digest: str) -> None:
    """Every source batch is one batch of the same records, the images equal a direct replay,
    and the tools read both directories."""
    with running(tmp_path) as cluster:
        report = cluster.ask("import", str(sample), "--reason", "moving in")
        assert report["equal"] is True
        assert report["source_digest"] == report["cluster_digest"] == replay_digest
        assert report["source_cluster_id"] == SAMPLE_CLUSTER_ID
        assert report["batches"] == SAMPLE_BATCHES - 1
        cluster.until("equal images", lambda: digests(cluster) == {replay_digest})

        leader = cluster.leader()
        begun, *copies, ended = [
            (headers, records)
            for headers, records in batches_of(leader.data_dir)
            if "source-offset" in headers
        ]
        assert begun[1] == [BeginImportRecord(SAMPLE_CLUSTER_ID, -1, False, 0)]
        assert [type(record) for record in ended[1]] == [ImportStateRecord]
        assert [records for _, records in copies] == [
            [record for record in records if not isinstance(record, MARKERS)]
            for _, records in batches_of(sample)
        ]
        ranges = [(int(h["source-offset"]), int(h["source-next"])) for h, _ in copies]
        assert (ranges[0][0], ranges[-1][1]) == (0, SAMPLE_END_OFFSET)
        assert all(before[1] == after[0] for before, after in pairwise(ranges))
        assert {headers["reason"] for headers, _ in copies} == {b"moving in"}

        def topics_exported() -> int:
            exported = cluster.run(
                "-o", "json", "export", str(leader.data_dir), "--to", str(tmp_path / "out")
            ).json
            return sum(row["rows"] for row in exported["rows"] if row["table"] == "topics")

        # An export ends at the high watermark on disk, which is stored once a second. Each one
        # writes only what the folder does not have yet.
        topics = 0
        while topics < 5:
            topics += cluster.until("more topics to export", topics_exported)
        assert topics == 5

        again = cluster.ask("import", str(sample))
        assert (again["was_finished"], again["batches"], again["equal"]) == (True, 0, True)
        assert len(cluster.ask("topic", "list")["rows"]) == 5


def test_the_sample_is_read_directly_as_well(tmp_path: Path, sample: Path) -> None:
    with running(tmp_path, voters=1, starts=False) as cluster:
        batches = dumped(cluster, str(sample))
        assert len(batches) == SAMPLE_BATCHES
        assert sum(batch["count"] for batch in batches) == SAMPLE_END_OFFSET
        assert not [r for batch in batches for r in batch["records"] if "error" in r]
        exported = cluster.run(
            "-o", "json", "export", str(sample), "--to", str(tmp_path / "out")
        ).json
        rows = {row["table"]: row["rows"] for row in exported["rows"]}
        assert rows["history"] == SAMPLE_END_OFFSET


@pytest.mark.long
def test_it_goes_on_where_it_stopped(tmp_path: Path, sample: Path, replay_digest: str) -> None:
    """The importer dies, then the leader, then all nodes lose power; no batch is missing or
    duplicated, and no other client writes in between."""
    with running(tmp_path) as cluster:
        assert import_until(cluster, sample, kill_importer_at(1_000)) is None
        offset, is_finished = status(cluster)
        assert 1_000 <= offset < SAMPLE_END_OFFSET
        assert not is_finished

        refused = cluster.run("--bootstrap", ",".join(cluster.addresses), "topic", "create", "t")
        assert refused.status == 6, refused.err
        assert "being imported" in refused.err

        leader = cluster.leader()

        def kill_leader(copied: int) -> None:
            if copied >= 500 and leader.is_running:
                cluster.kill(leader)
            if copied >= 1_500:
                raise KilledError

        assert import_until(cluster, sample, kill_leader) is None
        cluster.kill_together(cluster.running_nodes)
        cluster.start_all()
        before = status(cluster)[0]
        assert before > offset

        report = cluster.ask("import", str(sample))
        assert report["copied_from"] == str(before)
        assert report["cluster_digest"] == replay_digest
        assert status(cluster) == (SAMPLE_END_OFFSET, True)
        cluster.until("equal images", lambda: digests(cluster) == {replay_digest})


@pytest.mark.long
def test_a_leader_that_dies_does_not_end_the_import(
    tmp_path: Path, sample: Path, replay_digest: str
) -> None:
    with running(tmp_path) as cluster:
        leader = cluster.leader()

        def kill_leader(copied: int) -> None:
            if copied >= 1_000 and leader.is_running:
                cluster.kill(leader)

        report = import_until(cluster, sample, kill_leader)
        assert report is not None
        assert not leader.is_running
        assert report.found_digest.hex() == replay_digest


def test_a_trimmed_source_with_an_aborted_transaction(tmp_path: Path) -> None:
    """Broker epochs go on above the source's, although the log is far shorter."""
    kafka = KafkaDirectory(tmp_path / "kafka", start=9_000, cluster_id="not a uuid!")
    level = FeatureLevelRecord("metadata.version", 19)
    broker = RegisterBrokerRecord(7, incarnation_id=b"i" * 16, broker_epoch=8_888, fenced=False)
    kafka.checkpoint(9_000, level, broker, TopicRecord("kept", b"k" * 16))
    kafka.batch(BeginTransactionRecord("x"), TopicRecord("never", b"n" * 16))
    kafka.batch(AbortTransactionRecord("no"), TopicRecord("later", b"l" * 16))
    with running(tmp_path / "cluster", voters=1) as cluster:
        report = cluster.ask("import", str(kafka.path))
        assert (report["checkpoint"], report["dropped_records"]) == (9_000, 3)
        assert report["source_cluster_id"] == "not a uuid!"
        assert [row["name"] for row in cluster.ask("topic", "list")["rows"]] == ["kept", "later"]
        (row,) = cluster.ask("broker", "list")["rows"]
        assert (row["broker_id"], row["broker_epoch"]) == (7, 8_888)
        new = cluster.ask("broker", "register", "7", "--listener", "PLAINTEXT://b7:9092")
        assert new["broker_epoch"] == 8_889


def test_what_is_refused_changes_nothing(tmp_path: Path, sample: Path) -> None:
    """A damaged source, by file and position; a cluster that is not empty."""
    damaged = whole_sample(tmp_path)
    segment = damaged / PARTITION / SEGMENT
    data = bytearray(segment.read_bytes())
    data[200_000] ^= 0xFF
    segment.write_bytes(data)
    with running(tmp_path / "cluster", voters=1) as cluster:
        server = ",".join(cluster.addresses)
        refused = cluster.run("--bootstrap", server, "import", str(damaged))
        assert refused.status == 8, refused.err
        assert str(segment) in refused.err
        assert "position" in refused.err
        dry = cluster.ask("import", str(sample), "--dry-run")
        assert (dry["dry_run"], dry["batches"]) == (True, 0)
        assert status(cluster) == (0, False)
        cluster.ask("config", "set", "broker", "", "log.retention.ms=9")
        refused = cluster.run("--bootstrap", server, "import", str(sample))
        assert refused.status == 6, refused.err
        assert "not empty" in refused.err
        assert cluster.ask("topic", "list")["rows"] == []
