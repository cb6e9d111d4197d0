"""The console index has what the image has; its changes are the differences of images."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.client.results.metadata import AuditHeader, ChangeBatch, StateChunk
from quorate.console.comparison import diff_document
from quorate.console.image_feed import ImageFeed
from quorate.console.index import LOADED_KINDS, Index, problem_of
from quorate.timetravel.difference import differences
from quorate.timetravel.entities import entities
from quorum.batch import iterate_records, scan_batches
from statemachine.codec import batch_headers
from statemachine.dump import dump_values
from statemachine.image import MetadataImage
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
)
from tests.support.audit_log import AuditLog

STEPS = 80
NOT_KEPT = {"producer", "producer-ids", "broker-epoch", "import", "zk-migration", "position"}
"""Kinds without a history in the console; docs/operations/console.md names them."""


def changes(log: AuditLog, start: int = 0) -> Iterator[ChangeBatch]:
    """What a watch from ``start`` on hands out."""
    while data := log.log.read(start, 1 << 20, end_offset=log.end):
        for header in scan_batches(data):
            found = iterate_records(data, header)
            headers = () if header.is_control else batch_headers(found[0].headers, found[0].value)
            yield ChangeBatch(
                base_offset=header.base_offset,
                end_offset=header.end_offset,
                epoch=header.epoch,
                timestamp_ms=header.max_timestamp,
                is_control=header.is_control,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                sequence=header.base_sequence,
                headers=[AuditHeader(name=name, value=value or b"") for name, value in headers],
                records=[] if header.is_control else [each.value or b"" for each in found],
            )
            start = header.end_offset


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    (tmp_path / "console").mkdir()
    made = Index(tmp_path / "console")
    yield made
    made.close()


def shows(index: Index, image: MetadataImage) -> None:
    """Check every table against the image."""
    db = index.reader()
    partitions = {
        (row["topic"], row["number"]): (row["problem"], row["leader"], row["isr"])
        for row in db.execute("SELECT * FROM partition")
    }
    expected = {
        (name, number): (problem_of(state), state.leader, " ".join(map(str, state.isr)))
        for name, topic_id in image.topics.ids.items()
        for number, state in image.topics.partitions_of(topic_id).items()
    }
    assert partitions == expected
    topics = {row["name"]: (row["partitions"], row["under"]) for row in db.execute("SELECT * FROM topic")}  # fmt: skip  # noqa: E501
    assert topics == {
        name: (
            len(image.topics.partitions_of(topic_id)),
            sum(each[0] > 0 for key, each in expected.items() if key[0] == name),
        )
        for name, topic_id in image.topics.ids.items()
    }
    shown = {(row["kind"], row["name"]) for row in db.execute("SELECT kind, name FROM entity")}
    assert shown == {
        (each.kind, each.name) for each in entities(image) if each.kind in LOADED_KINDS
    }


def different(before: MetadataImage, after: MetadataImage) -> set[tuple[str, str]]:
    return {
        (each.entity.kind, each.entity.name)
        for each in differences(before, after)
        if each.entity.kind not in NOT_KEPT
    }


@pytest.mark.parametrize("seed", range(14))
def test_changes_lead_to_the_image_and_to_every_difference(
    seed: int, tmp_path: Path, index: Index
) -> None:
    log = AuditLog(tmp_path / "log")
    log.elect(1)
    log.world(seed, STEPS, reuses_names=True)
    feed = ImageFeed(index)
    feed.begin_empty()
    for batch in changes(log):
        feed.take([batch])
    image = log.machine.image
    assert feed.image is not None
    assert feed.image.has_content_of(image)
    shows(index, image)
    rng = random.Random(seed)
    for _ in range(4):
        low, high = sorted(rng.sample(sorted(log.images), 2))
        rows, page = [], 0
        while True:
            found = diff_document(
                index.reader(), str(low), str(high), page, known_from=0, end=log.end
            )
            rows += found["rows"]
            page += 1
            if not found["has_more"]:
                break
        assert {(each["kind"], each["name"]) for each in rows} == different(
            log.images[low], log.images[high]
        )
        assert all(each["principal"] and each["reason"].startswith("step") for each in rows)


def test_a_state_and_the_changes_after_it(tmp_path: Path, index: Index) -> None:
    log = AuditLog(tmp_path / "log")
    log.elect(1)
    world = log.world(3, STEPS)
    values, middle = list(dump_values(log.machine.image)), log.end
    half = len(values) // 2
    log.more(world, STEPS)
    feed = ImageFeed(index)
    chunk = StateChunk(offset=middle, epoch=1, chunk=0, records=values[:half])
    feed.take([chunk])
    assert feed.image is None
    feed.take([StateChunk(offset=middle, epoch=1, chunk=1, is_last=True, records=values[half:])])
    assert feed.known_from == middle
    feed.take(list(changes(log, middle)))
    shows(index, log.machine.image)


def test_a_transaction_is_shown_when_it_ends(tmp_path: Path, index: Index) -> None:
    log = AuditLog(tmp_path / "log")
    log.elect(1)
    feed = ImageFeed(index)
    feed.begin_empty()
    kept, aborted = ConfigRecord(4, "", "kept", "1"), ConfigRecord(4, "", "aborted", "1")
    log.command(BeginTransactionRecord("t"), kept, principal="User:a", reason="both")
    feed.take(list(changes(log)))
    assert index.reader().execute("SELECT count(*) FROM change").fetchone()[0] == 0
    middle = log.end
    log.command(EndTransactionRecord(), principal="User:a", reason="both")
    log.command(BeginTransactionRecord("u"), aborted, principal="User:b", reason="neither")
    log.command(AbortTransactionRecord("no"), principal="User:b", reason="neither")
    feed.take(list(changes(log, middle)))
    rows = [dict(row) for row in index.reader().execute("SELECT name, principal FROM change")]
    assert rows == [{"name": "broker:(default)/kept", "principal": "User:a"}]
    assert feed.image is not None
    assert feed.image.has_content_of(log.machine.image)


def test_the_oldest_changes_go_first(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log")
    log.elect(1)
    for number in range(30):
        log.command(ConfigRecord(4, "", "key", str(number)), principal="User:a")
    index = Index(tmp_path, changes_max=10)
    feed = ImageFeed(index)
    feed.begin_empty()
    feed.take(list(changes(log)))
    kept = index.reader().execute("SELECT start FROM change ORDER BY id").fetchall()
    assert [row[0] for row in kept][-1] == log.end - 1
    assert len(kept) <= 20
    index.close()
