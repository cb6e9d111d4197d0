"""Add and remove ACLs (KIP-11, KIP-290), all of a command or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import AclEntry, AclFilter, CreateAcls, DeleteAcls
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.topics import TOPIC_NAME, TOPIC_NAME_LENGTH_MAX
from statemachine.prepare.view import View
from statemachine.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from statemachine.sections.acl_hosts import ANY_HOST, is_host
from statemachine.sections.acl_index import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    Permission,
    ResourceKind,
    can_match,
)

ACLS_PER_COMMAND_MAX = 1_000
"""Entries or filters of one command, and ACLs that one command removes."""
TEXT_LENGTH_MAX = 1_024
"""Characters of a resource name, a principal or a host."""
ACL_METADATA_VERSION_MIN = 7
"""Lowest metadata.version (Kafka 3.3) whose logs may hold ACLs."""

_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_ANY = 1
"""In every enumeration of ACLs: all values."""


def prepare_create_acls(view: View, command: CreateAcls, context: EvaluationContext) -> Prepared:
    """Return one record per ACL that does not exist yet.

    Raises:
        CommandError: INVALID_REQUEST for an ACL that can never match; POLICY_VIOLATION for too
            many; UNSUPPORTED_VERSION below ``ACL_METADATA_VERSION_MIN``.
    """
    _check_version(view)
    _check_count(len(command.entries), "ACLs")
    records: list[AccessControlEntryRecord] = []
    new: set[AclEntry] = set()
    for entry in command.entries:
        _check_entry(entry)
        record = _record(entry, context.rng.randbytes(16))
        if entry not in new and not _exists(view, record):
            new.add(entry)
            records.append(record)
    return Prepared([*records], {"created_count": len(records)})


def prepare_delete_acls(view: View, command: DeleteAcls, _context: EvaluationContext) -> Prepared:
    """Return one removal per ACL that any of the filters selects.

    Raises:
        CommandError: INVALID_REQUEST for a filter with unknown values; POLICY_VIOLATION when it
            would remove too many; UNSUPPORTED_VERSION below ``ACL_METADATA_VERSION_MIN``.
    """
    _check_version(view)
    _check_count(len(command.filters), "filters")
    for each in command.filters:
        check_filter(each)
    acls = view.security.acls
    removed = [
        record
        for record in (acls[acl_id] for acl_id in acls)
        if any(selects(each, record) for each in command.filters)
    ]
    if len(removed) > ACLS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"the filters select {len(removed)} ACLs, more than {ACLS_PER_COMMAND_MAX} in one "
            "command; narrow them",
        )
    removed.sort(key=lambda record: record.id)
    return Prepared(
        [RemoveAccessControlEntryRecord(record.id) for record in removed],
        {"removed": [entry_fields(record) for record in removed]},
    )


def selected(
    acls: Iterable[AccessControlEntryRecord], acl_filter: AclFilter
) -> Iterator[AccessControlEntryRecord]:
    """Yield the ACLs that a filter selects.

    Raises:
        CommandError: INVALID_REQUEST for a filter with unknown values.
    """
    check_filter(acl_filter)
    return (record for record in acls if selects(acl_filter, record))


def selects(wanted: AclFilter, record: AccessControlEntryRecord) -> bool:
    """Whether a filter selects an ACL, by the rules of Kafka's ``AclBindingFilter``."""
    return (
        wanted.resource_type in (_ANY, record.resource_type)
        and wanted.operation in (_ANY, record.operation)
        and wanted.permission_type in (_ANY, record.permission_type)
        and wanted.principal in (None, record.principal)
        and wanted.host in (None, record.host)
        and _selects_name(wanted, record)
    )


def entry_fields(record: AccessControlEntryRecord) -> dict[str, object]:
    """Return an ACL's fields besides its id, by their names in the protocol."""
    return {
        "resource_type": record.resource_type,
        "resource_name": record.resource_name,
        "pattern_type": record.pattern_type,
        "principal": record.principal,
        "host": record.host,
        "operation": record.operation,
        "permission_type": record.permission_type,
    }


def check_filter(wanted: AclFilter) -> None:
    """Refuse a filter with values that do not exist.

    Raises:
        CommandError: INVALID_REQUEST.
    """
    _check_known(
        (wanted.resource_type, ResourceKind), (wanted.pattern_type, PatternType),
        (wanted.operation, AclOperation), (wanted.permission_type, Permission),
    )  # fmt: skip


