"""``quorate topic``: create, list, describe, grow and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quorate.cli.command import NounGroup, pass_session, wide_option
from quorate.cli.completions import topics
from quorate.cli.connection import (
    ask,
    confirm,
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
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.cli.topic_election import elect_leaders
from quorate.client.results.commands import CreateTopicResult
from quorate.client.results.metadata import DescribeTopicsResponse, ListTopicsResponse, TopicListing
from quorum.types import uuid_to_text
from quorum.v1.metadata_pb2 import ReadOptions

if TYPE_CHECKING:
    from quorate.client import Client

_PARTITION_COLUMNS = ("topic", "partition", "leader", "leader_epoch", "partition_epoch",
                      "replicas", "isr", "offline")  # fmt: skip
_PARTITION_WIDE = (
    *_PARTITION_COLUMNS,
    "adding",
    "removing",
    "eligible_leader_replicas",
    "topic_id",
)


@click.group(cls=NounGroup)
def topic() -> None:
    """Create, list, describe, grow and delete topics."""


topic.add_command(elect_leaders)


@topic.command()
@click.argument("name")
@click.option("--partitions", type=WholeNumber(min=1), help="Number of partitions.")
@click.option("--replication-factor", type=WholeNumber(min=1), help="Replicas per partition.")
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option(
    "--assignment",
    metavar="1:2,2:3",
    help="Brokers of each partition, the preferred leader first; instead of counts.",
)
@write_options
@pass_session
def create(
    session: Session,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    assignment: str | None,
    dry_run: bool,
    reason: str,
) -> None:
    """Create the topic NAME."""
    if assignment is not None and (partitions is not None or replication_factor is not None):
        raise CliError("give counts or --assignment, not both", code=Exit.USAGE)
    applied = ask(
        session,
        lambda client: client.create_topic(
            name,
            partitions=partitions or -1,
            replication_factor=replication_factor or -1,
            assignments=parse_assignment(assignment or ""),
            configs=dict(parse_pair(text) for text in configs),
            dry_run=dry_run,
        ),
        reason=reason,
    )
    created = applied.yielded(CreateTopicResult)
    show_applied(
        session,
        "TopicCreated",
        applied,
        dry_run=dry_run,
        name=name,
        topic_id=uuid_to_text(created.topic_id) if created.topic_id else None,
        partitions=created.partition_count,
        replication_factor=created.replication_factor,
    )


@topic.command("list")
@read_option
@pass_session
def list_topics(session: Session, read: ReadOptions) -> None:
    """List all topics by name."""
    listings, answer = ask(session, lambda client: _all_topics(client, read))
    session.show(
        Result(
            "TopicList",
            position_fields(answer.position) if session.output != "table" else {},
            rows=[
                {
                    "name": listing.name,
                    "topic_id": uuid_to_text(listing.topic_id),
                    "partitions": listing.partition_count,
                }
                for listing in listings
            ],
            columns=("name", "topic_id", "partitions"),
        )
    )


@topic.command()
@click.argument("names", nargs=-1, required=True, shell_complete=topics)
@wide_option
@read_option
@pass_session
def describe(session: Session, names: tuple[str, ...], read: ReadOptions) -> None:
    """Show the partitions of the topics NAMES."""

    async def work(client: Client) -> tuple[DescribeTopicsResponse, list[str], str]:
        answer = await client.describe_topics(names, read=read)
        missing = [found.name for found in answer.topics if found.error_code]
        return answer, missing, await near_topic(client, missing[0]) if missing else ""

    answer, missing, hint = ask(session, work)
    rows = [
        {
            "topic": found.name,
            "topic_id": uuid_to_text(found.topic_id),
            "partition": partition.partition,
            "leader": partition.leader_id,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "replicas": list(partition.replicas),
            "isr": list(partition.isr),
            "offline": list(partition.offline_replicas),
            "adding": list(partition.adding_replicas),
            "removing": list(partition.removing_replicas),
            "eligible_leader_replicas": list(partition.eligible_leader_replicas),
            "directories": [uuid_to_text(each) for each in partition.directories],
        }
        for found in answer.topics
        if not found.error_code
        for partition in found.partitions
    ]
    fields: dict[str, object] = {}
    columns: tuple[str, ...] = _PARTITION_COLUMNS
    if session.output != "table":
        fields = position_fields(answer.position)
    elif rows and len(names) == 1 and not session.is_wide:
        # The same long name in every line would leave no room for the rest.
        fields = {each: rows[0][each] for each in ("topic", "topic_id")}
        columns = _PARTITION_COLUMNS[1:]
    if rows or session.output != "table":
        session.show(
            Result("TopicDescription", fields, rows=rows, columns=columns, wide=_PARTITION_WIDE)
        )
    if missing:
        code = next(found.error_code for found in answer.topics if found.error_code)
        text = missing_or_denied("topic", ", ".join(missing), code)
        raise CliError(text, hint=hint, code=refusal_exit(code))


@topic.command()
@click.argument("name", shell_complete=topics)
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_session
def delete(session: Session, name: str, yes: bool, dry_run: bool, reason: str) -> None:
    """Delete the topic NAME with all its partitions."""
    confirm(f"Delete topic {name}?", is_sure=yes or dry_run)
    applied = ask(
        session,
        lambda client: client.delete_topic(name, dry_run=dry_run),
        reason=reason,
        topic=name,
    )
    show_applied(session, "TopicDeleted", applied, dry_run=dry_run, name=name)


@topic.command("add-partitions")
@click.argument("name", shell_complete=topics)
@click.option("--total", type=WholeNumber(min=1), required=True, help="Partitions afterwards.")
@click.option("--assignment", metavar="1:2,2:3", help="Brokers of each new partition.")
@write_options
@pass_session
def add_partitions(
    session: Session, name: str, total: int, assignment: str | None, dry_run: bool, reason: str
) -> None:
    """Grow the topic NAME to --total partitions."""
    applied = ask(
        session,
        lambda client: client.create_partitions(
            name, total, assignments=parse_assignment(assignment or ""), dry_run=dry_run
        ),
        reason=reason,
        topic=name,
    )
    show_applied(session, "PartitionsAdded", applied, dry_run=dry_run, name=name, partitions=total)


async def _all_topics(
    client: Client, read: ReadOptions
) -> tuple[list[TopicListing], ListTopicsResponse]:
    answer = await client.list_topics(read=read)
    listings = list(answer.topics)
    while answer.has_more and answer.topics:
        answer = await client.list_topics(after_name=answer.topics[-1].name, read=read)
        listings += answer.topics
    return listings, answer


def parse_assignment(text: str) -> list[list[int]]:
    """``1:2,2:3`` as one list of broker ids per partition; empty text gives none.

    Raises:
        CliError: It is not of that form.
    """
    if not text:
        return []
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError as error:
        raise CliError(f"--assignment {text}: write it like 1:2,2:3", code=Exit.USAGE) from error


def parse_pair(text: str) -> tuple[str, str]:
    """``key=value`` as a pair.

    Raises:
        CliError: It is not of that form.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CliError(f"{text!r}: write it as key=value", code=Exit.USAGE)
    return key, value
