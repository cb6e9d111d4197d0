"""``quorate quorum add-voter``, ``remove-voter`` and ``update-voter``: one change at a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import nodes
from quorate.cli.connection import ask, time_left
from quorate.cli.exits import CliError, Exit
from quorate.cli.quorum_places import directory_option, find_place, place_options
from quorate.cli.quorum_support import objections_to_versions, warnings_about_versions
from quorate.cli.quorum_view import (
    comparison,
    directory_text,
    observers_of,
    unable_fields,
    voters_of,
)
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.client.results.admin import (
    AddVoterResponse,
    DescribeQuorumResponse,
    RemoveVoterResponse,
    UpdateVoterResponse,
)
from quorate.quorum_arithmetic import (
    QuorumStatus,
    Replica,
    objections_to_adding,
    objections_to_removing,
    warnings_about,
)
from quorum.v1.common_pb2 import Endpoint

if TYPE_CHECKING:
    from quorate.client import Client

_Changed: TypeAlias = AddVoterResponse | RemoveVoterResponse | UpdateVoterResponse
Function = TypeVar("Function", bound=Callable[..., Any])
_NODE = click.argument("node", type=WholeNumber(min=0), shell_complete=nodes)


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
    is_done: bool = False
    """It is so already: nothing is asked of the leader."""


def _if_needed_option(function: Function) -> Function:
    return click.option(
        "--if-needed", is_flag=True,
        help="End well if it is so already. Needs to know which disk, so that a repeat is exact.",
    )(function)  # fmt: skip


def _check_disk_is_known(directory_id: bytes, hint: str) -> None:
    if not directory_id:
        raise CliError(
            "--if-needed: the number of a node does not say which disk is meant",
            hint=hint,
            code=Exit.USAGE,
        )


def _step_options(function: Function) -> Function:
    function = click.option(
        "--force", is_flag=True, help="Ask the leader in spite of the objections."
    )(function)
    function = click.option("--reason", default="", help="Why; kept in the audit log.")(function)
    return click.option("--dry-run", is_flag=True, help="Only show the arithmetic.")(function)


@click.command(cls=SessionCommand)
@_NODE
@directory_option
@place_options
@click.option("--readmit", is_flag=True, help="Let a replica back in that was removed before.")
@_if_needed_option
@_step_options
@pass_session
def add_voter(
    session: Session,
    node: int,
    directory_id: bytes,
    endpoints: tuple[Endpoint, ...],
    at: str | None,
    readmit: bool,
    if_needed: bool,
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
        place = await find_place(session, at, node, directory_id, endpoints)
        if if_needed:
            _check_disk_is_known(place.directory_id, "use --directory-id or --at")
            present = before.find(node)
            if present is not None and present.directory_id == place.directory_id:
                return _done("add", present, before, answer)
        voter = _candidate(answer, node, place.directory_id)
        if not place.endpoints:
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
@directory_option
@_if_needed_option
@_step_options
@pass_session
def remove_voter(
    session: Session,
    node: int,
    directory_id: bytes,
    if_needed: bool,
    dry_run: bool,
    force: bool,
    reason: str,
) -> None:
    """Let NODE vote no longer; it is remembered as removed and does not come back unasked.

    The leader may be removed: it hands the log on and gives up. Refused (exit code 6) when fewer
    than a majority of those left could acknowledge.
    """
    if if_needed:
        _check_disk_is_known(directory_id, "use --directory-id")

    async def plan(client: Client) -> _Step:
        answer = await client.describe_quorum(wait_seconds=session.timeout_s)
        before = voters_of(answer)
        voter = before.find(node)
        is_present = voter is not None and voter.directory_id == directory_id
        if if_needed and not is_present and (node, directory_id) in _removed(answer):
            return _done("remove", Replica(node, directory_id), before, answer)
        if voter is None or directory_id not in (b"", voter.directory_id):
            directory = " with that directory" if directory_id else ""
            raise CliError(f"node {node} is no voter{directory}", hint=_known(before),
                           code=Exit.NOT_FOUND)  # fmt: skip
        return _Step(
            "remove", node, voter.directory_id, before, before.without(node),
            [*objections_to_removing(before, node), *_objections_to_now(answer)],
            lambda seconds: client.remove_voter(node, voter.directory_id, timeout_seconds=seconds),
        )  # fmt: skip

    _carry_out(session, plan, dry_run=dry_run, force=force, reason=reason)


@click.command(cls=SessionCommand)
@_NODE
@place_options
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
        place = await find_place(session, at, node, voter.directory_id, endpoints)
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


def _done(verb: str, voter: Replica, status: QuorumStatus, answer: DescribeQuorumResponse) -> _Step:
    """A step that was taken before; an objection while another change is under way."""

    async def refused(_seconds: float) -> _Changed:
        raise CliError(f"{verb}-voter {voter.id}: wait for the other change", code=Exit.CONFLICT)

    objections = _objections_to_now(answer)
    return _Step(
        verb, voter.id, voter.directory_id, status, status, objections, refused,
        is_done=not objections,
    )  # fmt: skip


def _removed(answer: DescribeQuorumResponse) -> set[tuple[int, bytes]]:
    return {(each.node_id, each.directory_id) for each in answer.removed}


def _known(status: QuorumStatus) -> str:
    """A hint with the voters that there are."""
    return f"voters: {', '.join(str(each.id) for each in status.voters)}"


def _objections_to_now(answer: DescribeQuorumResponse) -> list[str]:
    pending = answer.pending_change
    return [f"another change is under way: {pending}"] if pending else []


def _objections_to_readmission(
    answer: DescribeQuorumResponse, voter: Replica, *, readmit: bool
) -> list[str]:
    if readmit or (voter.id, voter.directory_id) not in _removed(answer):
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
        if dry_run or step.is_done or (step.objections and not force):
            return step, None
        return step, await step.take(time_left(session, time.monotonic() - began))

    step, done = ask(session, work, reason=reason)
    fields: dict[str, object] = {
        "change": step.verb,
        "node_id": step.node,
        "directory_id": directory_text(step.directory_id),
        "dry_run": dry_run,
        "is_done_already": step.is_done,
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
