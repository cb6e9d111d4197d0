"""``quorate broker``: what the cluster knows about brokers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from quorate.cli.broker_directories import assign, cordon, uncordon
from quorate.cli.broker_session import stand_in
from quorate.cli.command import NounGroup, pass_session, wide_option
from quorate.cli.completions import brokers
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
from quorate.cli.ranges import WholeNumber
from quorate.cli.requests import drawn_uuid
from quorate.cli.session import Session
from quorate.client.results.admin import BrokerDescription, DescribeClusterResponse
from quorate.client.results.commands import RegisterBrokerResult
from quorate.config.addresses import parse_address
from quorum.types import Endpoint, uuid_from_text, uuid_to_text
from quorum.v1.commands_pb2 import BrokerListener, RegisterBroker, SupportedFeature
from quorum.v1.metadata_pb2 import ReadOptions

if TYPE_CHECKING:
    from quorate.client import Client

_COLUMNS = ("broker_id", "state", "broker_epoch", "rack", "listeners")
_WIDE = (*_COLUMNS, "incarnation_id")
_NAMED_MAX = 10
_LISTENER = re.compile(r"([A-Za-z0-9_]+)://(.+)")


@click.group(cls=NounGroup)
def broker() -> None:
    """Register, list, describe, cordon and unregister brokers."""


for _command in (assign, cordon, uncordon):
    broker.add_command(_command)


@broker.command()
@click.argument("broker_id", type=WholeNumber(min=0))
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    required=True,
    metavar="NAME://HOST:PORT",
    help="Where clients reach the broker. Repeatable.",
)
@click.option("--rack", help="The rack it stands in.")
@click.option(
    "--log-dir",
    "log_dirs",
    multiple=True,
    metavar="UUID",
    help="Id of a log directory; one is drawn if none is given. Repeatable.",
)
@click.option(
    "--incarnation-id", metavar="UUID", help="Of this start of the broker; drawn if not given."
)
@click.option("--stay", is_flag=True, help="Go on sending heartbeats until interrupted.")
@write_options
@pass_session
def register(
    session: Session,
    broker_id: int,
    listeners: tuple[str, ...],
    rack: str | None,
    log_dirs: tuple[str, ...],
    incarnation_id: str | None,
    stay: bool,
    dry_run: bool,
    reason: str,
) -> None:
    """Register the broker BROKER_ID, fenced until it sends heartbeats.

    With --stay this command stands in for a broker: it keeps the session until it is
    interrupted, then shuts the broker down in an orderly manner. It executes nothing, and
    claims to know all metadata; `quorate broker-agent` reports what it has really executed.
    """
    from quorate.features import SUPPORTED_FEATURES

    incarnation = _parse_uuid(session, "--incarnation-id", incarnation_id)
    request = RegisterBroker(
        broker_id=broker_id,
        incarnation_id=incarnation,
        listeners=[parse_listener(text) for text in listeners],
        features=[
            SupportedFeature(
                name=feature.name, min_version=feature.min_level, max_version=feature.max_level
            )
            for feature in SUPPORTED_FEATURES
        ],
        log_dirs=[_parse_uuid(session, "--log-dir", text) for text in log_dirs or (None,)],
        rack=rack,
        dry_run=dry_run,
    )

    async def work(client: Client) -> None:
        request.cluster_id = (await client.describe_cluster()).cluster_id
        applied = await client.register_broker(request)
        epoch = applied.yielded(RegisterBrokerResult).broker_epoch
        show_applied(
            session,
            "BrokerRegistered",
            applied,
            dry_run=dry_run,
            broker_id=broker_id,
            broker_epoch=epoch,
            incarnation_id=uuid_to_text(incarnation),
        )
        if stay and not dry_run:
            session.announce("sending heartbeats; interrupt to shut the broker down")
            await stand_in(session, client, broker_id, epoch)

    ask(session, work, reason=reason, is_bounded=not stay)


@broker.command("list")
@wide_option
@read_option
@pass_session
def list_brokers(session: Session, read: ReadOptions) -> None:
    """List all registered brokers with their state."""
    answer = ask(session, lambda client: client.describe_cluster(read=read))
    fields = position_fields(answer.position) if session.output != "table" else {}
    rows = [_row(found) for found in answer.brokers]
    session.show(Result("BrokerList", fields, rows=rows, columns=_COLUMNS, wide=_WIDE))


@broker.command()
@click.argument("broker_id", type=WholeNumber(min=0), shell_complete=brokers)
@read_option
@pass_session
def describe(session: Session, broker_id: int, read: ReadOptions) -> None:
    """Show everything known about the broker BROKER_ID."""
    answer = ask(session, lambda client: client.describe_cluster(read=read))
    found = find_broker(answer, broker_id)
    features = [
        {"name": feature.name, "min": feature.min_version, "max": feature.max_version}
        for feature in found.features
    ]
    cordoned = set(found.cordoned_log_dirs)
    directories = [
        {"directory_id": uuid_to_text(each), "is_cordoned": each in cordoned}
        for each in found.log_dirs
    ]
    more = {"log_dirs": directories, "features": features}
    session.show(
        Result("BrokerDescription", {**_row(found), **more, **position_fields(answer.position)})
    )


@broker.command("fence-status")
@click.argument("broker_id", type=WholeNumber(min=0), shell_complete=brokers)
@read_option
@pass_session
def fence_status(session: Session, broker_id: int, read: ReadOptions) -> None:
    """Say whether the broker BROKER_ID is fenced; exit code 3 when it is not active."""
    answer = ask(session, lambda client: client.describe_cluster(read=read))
    state = state_of(find_broker(answer, broker_id))
    fields = {"broker_id": broker_id, "state": state, **position_fields(answer.position)}
    session.show(Result("BrokerFenceStatus", fields))
    if state != "active":
        raise CliError(f"broker {broker_id} is {state}", code=Exit.UNHEALTHY)


@broker.command()
@click.argument("broker_id", type=WholeNumber(min=0), shell_complete=brokers)
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_session
def unregister(session: Session, broker_id: int, yes: bool, dry_run: bool, reason: str) -> None:
    """Forget the broker BROKER_ID; its replicas stay assigned to it."""
    confirm(f"Unregister broker {broker_id}?", is_sure=yes or dry_run)
    applied = ask(
        session,
        lambda client: client.unregister_broker(broker_id, dry_run=dry_run),
        reason=reason,
    )
    show_applied(session, "BrokerUnregistered", applied, dry_run=dry_run, broker_id=broker_id)


def _parse_uuid(session: Session, option: str, text: str | None) -> bytes:
    try:
        return uuid_from_text(text) if text else drawn_uuid(session, option)
    except ValueError as error:
        raise CliError(f"{option}: {error}", code=Exit.USAGE) from error


def parse_listener(text: str) -> BrokerListener:
    """``NAME://host:port`` as a listener.

    Raises:
        CliError: It is not of that form.
    """
    match = _LISTENER.fullmatch(text)
    try:
        if match is None:
            raise ValueError(f"{text!r} is not NAME://host:port")
        host, port = parse_address(match[2])
    except ValueError as error:
        raise CliError(f"--listener: {error}", code=Exit.USAGE) from error
    return BrokerListener(name=match[1].upper(), host=host, port=port)


def state_of(found: BrokerDescription) -> str:
    """``fenced``, ``controlled_shutdown`` or ``active``."""
    if found.is_fenced:
        return "fenced"
    return "controlled_shutdown" if found.is_in_controlled_shutdown else "active"


def _known(answer: DescribeClusterResponse) -> str:
    ids = [str(each.broker_id) for each in answer.brokers]
    if not ids or len(ids) > _NAMED_MAX:
        return "`quorate broker list` shows all"
    return f"registered: {', '.join(ids)}"


def find_broker(answer: DescribeClusterResponse, broker_id: int) -> BrokerDescription:
    """The registration of a broker.

    Raises:
        CliError: There is none.
    """
    for found in answer.brokers:
        if found.broker_id == broker_id:
            return found
    raise CliError(
        f"broker {broker_id} is not registered",
        hint=_known(answer),
        code=Exit.NOT_FOUND,
    )


def _row(found: BrokerDescription) -> dict[str, object]:
    return {
        "broker_id": found.broker_id,
        "state": state_of(found),
        "broker_epoch": found.broker_epoch,
        "rack": found.rack,
        "listeners": [
            f"{listener.name}://{Endpoint(listener.name, listener.host, listener.port).address}"
            for listener in found.listeners
        ],
        "incarnation_id": uuid_to_text(found.incarnation_id) if found.incarnation_id else None,
    }
