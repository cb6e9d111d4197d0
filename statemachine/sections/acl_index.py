"""ACLs arranged for decisions, with the semantics of Kafka's StandardAuthorizer.

An ACL names a resource by its exact name (LITERAL), by a prefix of it (PREFIXED), or all resources
of a type (LITERAL ``*``). Among the ACLs that match resource, principal, host and operation, one
that denies wins over any that allow.

The index holds each ACL with the canonical text of its host (``acl_hosts``), so that a decision
compares texts only. The image keeps the ACL as the log has it.

The index is immutable and shares structure, like the image that holds it. A decision looks at the
ACLs of one principal on the matching resources only, however many others there are.

See: KIP-11, KIP-290, KIP-801.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from quorum.types import Uuid
from statemachine.records import AccessControlEntryRecord
from statemachine.sections.acl_hosts import canonical_host
from statemachine.sections.map_delta import EMPTY_MAP

WILDCARD: Final = "*"
"""As a resource name: every resource of the type. As a host: every address."""
ANY_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""


class ResourceKind(IntEnum):
    """What an ACL is about: Kafka's ``ResourceType`` of ACLs, not that of configurations."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an ACL names its resource. ANY and MATCH are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What is done with a resource. ANY is for filters only; ALL covers every operation."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an ACL denies or allows. ANY is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class Found(IntEnum):
    """What the ACLs say about one action."""

    NO_ACL = 0
    """No ACL names the resource; the policy decides."""
    NO_MATCH = 1
    """ACLs name the resource, and none of them allows this."""
    DENIED = 2
    ALLOWED = 3


class Action(NamedTuple):
    """What a caller wants to do with one resource."""

    kind: int
    name: str
    operation: int


class AllowedNames(NamedTuple):
    """Names that some ACL allows. One that denies may still match them."""

    literals: frozenset[str]
    prefixes: tuple[str, ...]
    """Ascending; "" stands for every name."""


IMPLYING: Final[Mapping[int, frozenset[int]]] = {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    ),
}
"""Operations whose permission implies another one. Only permission does: a denial of READ does not
deny DESCRIBE."""

