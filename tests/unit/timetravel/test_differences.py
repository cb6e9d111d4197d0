"""What differs between two offsets, and who changed it; compared with the images of each batch."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from audit.directory import plan_source
from quorate.timetravel.attribution import authors
from quorate.timetravel.difference import Change, differences
from quorate.timetravel.entities import entities
from quorate.timetravel.kinds import KINDS
from quorate.timetravel.moments import Moment
from quorate.timetravel.positions import state_of
from statemachine.dump import count_records
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    TopicRecord,
    TransactionalIdRecord,
    UserScramCredentialRecord,
)
from tests.support.audit_log import AuditLog

STEPS = 120


def changed_keys(before: object, after: object) -> set[object]:
    return {each.entity.key for each in differences(before, after)}  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
def test_every_difference_names_each_batch_that_made_it(seed: int, tmp_path: Path) -> None:
    """Goal: nothing that changed is without an author, and no author is missing."""
    log = AuditLog(tmp_path, segment_bytes=2000)
    log.elect(1)
    log.world(seed, STEPS, reuses_names=True)
    log.commit()
    plan = plan_source(tmp_path)
    ends = sorted(log.images)
    rng = random.Random(seed)
    for _ in range(4):
        low, high = sorted(rng.sample(ends, 2))
        found = authors(plan, low, high)
        made: dict[object, set[int]] = {}
        for start, end in itertools.pairwise(ends):
            if low <= start and end <= high:
                for key in changed_keys(log.images[start], log.images[end]):
                    made.setdefault(key, set()).add(start)
        for key, bases in made.items():
            named = {author["offset"] for author in found[key]}  # type: ignore[index]
            assert all(
                any(base <= offset < log_end(ends, base) for offset in named)  # type: ignore[operator]
                for base in bases
            ), key
        for each in differences(log.images[low], log.images[high]):
            assert found[each.entity.key]


def log_end(ends: list[int], base: int) -> int:
    return ends[ends.index(base) + 1]


@pytest.mark.parametrize("seed", range(4))
def test_applying_the_differences_gives_the_other_state(seed: int, tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    log.world(seed, STEPS, reuses_names=True)
    ends = sorted(log.images)
    before, after = log.images[ends[40]], log.images[ends[-1]]
    content = {each.key: each for each in entities(before)}
    for each in differences(before, after):
        if each.change is Change.REMOVED:
            del content[each.entity.key]
        else:
            content[each.entity.key] = each.entity
            assert each.fields() or each.change is Change.ADDED
    assert {key: each.record for key, each in content.items()} == {
        each.key: each.record for each in entities(after)
    }
    assert list(differences(after, after)) == []


@pytest.mark.parametrize("seed", range(4))
def test_every_entity_has_a_kind_and_a_name_of_its_own(seed: int, tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.world(seed, STEPS, reuses_names=True)
    found = list(entities(log.machine.image))
    assert len(found) == count_records(log.machine.image)
    assert len({(each.kind, each.name) for each in found}) == len(found)
    assert {each.kind for each in found} <= set(KINDS)
    assert list(entities(EMPTY_IMAGE)) == []


def test_every_record_of_a_checkpoint_has_a_kind() -> None:
    stored = [each for each in RECORD_TYPES.values() if each.record_class.IDENTITY is not None]
    assert len(KINDS) == len(stored)


def test_who_and_why_come_from_the_headers(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    begin = log.elect(1)
    log.command(TopicRecord("orders", b"t" * 16), principal="User:ann", reason="new shop")
    log.command(
        ConfigRecord(2, "orders", "retention.ms", "1"), principal="User:bob", request_id="r7"
    )
    log.command(ConfigRecord(2, "orders", "retention.ms", "2"), principal="User:eve")
    log.commit()
    plan = plan_source(tmp_path)
    found = authors(plan, begin, log.end)
    differing = {
        each.entity.name: found[each.entity.key]
        for each in differences(log.images[begin], log.machine.image)
    }
    assert [who["principal"] for who in differing["orders"]] == ["User:ann"]
    assert differing["orders"][0]["reason"] == "new shop"
    values = differing["topic:orders/retention.ms"]
    assert [(who["principal"], who["request_id"]) for who in values] == [
        ("User:bob", "r7"),
        ("User:eve", None),
    ]
    assert [who["offset"] for who in values] == [begin + 1, begin + 2]


def test_an_aborted_transaction_has_no_authors(tmp_path: Path) -> None:
    """Goal: entities with a typed table and those without are both left out."""
    log = AuditLog(tmp_path)
    begin = log.elect(1)
    records = [TransactionalIdRecord("tx", 1), ConfigRecord(4, "", "x", "1")]
    log.command(BeginTransactionRecord("lost"), principal="User:lost")
    log.command(*records, principal="User:lost")
    log.command(AbortTransactionRecord("no"), principal="User:lost")
    log.command(BeginTransactionRecord("kept"), principal="User:kept")
    log.command(*records, principal="User:kept")
    log.command(EndTransactionRecord(), principal="User:kept")
    log.commit()
    found = authors(plan_source(tmp_path), begin, log.end)
    for each in differences(log.images[begin], log.machine.image):
        assert [who["principal"] for who in found[each.entity.key]] == ["User:kept"]
    inside = state_of(plan_source(tmp_path), Moment(offset=begin + 5))
    assert list(entities(inside.image)) == []


def test_credentials_are_hidden_and_yet_seen_to_differ(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    first = log.command(UserScramCredentialRecord("u", 1, b"salt", b"one", b"s", 4096))
    log.command(UserScramCredentialRecord("u", 1, b"salt", b"two", b"s", 4096))
    (found,) = differences(log.images[first], log.machine.image)
    assert found.fields() == {"storedKey": {"before": "(hidden)", "after": "(hidden)"}}
