"""A plain model of Kafka's authorizer: it checks every ACL, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterable

from statemachine.records import AccessControlEntryRecord
from statemachine.sections.acl_index import (
    AclOperation,
    Action,
    Found,
    PatternType,
    Permission,
    ResourceKind,
)

NAMES = ("a", "ab", "abc", "abd", "b", "ba", "*")
KINDS = (ResourceKind.TOPIC, ResourceKind.TOPIC, ResourceKind.GROUP)
OPERATIONS = (
    AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE,
    AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)  # fmt: skip
PRINCIPALS = ("User:a", "User:b", "User:*")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")


def decide(acls: Iterable[AccessControlEntryRecord], action: Action, who: str, host: str) -> Found:
    """Return the decision of Kafka's StandardAuthorizer; see KIP-11 and KIP-290."""
    found = Found.NO_ACL
    for acl in acls:
        if acl.resource_type != action.kind or not matches(acl, action.name):
            continue
        found = max(found, Found.NO_MATCH)
        if acl.principal not in (who, "User:*") or acl.host not in (host, "*"):
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


def matches(acl: AccessControlEntryRecord, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def random_acl(rng: random.Random) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=rng.randbytes(16),
        resource_type=rng.choice(KINDS),
        resource_name=rng.choice(NAMES),
        pattern_type=rng.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        principal=rng.choice(PRINCIPALS),
        host=rng.choice(HOSTS),
        operation=rng.choice(OPERATIONS),
        permission_type=rng.choice((Permission.DENY, Permission.ALLOW, Permission.ALLOW)),
    )


def random_action(rng: random.Random) -> Action:
    return Action(rng.choice(KINDS), rng.choice(NAMES[:-1]), rng.choice(OPERATIONS[1:]))
