"""``quorate quorum add-voter``, ``remove-voter`` and ``update-voter``: one change at a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from quorate import client as library
from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import nodes
from quorate.cli.connection import ask, client_of, time_left
from quorate.cli.exits import CliError, Exit
from quorate.cli.quorum_support import objections_to_versions, warnings_about_versions
from quorate.cli.quorum_view import (
    comparison,
    directory_text,
    observers_of,
    unable_fields,
    voters_of,
)
from quorate.cli.session import Session
from quorate.client.results.admin import (
    AddVoterResponse,
    DescribeQuorumResponse,
    RemoveVoterResponse,
    UpdateVoterResponse,
)
from quorate.config.addresses import WILDCARD_HOSTS, parse_address
from quorate.quorum_arithmetic import (
    QuorumStatus,
    Replica,
    objections_to_adding,
    objections_to_removing,
    warnings_about,
)
from quorum.types import uuid_from_text
from quorum.v1.common_pb2 import Endpoint

if TYPE_CHECKING:
    from quorate.client import Client

_Changed: TypeAlias = AddVoterResponse | RemoveVoterResponse | UpdateVoterResponse
Function = TypeVar("Function", bound=Callable[..., Any])
_NODE = click.argument("node", type=click.IntRange(min=0), shell_complete=nodes)


@dataclass(frozen=True, slots=True)
class _Step:
    """What a command is about to do, and the objections to it."""

    verb: str
    node: int
    directory_id: bytes
    before: QuorumStatus
    after: QuorumStatus
    objections: list[str]
    take: Callable[[float], Awaitable[_Changed]]
    """Within so many seconds."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Which disk, and where it is reached."""

    directory_id: bytes
    endpoints: tuple[Endpoint, ...]