SUPPORTED: Final[Mapping[int, frozenset[AclOperation]]] = {
    ResourceKind.TOPIC: frozenset(
        {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    ResourceKind.GROUP: frozenset(
        {
            AclOperation.READ,
            AclOperation.DELETE,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    ResourceKind.CLUSTER: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
        }
    ),
    ResourceKind.TRANSACTIONAL_ID: frozenset(
        {AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT}
    ),
    ResourceKind.DELEGATION_TOKEN: frozenset({AclOperation.DESCRIBE}),
    ResourceKind.USER: frozenset({AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS}),
}
"""What somebody asks to do with a resource of each kind: Kafka's ``AclEntry.supportedOperations``,
and DELETE of the cluster, which a deletion of any topic asks for."""

_ALL: Final = int(AclOperation.ALL)
_DENY: Final = int(Permission.DENY)
_LITERAL: Final = int(PatternType.LITERAL)
_PREFIXED: Final = int(PatternType.PREFIXED)

_Pattern: TypeAlias = tuple[int, int, str]
"""Kind, pattern type and name."""
_Entries: TypeAlias = Map[str, tuple[AccessControlEntryRecord, ...]]
"""The ACLs of one pattern by principal."""


class AclIndex:
    """All ACLs of one image. Immutable; any thread may read it."""

    __slots__ = ("_by_pattern", "_prefix_lengths")

    def __init__(
        self,
        by_pattern: Map[_Pattern, _Entries] = EMPTY_MAP,
        prefix_lengths: Map[int, Map[int, int]] = EMPTY_MAP,
    ) -> None:
        self._by_pattern = by_pattern
        self._prefix_lengths = prefix_lengths
        """By kind: how many prefixes of each length there are."""

    def changed(
        self,
        added: Iterable[AccessControlEntryRecord],
        removed: Iterable[AccessControlEntryRecord],
    ) -> AclIndex:
        """Return the index with some ACLs more, and without some that it has."""
        changes: dict[_Pattern, list[tuple[AccessControlEntryRecord, bool]]] = defaultdict(list)
        for record in removed:
            changes[_pattern_of(record)].append((record, False))
        for record in added:
            changes[_pattern_of(record)].append((record, True))
        by_pattern = self._by_pattern.mutate()
        lengths = self._prefix_lengths
        for pattern, entries in changes.items():
            before = by_pattern.get(pattern, EMPTY_MAP)
            after = _edited(before, entries)
            if after:
                by_pattern[pattern] = after
            elif before:
                del by_pattern[pattern]
            if pattern[1] == _PREFIXED and bool(before) is not bool(after):
                lengths = _counted(lengths, pattern, 1 if after else -1)
        return AclIndex(by_pattern.finish(), lengths)

    def ids_of(self, record: AccessControlEntryRecord) -> Iterator[Uuid]:
        """Yield the ids of the ACLs with the pattern and principal of ``record``."""
        entries = self._by_pattern.get(_pattern_of(record), EMPTY_MAP)
        return (each.id for each in entries.get(record.principal, ()))

    def find(self, action: Action, principal: str, host: str) -> Found:
        """Return what the ACLs say about an action of ``principal`` from ``host``.

        Args:
            action: The resource must have a name; kind and operation are none of the ANYs.
            principal: As in an ACL, ``User:name``.
            host: The caller's address without a port, as ``canonical_host`` returns it.
        """
        found = Found.NO_ACL
        for entries in self._matching(action):
            if found is Found.NO_ACL:
                found = Found.NO_MATCH
            for name in (principal, ANY_PRINCIPAL):
                for record in entries.get(name, ()):
                    if _covers(record, action.operation, host):
                        if record.permission_type == _DENY:
                            return Found.DENIED
                        found = Found.ALLOWED
        return found

    def allows_any(self, operations: frozenset[int], principal: str, host: str) -> bool:
        """Whether some ACL allows ``principal`` one of ``operations`` on any resource."""
        return any(
            record.permission_type != _DENY
            and record.operation in operations
            and record.host in (WILDCARD, host)
            for entries in self._by_pattern.values()
            for name in (principal, ANY_PRINCIPAL)
            for record in entries.get(name, ())
        )

    def leaves_open(self, kinds: Iterable[int]) -> bool:
        """Whether one of ``kinds`` may have a resource that no ACL names, as ``Found.NO_ACL``."""
        return not all(
            (kind, _LITERAL, WILDCARD) in self._by_pattern
            or (kind, _PREFIXED, "") in self._by_pattern
            for kind in kinds
        )

    def allowed_names(self, kind: int, operation: int, principal: str, host: str) -> AllowedNames:
        """Return the names that ACLs allow ``principal`` an operation on.

        It looks at every pattern, so the caller remembers the result.
        """
        literals, prefixes = set[str](), set[str]()
        for (kind_of_it, pattern, name), entries in self._by_pattern.items():
            if kind_of_it == kind and any(
                record.permission_type != _DENY and _covers(record, operation, host)
                for who in (principal, ANY_PRINCIPAL)
                for record in entries.get(who, ())
            ):
                if pattern == _PREFIXED:
                    prefixes.add(name)
                elif name == WILDCARD:
                    prefixes.add("")
                else:
                    literals.add(name)
        return AllowedNames(frozenset(literals), tuple(sorted(prefixes)))

    def _matching(self, action: Action) -> Iterator[_Entries]:
        kind, name, _ = action
        by_pattern = self._by_pattern
        for literal in {name, WILDCARD}:
            if (entries := by_pattern.get((kind, _LITERAL, literal))) is not None:
                yield entries
        for length in self._prefix_lengths.get(kind, EMPTY_MAP):
            entries = by_pattern.get((kind, _PREFIXED, name[:length]))
            if entries is not None and length <= len(name):
                yield entries


EMPTY_INDEX: Final = AclIndex()


def can_match(kind: int, operation: int, permission: int) -> bool:
    """Whether an ACL of this operation decides anything about a resource of this kind."""
    asked = SUPPORTED[kind]
    if operation == _ALL or operation in asked:
        return True
    return permission != _DENY and any(operation in IMPLYING.get(each, ()) for each in asked)


def _pattern_of(record: AccessControlEntryRecord) -> _Pattern:
    return record.resource_type, record.pattern_type, record.resource_name


def _edited(before: _Entries, changes: list[tuple[AccessControlEntryRecord, bool]]) -> _Entries:
    lists: dict[str, dict[bytes, AccessControlEntryRecord]] = {}
    for record, is_added in changes:
        held = lists.get(record.principal)
        if held is None:
            held = {each.id: each for each in before.get(record.principal, ())}
            lists[record.principal] = held
        if is_added:
            host = canonical_host(record.host)
            held[record.id] = record if host == record.host else replace(record, host=host)
        else:
            del held[record.id]
    after = before.mutate()
    for principal, held in lists.items():
        if held:
            after[principal] = tuple(held.values())
        else:
            after.pop(principal, None)
    return after.finish()


def _counted(
    lengths: Map[int, Map[int, int]], pattern: _Pattern, difference: int
) -> Map[int, Map[int, int]]:
    kind, _, prefix = pattern
    counts = lengths.get(kind, EMPTY_MAP)
    count = counts.get(len(prefix), 0) + difference
    counts = counts.set(len(prefix), count) if count else counts.delete(len(prefix))
    return lengths.set(kind, counts) if counts else lengths.delete(kind)


def _covers(record: AccessControlEntryRecord, operation: int, host: str) -> bool:
    if record.host not in (WILDCARD, host):
        return False
    granted = record.operation
    if granted in (_ALL, operation):
        return True
    return record.permission_type != _DENY and granted in IMPLYING.get(operation, ())