def _selects_name(wanted: AclFilter, record: AccessControlEntryRecord) -> bool:
    pattern, name = wanted.pattern_type, wanted.resource_name
    if pattern not in (PatternType.ANY, PatternType.MATCH, record.pattern_type):
        return False
    if name is None or name == record.resource_name:
        return True
    if pattern != PatternType.MATCH:
        return False
    if record.pattern_type == PatternType.PREFIXED:
        return name.startswith(record.resource_name)
    return record.resource_name == WILDCARD


def _check_version(view: View) -> None:
    level = view.features.metadata_version
    if level < ACL_METADATA_VERSION_MIN:
        raise CommandError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"ACLs need metadata.version {ACL_METADATA_VERSION_MIN} or above; it is {level}",
        )


def _check_count(count: int, what: str) -> None:
    if not count:
        raise CommandError(ErrorCode.INVALID_REQUEST, f"the command names no {what}")
    if count > ACLS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"{count} {what} in one command exceed {ACLS_PER_COMMAND_MAX}",
        )


def _check_entry(entry: AclEntry) -> None:
    _check_known(
        (entry.resource_type, ResourceKind), (entry.pattern_type, PatternType),
        (entry.operation, AclOperation), (entry.permission_type, Permission),
    )  # fmt: skip
    problem = ""
    if _ANY in (entry.resource_type, entry.operation, entry.permission_type):
        problem = "ANY is for filters only"
    elif entry.pattern_type not in _PATTERNS:
        problem = "the pattern type must be LITERAL or PREFIXED"
    elif not entry.resource_name:
        problem = "the resource name is empty"
    elif entry.resource_type == ResourceKind.CLUSTER and entry.resource_name != CLUSTER_NAME:
        problem = f"the only resource of type CLUSTER is {CLUSTER_NAME}"
    elif not all(entry.principal.partition(":")):
        problem = f"the principal {entry.principal[:100]!r} is not of the form User:name"
    elif not entry.host:
        problem = f"the host is empty; {ANY_HOST} stands for every host"
    elif max(len(entry.resource_name), len(entry.principal), len(entry.host)) > TEXT_LENGTH_MAX:
        problem = f"a name has more than {TEXT_LENGTH_MAX} characters"
    elif not is_host(entry.host):
        problem = (
            f"the host {entry.host[:100]!r} is no IP address: ACLs have neither names nor networks "
            f"of hosts; {ANY_HOST} stands for every host"
        )
    elif not can_match(entry.resource_type, entry.operation, entry.permission_type):
        problem = (
            f"nobody does {AclOperation(entry.operation).name} with a resource of type "
            f"{ResourceKind(entry.resource_type).name}"
        )
    elif not _is_name_of_topics(entry):
        problem = (
            f"no topic has the name {entry.resource_name[:100]!r}; {WILDCARD} alone stands for "
            "every topic, and a pattern of type PREFIXED for those whose names begin so"
        )
    if problem:
        raise CommandError(ErrorCode.INVALID_REQUEST, problem)


def _is_name_of_topics(entry: AclEntry) -> bool:
    """Whether a topic's name may be, or begin with, the name of an ACL."""
    if entry.resource_type != ResourceKind.TOPIC:
        return True
    if entry.resource_name == WILDCARD and entry.pattern_type == PatternType.LITERAL:
        return True
    is_short = len(entry.resource_name) <= TOPIC_NAME_LENGTH_MAX
    return is_short and TOPIC_NAME.fullmatch(entry.resource_name) is not None


def _check_known(
    *pairs: tuple[int, type[ResourceKind | PatternType | AclOperation | Permission]],
) -> None:
    for value, kind in pairs:
        if value not in tuple(kind):
            raise CommandError(ErrorCode.INVALID_REQUEST, f"unknown {kind.__name__} {value}")


def _record(entry: AclEntry, acl_id: bytes) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        acl_id,
        entry.resource_type,
        entry.resource_name,
        entry.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def _exists(view: View, record: AccessControlEntryRecord) -> bool:
    fields, security = entry_fields(record), view.security
    ids = security.acl_index.ids_of(record)
    return any(entry_fields(security.acls[each]) == fields for each in ids)
