"""``quorate acl``: who may do what with which resources."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from quorate.cli.command import NounGroup, pass_session
from quorate.cli.completions import ACL_RESOURCES, principals
from quorate.cli.connection import (
    ask,
    confirm,
    position_fields,
    read_option,
    show_applied,
    write_options,
)
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.client.results.commands import AclEntry, CreateAclsResult, DeleteAclsResult
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import ReadOptions

Function = TypeVar("Function", bound=Callable[..., Any])

CLUSTER_NAME = "kafka-cluster"
_TYPES = ("topic", "group", "transactional-id", "user")
_OPERATIONS = tuple(
    name.removeprefix("ACL_OPERATION_").lower().replace("_", "-")
    for name in wire.AclOperation.keys()  # noqa: SIM118 - an enum of protobuf is no mapping
    if not name.endswith(("UNSPECIFIED", "_ANY"))
)
_COLUMNS = ("principal", "permission", "operation", "resource_type", "resource", "pattern", "host")


@click.group(cls=NounGroup)
def acl() -> None:
    """Say who may do what with which resources."""


def resource_options(function: Function) -> Function:
    """Add one option per type of resource, handed over together as ``resource``: type and name."""

    @functools.wraps(function)
    def with_resource(*arguments: Any, cluster: bool, **options: Any) -> Any:
        named = [(each, options.pop(each.replace("-", "_"))) for each in _TYPES]
        given = [(kind, name) for kind, name in named if name is not None]
        if cluster:
            given.append(("cluster", CLUSTER_NAME))
        if len(given) > 1:
            raise CliError(
                f"{', '.join(f'--{kind}' for kind, _ in given)}: name one resource at a time",
                code=Exit.USAGE,
            )
        resource = given[0] if given else None
        return function(*arguments, resource=resource, **options)

    wrapped = click.option("--cluster", is_flag=True, help="The cluster itself.")(with_resource)
    for kind in reversed(_TYPES):
        wrapped = click.option(
            f"--{kind}",
            metavar="NAME",
            shell_complete=ACL_RESOURCES.get(kind),
            help=f"A {kind}; '*' is every one.",
        )(wrapped)
    return cast("Function", wrapped)


operation_option = click.option(
    "--operation",
    "operations",
    multiple=True,
    type=click.Choice(_OPERATIONS, case_sensitive=False),
    help="What is done with the resource. Repeatable.",
)


@acl.command()
@click.argument("principal", shell_complete=principals)
@click.option("--deny", is_flag=True, help="Forbid it; that wins over everything that allows it.")
@operation_option
@resource_options
@click.option("--prefixed", is_flag=True, help="All resources whose names begin so.")
@click.option("--host", default="*", show_default=True, help="Only from this IP address.")
@write_options
@pass_session
def add(
    session: Session,
    principal: str,
    deny: bool,
    operations: tuple[str, ...],
    resource: tuple[str, str] | None,
    prefixed: bool,
    host: str,
    dry_run: bool,
    reason: str,
) -> None:
    """Allow PRINCIPAL (User:name; User:* is everybody) operations on one resource."""
    if not operations or resource is None:
        raise CliError(
            "name what is allowed, and on what",
            hint="as in: quorate acl add User:app --operation write --topic orders",
            code=Exit.USAGE,
        )
    kind, name = resource
    entries = [
        wire.AclEntry(
            resource_type=_number(wire.AclResourceType, "ACL_RESOURCE_TYPE", kind),
            resource_name=name,
            pattern_type=(
                wire.ACL_PATTERN_TYPE_PREFIXED if prefixed else wire.ACL_PATTERN_TYPE_LITERAL
            ),
            principal=principal,
            host=host,
            operation=_number(wire.AclOperation, "ACL_OPERATION", operation),
            permission_type=(
                wire.ACL_PERMISSION_TYPE_DENY if deny else wire.ACL_PERMISSION_TYPE_ALLOW
            ),
        )
        for operation in operations
    ]
    applied = ask(
        session, lambda client: client.create_acls(entries, dry_run=dry_run), reason=reason
    )
    show_applied(
        session, "AclsAdded", applied, dry_run=dry_run,
        created=applied.yielded(CreateAclsResult).created_count,
    )  # fmt: skip


def filter_options(function: Function) -> Function:
    """Add the options that select ACLs, handed over together as ``wanted`` (an ``AclFilter``)."""

    @functools.wraps(function)
    def with_filter(
        *arguments: Any,
        principal: str | None,
        host: str | None,
        operation: str | None,
        permission: str | None,
        resource: tuple[str, str] | None,
        pattern: str,
        **options: Any,
    ) -> Any:
        kind, name = resource or ("any", None)
        wanted = wire.AclFilter(
            resource_type=_number(wire.AclResourceType, "ACL_RESOURCE_TYPE", kind),
            resource_name=name,
            pattern_type=_number(wire.AclPatternType, "ACL_PATTERN_TYPE", pattern),
            principal=principal,
            host=host,
            operation=_number(wire.AclOperation, "ACL_OPERATION", operation or "any"),
            permission_type=_number(
                wire.AclPermissionType, "ACL_PERMISSION_TYPE", permission or "any"
            ),
        )
        return function(*arguments, wanted=wanted, **options)

    wrapped = click.option(
        "--principal",
        metavar="User:NAME",
        shell_complete=principals,
        help="Only of this principal.",
    )(resource_options(with_filter))
    for option in (
        click.option("--host", help="Only for this address."),
        click.option(
            "--operation",
            type=click.Choice(_OPERATIONS, case_sensitive=False),
            help="Only this operation.",
        ),
        click.option(
            "--permission",
            type=click.Choice(["allow", "deny"], case_sensitive=False),
            help="Only one kind.",
        ),
        click.option(
            "--pattern",
            type=click.Choice(["any", "match", "literal", "prefixed"], case_sensitive=False),
            default="any",
            show_default=True,
            help="How ACLs name the resource; match: all that concern the one named.",
        ),
    ):
        wrapped = option(wrapped)
    return cast("Function", wrapped)


@acl.command()
@filter_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_session
def remove(session: Session, wanted: wire.AclFilter, yes: bool, dry_run: bool, reason: str) -> None:
    """Remove all ACLs that the options select; exit code 4 if there is none."""
    confirm("Remove all ACLs that these options select?", is_sure=yes or dry_run)
    applied = ask(
        session, lambda client: client.delete_acls([wanted], dry_run=dry_run), reason=reason
    )
    removed = applied.yielded(DeleteAclsResult).removed
    position = {"dry_run": dry_run, "end_offset": applied.offset, "epoch": applied.epoch}
    if removed or session.output != "table":
        session.show(Result("AclsRemoved", position, rows=[_row(each) for each in removed],
                            columns=_COLUMNS))  # fmt: skip
    if not removed:
        raise CliError(
            "these options select no ACL", hint="`quorate acl list` shows all", code=Exit.NOT_FOUND
        )


@acl.command("list")
@filter_options
@read_option
@pass_session
def list_command(session: Session, wanted: wire.AclFilter, read: ReadOptions) -> None:
    """List the ACLs that the options select; all without options."""
    answer = ask(session, lambda client: client.describe_acls(wanted, read=read))
    if not answer.is_enforced:
        session.warn(f"node {answer.position.node_id} does not enforce ACLs")
    session.show(
        Result(
            "AclList",
            {**position_fields(answer.position), "is_enforced": answer.is_enforced},
            rows=[_row(each) for each in answer.entries],
            columns=_COLUMNS,
        )
    )


def _row(entry: AclEntry) -> dict[str, object]:
    return {
        "principal": entry.principal,
        "permission": _text(wire.AclPermissionType, "ACL_PERMISSION_TYPE", entry.permission_type),
        "operation": _text(wire.AclOperation, "ACL_OPERATION", entry.operation),
        "resource_type": _text(wire.AclResourceType, "ACL_RESOURCE_TYPE", entry.resource_type),
        "resource": entry.resource_name,
        "pattern": _text(wire.AclPatternType, "ACL_PATTERN_TYPE", entry.pattern_type),
        "host": entry.host,
    }


def _number(enum: Any, prefix: str, text: str) -> Any:
    return enum.Value(f"{prefix}_{text.upper().replace('-', '_')}")


def _text(enum: Any, prefix: str, number: int) -> str:
    try:
        name: str = enum.Name(number)
    except ValueError:
        return str(number)
    return name.removeprefix(f"{prefix}_").lower().replace("_", "-")
