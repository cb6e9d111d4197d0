"""``quorate config``: dynamic configuration kept in the log, and this node's own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quorate.cli.broker import find_broker
from quorate.cli.command import NounGroup, pass_session
from quorate.cli.completions import config_keys, config_resources
from quorate.cli.config_show import show
from quorate.cli.connection import (
    ask,
    missing_or_denied,
    near_topic,
    position_fields,
    read_option,
    refusal_exit,
    show_applied,
    write_options,
)
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.cli.topic import parse_pair
from quorate.client.results.metadata import DescribeConfigsResponse
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import ReadOptions
from statemachine.redaction import REDACTED

if TYPE_CHECKING:
    from quorate.client import Client

RESOURCES = {
    "topic": wire.CONFIG_RESOURCE_TYPE_TOPIC,
    "broker": wire.CONFIG_RESOURCE_TYPE_BROKER,
    "group": wire.CONFIG_RESOURCE_TYPE_GROUP,
    "client-metrics": wire.CONFIG_RESOURCE_TYPE_CLIENT_METRICS,
}
"""Kinds of things that carry configuration. An empty broker name is the default of all."""

_resource_type = click.argument(
    "resource_type", type=click.Choice(list(RESOURCES), case_sensitive=False)
)

_name = click.argument("name", shell_complete=config_resources)

_pairs = click.argument(
    "pairs", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=config_keys
)


@click.group(cls=NounGroup)
def config() -> None:
    """Read and change configuration: of the cluster, and (show) of this node."""


config.add_command(show)


@config.command("get")
@_resource_type
@_name
@click.option("--all", "include_defaults", is_flag=True, help="Also keys at their defaults.")
@read_option
@pass_session
def get_config(
    session: Session, resource_type: str, name: str, include_defaults: bool, read: ReadOptions
) -> None:
    """Show the configuration of NAME, a topic, a broker id or the like."""

    async def work(client: Client) -> tuple[DescribeConfigsResponse, str]:
        answer = await client.describe_configs(
            [(RESOURCES[resource_type], name)], include_defaults=include_defaults, read=read
        )
        (resource,) = answer.resources
        hint = ""
        if resource.error_code and resource_type == "topic":
            hint = await near_topic(client, name)
        elif not resource.entries and resource_type == "broker" and name:
            find_broker(await client.describe_cluster(read=read), parse_broker_id(name))
        return answer, hint

    answer, hint = ask(session, work)
    (resource,) = answer.resources
    if resource.error_code:
        raise CliError(
            missing_or_denied(resource_type, name, resource.error_code),
            hint=hint,
            code=refusal_exit(resource.error_code),
        )
    fields = position_fields(answer.position) if session.output != "table" else {}
    session.show(
        Result(
            "Config",
            fields,
            rows=[
                {
                    "key": entry.name,
                    "value": REDACTED if entry.is_sensitive else entry.value,
                    "read_only": entry.is_read_only,
                }
                for entry in resource.entries
            ],
            columns=("key", "value", "read_only"),
        )
    )


@config.command("set")
@_resource_type
@_name
@_pairs
@write_options
@pass_session
def set_config(
    session: Session,
    resource_type: str,
    name: str,
    pairs: tuple[str, ...],
    dry_run: bool,
    reason: str,
) -> None:
    """Set keys of NAME; all take effect or none."""
    changes = _changes(wire.CONFIG_OPERATION_SET, pairs)
    _alter(session, resource_type, name, changes, dry_run=dry_run, reason=reason)


@config.command("append")
@_resource_type
@_name
@_pairs
@write_options
@pass_session
def append_config(
    session: Session,
    resource_type: str,
    name: str,
    pairs: tuple[str, ...],
    dry_run: bool,
    reason: str,
) -> None:
    """Add values to keys of NAME that are lists; all take effect or none."""
    changes = _changes(wire.CONFIG_OPERATION_APPEND, pairs)
    _alter(session, resource_type, name, changes, dry_run=dry_run, reason=reason)


@config.command("subtract")
@_resource_type
@_name
@_pairs
@write_options
@pass_session
def subtract_config(
    session: Session,
    resource_type: str,
    name: str,
    pairs: tuple[str, ...],
    dry_run: bool,
    reason: str,
) -> None:
    """Take values out of keys of NAME that are lists; all take effect or none."""
    changes = _changes(wire.CONFIG_OPERATION_SUBTRACT, pairs)
    _alter(session, resource_type, name, changes, dry_run=dry_run, reason=reason)


@config.command("delete")
@_resource_type
@_name
@click.argument("keys", nargs=-1, required=True, shell_complete=config_keys)
@write_options
@pass_session
def delete_config(
    session: Session,
    resource_type: str,
    name: str,
    keys: tuple[str, ...],
    dry_run: bool,
    reason: str,
) -> None:
    """Take KEYS of NAME back to their defaults; all take effect or none."""
    changes = [
        wire.ConfigAlteration(name=key, operation=wire.CONFIG_OPERATION_DELETE) for key in keys
    ]
    _alter(session, resource_type, name, changes, dry_run=dry_run, reason=reason)


def parse_broker_id(text: str) -> int:
    """The id of a broker.

    Raises:
        CliError: It is no whole number.
    """
    try:
        return int(text)
    except ValueError as error:
        raise CliError(f"{text!r} is no broker id: write a number", code=Exit.USAGE) from error


def _changes(
    operation: wire.ConfigOperation, pairs: tuple[str, ...]
) -> list[wire.ConfigAlteration]:
    return [
        wire.ConfigAlteration(name=key, operation=operation, value=value)
        for key, value in map(parse_pair, pairs)
    ]


def _alter(
    session: Session,
    resource_type: str,
    name: str,
    changes: list[wire.ConfigAlteration],
    *,
    dry_run: bool,
    reason: str,
) -> None:
    applied = ask(
        session,
        lambda client: client.alter_configs(
            RESOURCES[resource_type], name, changes, dry_run=dry_run
        ),
        reason=reason,
        topic=name if resource_type == "topic" else "",
    )
    show_applied(
        session,
        "ConfigAltered",
        applied,
        dry_run=dry_run,
        resource=f"{resource_type} {name}".rstrip(),
        keys=[change.name for change in changes],
    )
