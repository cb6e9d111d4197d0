"""Decisions of the ACL index equal those of the obvious model, whatever was added and removed."""

from __future__ import annotations

import random

import pytest

from quorate.services.access import AccessPolicy, host_of
from quorate.services.describe import TopicNames
from quorum.transport.node_names import NodeNames
from statemachine.command_access import IDEMPOTENT_WRITE
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    TopicRecord,
)
from statemachine.sections.acl_index import AclOperation, Action, Found, ResourceKind
from tests.support.acl_model import (
    ALL_KINDS,
    HOSTS,
    MAPPED_HOSTS,
    NAMES,
    PRINCIPALS,
    V6_HOSTS,
    decide,
    may_have_producer_id,
    random_acl,
    random_action,
)

ACTIONS_PER_SET = 8


def change(
    rng: random.Random, image: MetadataImage, acls: dict[bytes, AccessControlEntryRecord]
) -> MetadataImage:
    """Add and remove a few, the model with it; some that were added go again at once."""
    delta = ImageDelta(image)
    for _ in range(rng.randint(0, 20)):
        if acls and rng.random() < 0.3:
            gone = rng.choice(sorted(acls))
            del acls[gone]
            delta.replay(RemoveAccessControlEntryRecord(gone))
        else:
            acl = random_acl(rng)
            acls[acl.id] = acl
            delta.replay(acl)
    if rng.random() < 0.5:
        assert delta.security.acl_index is not None
    return delta.finish()


def check_sets(seed: int, count: int) -> dict[Found, int]:
    rng = random.Random(seed)
    seen = dict.fromkeys(Found, 0)
    for _ in range(count):
        acls: dict[bytes, AccessControlEntryRecord] = {}
        image = EMPTY_IMAGE
        for _ in range(rng.randint(1, 3)):
            image = change(rng, image, acls)
        assert dict(image.security.acls.items()) == acls
        for _ in range(ACTIONS_PER_SET):
            action = random_action(rng)
            who, host = rng.choice(PRINCIPALS[:-1]), rng.choice(HOSTS[1:])
            expected = decide(acls.values(), action, who, host)
            assert image.security.acl_index.find(action, who, host) == expected, (acls, action)
            seen[expected] += 1
    return seen


def test_two_thousand_random_sets() -> None:
    seen = check_sets(1, 2_000)
    assert min(seen.values()) > 800, seen


@pytest.mark.long
def test_a_hundred_thousand_random_sets() -> None:
    seen = check_sets(2, 100_000)
    assert min(seen.values()) > 40_000, seen


def test_an_index_is_the_same_however_it_came_about() -> None:
    """One by one, all at once, and from a checkpoint's order: equal content, equal decisions."""
    rng = random.Random(3)
    acls = [random_acl(rng) for _ in range(200)]
    one_by_one = EMPTY_IMAGE
    for acl in acls:
        delta = ImageDelta(one_by_one)
        delta.replay(acl)
        one_by_one = delta.finish()
    at_once = ImageDelta(EMPTY_IMAGE)
    for acl in sorted(acls, key=lambda each: each.id):
        at_once.replay(acl)
    loaded = at_once.finish()
    for _ in range(500):
        action, who, host = random_action(rng), rng.choice(PRINCIPALS), rng.choice(HOSTS)
        assert one_by_one.security.acl_index.find(action, who, host) == (
            loaded.security.acl_index.find(action, who, host)
        )
    gone = ImageDelta(loaded)
    for acl in acls:
        gone.replay(RemoveAccessControlEntryRecord(acl.id))
    empty = gone.finish().security
    assert len(empty.acls) == 0
    assert not empty.acl_index._by_pattern
    assert not empty.acl_index._prefix_lengths


@pytest.mark.parametrize("hosts", [V6_HOSTS, MAPPED_HOSTS])
def test_hosts_are_compared_as_addresses(hosts: tuple[str, ...]) -> None:
    """An ACL of a Kafka log has the long form of an IPv6 address, a caller the short one."""
    rng = random.Random(5)
    seen = dict.fromkeys(Found, 0)
    for _ in range(2_000):
        delta = ImageDelta(EMPTY_IMAGE)
        acls = [random_acl(rng, hosts=hosts) for _ in range(rng.randint(1, 20))]
        for acl in acls:
            delta.replay(acl)
        image = delta.finish()
        assert [image.security.acls[acl.id] for acl in acls] == acls
        action, who, host = random_action(rng), PRINCIPALS[0], rng.choice(hosts[1:])
        written = host if ":" not in host else f"[{host}]"
        caller = host_of(f"ip:{written}:77")
        expected = decide(acls, action, who, host)
        assert image.security.acl_index.find(action, who, caller) == expected, (acls, host)
        for kind in ResourceKind:
            expected_names = {
                acl.resource_name
                for acl in acls
                if decide([acl], Action(kind, acl.resource_name, 8), who, host) is Found.ALLOWED
            }
            names = image.security.acl_index.allowed_names(kind, 8, who, caller)
            assert {*names.literals, *(each or "*" for each in names.prefixes)} == expected_names
        seen[expected] += 1
    assert min(seen.values()) > 50, seen


@pytest.mark.parametrize("is_open", [False, True])
def test_who_gets_a_producer_id(is_open: bool) -> None:
    """Few ACLs of every kind, so that some of them leave resources that no ACL names."""
    rng = random.Random(4)
    policy = AccessPolicy(NodeNames("node-{id}.test"), frozenset(), allows_if_no_acl=is_open)
    seen = {False: 0, True: 0}
    for _ in range(2_000):
        delta = ImageDelta(EMPTY_IMAGE)
        acls = [random_acl(rng, ALL_KINDS) for _ in range(rng.randint(0, 6))]
        for acl in acls:
            delta.replay(acl)
        who, host = rng.choice(PRINCIPALS[:-1]), rng.choice(HOSTS[1:])
        expected = may_have_producer_id(acls, who, host, is_open=is_open)
        index = delta.finish().security.acl_index
        assert policy.allows(index, who, host, IDEMPOTENT_WRITE) == expected, acls
        seen[expected] += 1
    assert min(seen.values()) > 5, seen


@pytest.mark.parametrize("seed", range(200))
def test_the_names_listed_are_those_that_may_be_seen(seed: int) -> None:
    """Method: every topic of the model's names and some between them, from any name on."""
    rng = random.Random(seed)
    image = change(rng, EMPTY_IMAGE, {})
    delta = ImageDelta(image)
    names = sorted({*NAMES[:-1], *("".join(rng.choices("abc", k=3)) for _ in range(20))})
    for name in names:
        delta.replay(TopicRecord(name, name.encode().ljust(16, b".")))
    image = delta.finish()
    index, kind, describe = image.security.acl_index, ResourceKind.TOPIC, AclOperation.DESCRIBE
    who, host, after = PRINCIPALS[0], rng.choice(HOSTS[1:]), rng.choice(["", *names])
    allowed = index.allowed_names(kind, describe, who, host)

    def is_visible(name: str) -> bool:
        return index.find(Action(kind, name, describe), who, host) is Found.ALLOWED

    listed = list(TopicNames().among(image, after, allowed))
    assert listed == sorted(set(listed))
    assert [name for name in listed if is_visible(name)] == [
        name for name in names if name > after and is_visible(name)
    ]
    assert all(name in allowed.literals or name.startswith(allowed.prefixes) for name in listed)
