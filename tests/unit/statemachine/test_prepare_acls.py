"""ACL commands: what they write, what they refuse, and what a filter selects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import AclEntry, AclFilter, CreateAcls, DeleteAcls
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.prepare import prepare
from statemachine.prepare.acls import ACLS_PER_COMMAND_MAX, selects
from statemachine.records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from statemachine.sections.acl_index import (
    AclOperation,
    Action,
    Found,
    PatternType,
    Permission,
    ResourceKind,
)
from tests.support.image_builder import evaluation, replayed

READ = AclEntry(
    ResourceKind.TOPIC, "orders", PatternType.LITERAL, "User:app", "*",
    AclOperation.READ, Permission.ALLOW,
)  # fmt: skip
WRITE = replace(READ, operation=int(AclOperation.WRITE))
BASE = replayed(FeatureLevelRecord("metadata.version", 33))


def applied(image: MetadataImage, command: CreateAcls | DeleteAcls, seed: int = 1) -> MetadataImage:
    delta = ImageDelta(image)
    for record in prepare(image, command, evaluation(seed=seed)).records:
        delta.replay(record)
    return delta.finish()


def record_of(entry: AclEntry) -> AccessControlEntryRecord:
    (record,) = prepare(BASE, CreateAcls((entry,)), evaluation()).records
    assert isinstance(record, AccessControlEntryRecord)
    return record


def test_new_acls_get_ids_and_known_ones_change_nothing() -> None:
    made = prepare(BASE, CreateAcls((READ, WRITE, READ)), evaluation())
    assert made.result == {"created_count": 2}
    assert len({record.id for record in made.records}) == 2
    image = applied(BASE, CreateAcls((READ,)))
    again = prepare(image, CreateAcls((READ, WRITE)), evaluation())
    assert [record.operation for record in again.records] == [AclOperation.WRITE]
    assert prepare(image, CreateAcls((READ,)), evaluation()).records == []


def test_a_removal_reports_what_it_removed() -> None:
    image = applied(BASE, CreateAcls((READ, WRITE)))
    removal = prepare(
        image, DeleteAcls((AclFilter(operation=int(AclOperation.READ)),)), evaluation()
    )
    assert [type(each) for each in removal.records] == [RemoveAccessControlEntryRecord]
    (reported,) = removal.result["removed"]
    assert reported["operation"] == AclOperation.READ
    assert reported["resource_name"] == "orders"
    both = prepare(image, DeleteAcls((AclFilter(), AclFilter(principal="User:app"))), evaluation())
    assert len(both.records) == 2
    none = prepare(image, DeleteAcls((AclFilter(principal="User:b"),)), evaluation())
    assert (none.records, none.result) == ([], {"removed": []})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"resource_type": 1}, "ANY is for filters only"),
        ({"operation": 1}, "ANY is for filters only"),
        ({"permission_type": 1}, "ANY is for filters only"),
        ({"resource_type": 99}, "unknown ResourceKind 99"),
        ({"operation": 0}, "unknown AclOperation 0"),
        ({"pattern_type": 2}, "LITERAL or PREFIXED"),
        ({"resource_name": ""}, "the resource name is empty"),
        ({"resource_type": 4}, "the only resource of type CLUSTER is kafka-cluster"),
        ({"principal": "app"}, "not of the form User:name"),
        ({"principal": "User:"}, "not of the form User:name"),
        ({"host": ""}, "the host is empty"),
        ({"host": "10.0.0.0/8"}, "'10.0.0.0/8' is no IP address"),
        ({"host": "bogus", "permission_type": 2}, "'bogus' is no IP address"),
        ({"host": "010.0.0.1"}, "is no IP address"),
        ({"host": "[::1]"}, "is no IP address"),
        ({"operation": 9}, "nobody does CLUSTER_ACTION with a resource of type TOPIC"),
        ({"operation": 12}, "nobody does IDEMPOTENT_WRITE"),
        ({"resource_type": 3, "operation": 4, "permission_type": 2}, "nobody does WRITE"),
        ({"resource_type": 7, "operation": 3}, "nobody does READ with a resource of type USER"),
        ({"resource_name": "orders*"}, "no topic has the name 'orders\\*'"),
        ({"resource_name": "*", "pattern_type": 4}, "no topic has the name"),
        ({"resource_name": "x" * 250}, "no topic has the name"),
        ({"resource_name": "x" * 1025}, "more than 1024 characters"),
    ],
)
def test_an_acl_that_can_never_match_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(CommandError, match=words) as refused:
        prepare(BASE, CreateAcls((replace(READ, **change),)), evaluation())
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "change",
    [
        {"host": "10.0.0.1"},
        {"host": "0:0:0:0:0:0:0:1"},
        {"host": "fe80::1%eth0"},
        {"resource_name": "*"},
        {"resource_type": 3, "resource_name": "any name"},
        {"resource_type": 3, "operation": 4},
        {"resource_type": 4, "resource_name": "kafka-cluster", "operation": 9, "pattern_type": 4},
        {"resource_type": 4, "resource_name": "kafka-cluster", "operation": 5},
        {"resource_type": 7, "resource_name": "u", "operation": 2},
    ],
)
def test_an_acl_that_can_match_is_taken(change: dict[str, object]) -> None:
    """WRITE on a group allows to describe it; the cluster is a name that begins with its name."""
    entry = replace(READ, **change)
    index = applied(BASE, CreateAcls((entry,))).security.acl_index
    name = entry.resource_name.replace("*", "x")
    host = "::1" if entry.host == "0:0:0:0:0:0:0:1" else entry.host
    asked = [int(each) for each in AclOperation if each > AclOperation.ALL]
    assert any(
        index.find(Action(entry.resource_type, name, each), "User:app", host) is Found.ALLOWED
        for each in asked
    )


def test_records_of_a_log_are_taken_as_they_are() -> None:
    """Kafka refuses less, and a log of an earlier release may have such ACLs."""
    record = AccessControlEntryRecord(b"i" * 16, 2, "orders*", 3, "User:app", "10.0.0.0/8", 9, 2)
    security = replayed(record).security
    assert security.acls[record.id] == record
    assert list(security.acl_index.ids_of(record)) == [record.id]


def test_an_acl_of_another_spelling_of_a_host_is_another_acl() -> None:
    """As in Kafka, where a filter selects by the text."""
    short, long = replace(READ, host="::1"), replace(READ, host="0:0:0:0:0:0:0:1")
    image = applied(BASE, CreateAcls((long,)))
    assert [
        each.host for each in prepare(image, CreateAcls((long, short)), evaluation()).records
    ] == ["::1"]
    removal = DeleteAcls((AclFilter(host=long.host),))
    assert not applied(image, removal).security.acl_index._by_pattern


def test_the_size_of_a_command_is_bounded() -> None:
    many = tuple(
        replace(READ, resource_name=f"t{number}") for number in range(ACLS_PER_COMMAND_MAX + 1)
    )
    for command in (CreateAcls(many), DeleteAcls((AclFilter(),) * len(many))):
        with pytest.raises(CommandError) as refused:
            prepare(BASE, command, evaluation())
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
    image = applied(applied(BASE, CreateAcls(many[1:])), CreateAcls(many[:1]), seed=2)
    with pytest.raises(CommandError, match="1001 ACLs, more than 1000"):
        prepare(image, DeleteAcls((AclFilter(),)), evaluation())
    for empty in (CreateAcls(()), DeleteAcls(())):
        with pytest.raises(CommandError, match="the command names no"):
            prepare(BASE, empty, evaluation())


def test_a_cluster_without_a_level_that_has_acls_says_so() -> None:
    for image in (EMPTY_IMAGE, replayed(FeatureLevelRecord("metadata.version", 6))):
        for command in (CreateAcls((READ,)), DeleteAcls((AclFilter(),))):
            with pytest.raises(CommandError, match=r"ACLs need metadata\.version 7") as refused:
                prepare(image, command, evaluation())
            assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        (None, PatternType.ANY, {"orders", "ord", "*"}),
        (None, PREFIXED, {"ord"}),
        ("orders", PatternType.ANY, {"orders"}),
        ("orders", LITERAL, {"orders"}),
        ("orders", PREFIXED, set()),
        ("ord", PREFIXED, {"ord"}),
        ("orders", PatternType.MATCH, {"orders", "ord", "*"}),
        ("other", PatternType.MATCH, {"*"}),
        ("*", PatternType.LITERAL, {"*"}),
    ],
)
def test_which_names_a_filter_selects(name: str | None, kind: int, found: set[str]) -> None:
    acls = [
        record_of(replace(READ, resource_name=each, pattern_type=int(pattern)))
        for each, pattern in (("orders", LITERAL), ("ord", PREFIXED), ("*", LITERAL))
    ]
    wanted = AclFilter(resource_name=name, pattern_type=int(kind))
    assert {each.resource_name for each in acls if selects(wanted, each)} == found


def test_a_filter_looks_at_every_field() -> None:
    acl = record_of(READ)
    for change in (
        {"resource_type": 3}, {"principal": "User:b"}, {"host": "h"}, {"operation": 4},
        {"permission_type": 2},
    ):  # fmt: skip
        assert not selects(AclFilter(**change), acl)
    assert selects(AclFilter(2, "orders", 3, "User:app", "*", 3, 3), acl)
