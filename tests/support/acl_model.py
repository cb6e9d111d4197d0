"""A plain model of Kafka's authorizer: it checks every ACL, one after the other."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

from statemachine.records import AccessControlEntryRecord
from statemachine.sections.acl_index import (
    CLUSTER_NAME,
    AclOperation,
    Action,
    Found,
    PatternType,
    Permission,
    ResourceKind,
)

NAMES = ("a", "ab", "abc", "abd", "b", "ba", "*")
KINDS = (ResourceKind.TOPIC, ResourceKind.TOPIC, ResourceKind.GROUP)
ALL_KINDS = (*KINDS, ResourceKind.TRANSACTIONAL_ID, ResourceKind.CLUSTER)
NEW_NAME = "zz"
"""A name that no ACL of the model names."""
OPERATIONS = (
    AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE,
    AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)  # fmt: skip
PRINCIPALS = ("User:a", "User:b", "User:*")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
V6_HOSTS = ("*", "::1", "0:0:0:0:0:0:0:1", "0000::0001", "FE80::a", "fe80:0:0:0:0:0:0:a", "::2")
MAPPED_HOSTS = ("*", "10.0.0.1", "::ffff:10.0.0.1", "0:0:0:0:0:FFFF:a00:1", "::ffff:10.0.0.2")


def decide(acls: Iterable[AccessControlEntryRecord], action: Action, who: str, host: str) -> Found:
    """Return the decision of Kafka's StandardAuthorizer; see KIP-11 and KIP-290."""
    found = Found.NO_ACL
    for acl in acls:
        if acl.resource_type != action.kind or not matches(acl, action.name):
            continue
        found = max(found, Found.NO_MATCH)
        if acl.principal not in (who, "User:*") or not covers_host(acl, host):
            continue
        granted = AclOperation(acl.operation)
        allows = acl.permission_type == Permission.ALLOW
        fits = granted in (AclOperation.ALL, action.operation)
        if allows and action.operation == AclOperation.DESCRIBE:
            fits = fits or granted.name in ("READ", "WRITE", "DELETE", "ALTER")
        if allows and action.operation == AclOperation.DESCRIBE_CONFIGS:
            fits = fits or granted.name == "ALTER_CONFIGS"
        if fits and not allows:
            return Found.DENIED
        if fits:
            found = Found.ALLOWED
    return found


def may_have_producer_id(
    acls: Iterable[AccessControlEntryRecord], who: str, host: str, *, is_open: bool
) -> bool:
    """Return what Kafka's InitProducerId decides, for every operation that changes something.

    It asks for IDEMPOTENT_WRITE on the cluster, else for a change of any resource: first of one
    that no ACL names, which counts if ``allow.everyone.if.no.acl.found`` is set (``is_open``), then
    for an ACL that allows one (``Authorizer.authorizeByResourceType``).
    """
    acls = list(acls)
    on_cluster = Action(int(ResourceKind.CLUSTER), CLUSTER_NAME, int(AclOperation.IDEMPOTENT_WRITE))
    found = decide(acls, on_cluster, who, host)
    if found is Found.DENIED:
        return False
    if found is Found.ALLOWED or (found is Found.NO_ACL and is_open):
        return True
    for kind in (ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.TRANSACTIONAL_ID):
        action = Action(int(kind), NEW_NAME, int(AclOperation.ALTER_CONFIGS))
        if is_open and decide(acls, action, who, host) is Found.NO_ACL:
            return True
    return any(
        acl.permission_type == Permission.ALLOW
        and AclOperation(acl.operation).name not in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
        and acl.principal in (who, "User:*")
        and covers_host(acl, host)
        for acl in acls
    )


def covers_host(acl: AccessControlEntryRecord, host: str) -> bool:
    """Compare addresses and not their texts, in the way of the C library."""
    return acl.host == "*" or packed(acl.host) == packed(host)


def packed(host: str) -> bytes:
    """Return the 16 bytes of an address; those of IPv4 as IPv6 has them."""
    return socket.inet_pton(socket.AF_INET6, host if ":" in host else f"::ffff:{host}")


def matches(acl: AccessControlEntryRecord, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def random_acl(
    rng: random.Random,
    kinds: tuple[ResourceKind, ...] = KINDS,
    hosts: tuple[str, ...] = HOSTS,
) -> AccessControlEntryRecord:
    acl_id, kind = rng.randbytes(16), rng.choice(kinds)
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=kind,
        resource_name=CLUSTER_NAME if kind is ResourceKind.CLUSTER else rng.choice(NAMES),
        pattern_type=rng.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        principal=rng.choice(PRINCIPALS),
        host=rng.choice(hosts),
        operation=rng.choice(OPERATIONS),
        permission_type=rng.choice((Permission.DENY, Permission.ALLOW, Permission.ALLOW)),
    )


def random_action(rng: random.Random) -> Action:
    return Action(rng.choice(KINDS), rng.choice(NAMES[:-1]), rng.choice(OPERATIONS[1:]))