def _parse_directory(_context: object, _parameter: object, value: str | None) -> bytes:
    if value is None:
        return b""
    try:
        return uuid_from_text(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _parse_endpoints(
    _context: object, _parameter: object, values: Sequence[str]
) -> tuple[Endpoint, ...]:
    return tuple(parse_endpoint(each) for each in values)


def parse_endpoint(text: str) -> Endpoint:
    """The endpoint of ``NAME://host:port``.

    Raises:
        click.BadParameter: It is not of that form, or no node can be reached at such an address.
    """
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME://host:port")
    try:
        host, port = parse_address(address)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if host in WILDCARD_HOSTS or port == 0:
        raise click.BadParameter(f"{text!r}: no other node can reach that")
    return Endpoint(name=name, host=host, port=port)


def _directory_option(function: Function) -> Function:
    return click.option(
        "--directory-id", callback=_parse_directory, metavar="ID",
        help="Which disk, where the number alone does not say.",
    )(function)  # fmt: skip


def _place_options(function: Function) -> Function:
    function = click.option(
        "--endpoint", "endpoints", multiple=True, callback=_parse_endpoints,
        metavar="NAME://HOST:PORT", help="Where it is reached; the replicas' listener first.",
    )(function)  # fmt: skip
    return click.option(
        "--at", metavar="HOST:PORT",
        help="Ask the node itself there for its directory id and endpoints.",
    )(function)  # fmt: skip


def _step_options(function: Function) -> Function:
    function = click.option(
        "--force", is_flag=True, help="Ask the leader in spite of the objections."
    )(function)
    function = click.option("--reason", default="", help="Why; kept in the audit log.")(function)
    return click.option("--dry-run", is_flag=True, help="Only show the arithmetic.")(function)


@click.command(cls=SessionCommand)
@_NODE
@_directory_option
@_place_options
@click.option("--readmit", is_flag=True, help="Let a replica back in that was removed before.")
@_step_options
@pass_session
def add_voter(
    session: Session,
    node: int,
    directory_id: bytes,
    endpoints: tuple[Endpoint, ...],
    at: str | None,
    readmit: bool,
    dry_run: bool,
    force: bool,
    reason: str,
) -> None:
    """Let observer NODE vote; it must follow the leader and be level with it.

    Its endpoints come from --endpoint, or with --at from the node itself. Refused (exit code 6)
    when fewer than a majority of the new set could acknowledge, or when its release cannot run
    with the feature levels in force.
    """

    async def plan(client: Client) -> _Step:
        answer = await client.describe_quorum(wait_seconds=session.timeout_s)
        before = voters_of(answer)
        place = await _place(session, at, node, directory_id, endpoints)
        voter = _candidate(answer, node, place.directory_id)
        if not place.endpoints and not dry_run:
            raise CliError(f"where is node {node}?", hint="use --endpoint or --at", code=Exit.USAGE)
        return _Step(
            "add", node, voter.directory_id, before, before.with_voter(voter),
            [*objections_to_adding(before, voter), *_objections_to_now(answer),
             *_objections_to_readmission(answer, voter, readmit=readmit),
             *await objections_to_versions(session, client, at, node)],
            lambda seconds: client.add_voter(
                node, voter.directory_id, place.endpoints, readmit=readmit, timeout_seconds=seconds
            ),
            warnings_about_versions(at, node),
        )  # fmt: skip

    _carry_out(session, plan, dry_run=dry_run, force=force, reason=reason)


def _candidate(answer: DescribeQuorumResponse, node: int, directory_id: bytes) -> Replica:
    """The observer of that number, as the leader sees it."""
    found = [
        each
        for each in observers_of(answer)
        if each.id == node and directory_id in (b"", each.directory_id)
    ]
    if len(found) > 1:
        known = ", ".join(str(directory_text(each.directory_id)) for each in found)
        raise CliError(
            f"node {node} fetches from several disks: {known}",
            hint="say which with --directory-id",
            code=Exit.USAGE,
        )
    return found[0] if found else Replica(node, directory_id)


@click.command(cls=SessionCommand)
@_NODE
@_directory_option
@_step_options
@pass_session
def remove_voter(
    session: Session, node: int, directory_id: bytes, dry_run: bool, force: bool, reason: str
) -> None:
    """Let NODE vote no longer; it is remembered as removed and does not come back unasked.

    The leader may be removed: it hands the log on and gives up. Refused (exit code 6) when fewer
    than a majority of those left could acknowledge.
    """

    async def plan(client: Client) -> _Step:
        answer = await client.describe_quorum(wait_seconds=session.timeout_s)
        before = voters_of(answer)
        voter = before.find(node)
        if voter is None or directory_id not in (b"", voter.directory_id):
            raise CliError(f"node {node} is no voter with that directory", hint=_known(before),
                           code=Exit.NOT_FOUND)  # fmt: skip
        return _Step(
            "remove", node, voter.directory_id, before, before.without(node),
            [*objections_to_removing(before, node), *_objections_to_now(answer)],
            lambda seconds: client.remove_voter(node, voter.directory_id, timeout_seconds=seconds),
        )  # fmt: skip

    _carry_out(session, plan, dry_run=dry_run, force=force, reason=reason)


@click.command(cls=SessionCommand)
@_NODE
@_place_options
@_step_options
@pass_session
def update_voter(
    session: Session,
    node: int,
    endpoints: tuple[Endpoint, ...],
    at: str | None,
    dry_run: bool,
    force: bool,
    reason: str,
) -> None:
    """Say where voter NODE is reached from now on. It keeps its vote and its disk."""

    async def plan(client: Client) -> _Step:
        answer = await client.describe_quorum(wait_seconds=session.timeout_s)
        before = voters_of(answer)
        voter = before.find(node)
        if voter is None:
            raise CliError(f"node {node} is not a voter", hint=_known(before),
                           code=Exit.NOT_FOUND)  # fmt: skip
        place = await _place(session, at, node, voter.directory_id, endpoints)
        if not place.endpoints:
            raise CliError(f"where is node {node}?", hint="use --endpoint or --at", code=Exit.USAGE)
        return _Step(
            "update", node, voter.directory_id, before, before,
            [*_objections_to_now(answer),
             *await objections_to_versions(session, client, at, node)],
            lambda seconds: client.update_voter(
                node, voter.directory_id, place.endpoints, timeout_seconds=seconds
            ),
            warnings_about_versions(at, node),
        )  # fmt: skip

    _carry_out(session, plan, dry_run=dry_run, force=force, reason=reason)


async def _place(
    session: Session,
    at: str | None,
    node: int,
    directory_id: bytes,
    endpoints: tuple[Endpoint, ...],
) -> _Place:
    """The disk and its address; what was not given is requested from the node at that address."""
    if at is None:
        return _Place(directory_id, endpoints)
    try:
        async with client_of(session, (at,)) as there:
            found = await there.describe_quorum(from_leader=False)
    except library.UnavailableError as error:
        raise CliError(
            f"node {node} does not answer at {at}: {error}",
            hint="start it, and name its client address; --endpoint needs no answer from it",
            code=Exit.UNREACHABLE,
        ) from error
    if found.node_id != node:
        raise CliError(f"at {at} is node {found.node_id}, not {node}", code=Exit.CONFLICT)
    if directory_id not in (b"", found.directory_id):
        raise CliError(
            f"node {node} at {at} has directory {directory_text(found.directory_id)}",
            code=Exit.CONFLICT,
        )
    return _Place(
        found.directory_id, endpoints or tuple(each.to_message() for each in found.own_endpoints)
    )


def _known(status: QuorumStatus) -> str:
    """A hint with the voters that there are."""
    return f"voters: {', '.join(str(each.id) for each in status.voters)}"


def _objections_to_now(answer: DescribeQuorumResponse) -> list[str]:
    pending = answer.pending_change
    return [f"another change is under way: {pending}"] if pending else []


def _objections_to_readmission(
    answer: DescribeQuorumResponse, voter: Replica, *, readmit: bool
) -> list[str]:
    removed = {(each.node_id, each.directory_id) for each in answer.removed}
    if readmit or (voter.id, voter.directory_id) not in removed:
        return []
    return [f"node {voter.id} was removed with this directory id; --readmit lets it back in"]


def _carry_out(
    session: Session,
    plan: Callable[[Client], Awaitable[_Step]],
    *,
    dry_run: bool,
    force: bool,
    reason: str,
) -> None:
    """Show the arithmetic, and take the step unless there are objections."""

    async def work(client: Client) -> tuple[_Step, _Changed | None]:
        began = time.monotonic()
        step = await plan(client)
        if dry_run or (step.objections and not force):
            return step, None
        return step, await step.take(time_left(session, time.monotonic() - began))

    step, done = ask(session, work, reason=reason)
    fields: dict[str, object] = {
        "change": step.verb,
        "node_id": step.node,
        "directory_id": directory_text(step.directory_id),
        "dry_run": dry_run,
        "unable": unable_fields(step.after),
    }
    if done is not None:
        # The offset is not known where the answer got lost and the voter set shows the change.
        offset = done.offset if done.offset >= 0 else None
        fields |= {"offset": offset, "leader_epoch": done.leader_epoch}
    session.show(
        comparison(
            "VoterChange",
            fields,
            (("before", step.before), ("after", step.after)),
            objections=step.objections,
            warnings=[*warnings_about(step.after), *(step.warnings if dry_run else ())],
        )
    )
    if step.objections and not force:
        raise CliError(
            f"{step.verb}-voter {step.node}: {'; '.join(step.objections)}", code=Exit.REFUSED
        )
