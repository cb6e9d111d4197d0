"""``quorate broker cordon``, ``uncordon`` and ``assign``: log directories of brokers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import brokers
from quorate.cli.connection import ask, refusal_exit, result_name, show_applied, write_options
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.client.results.commands import AssignReplicasToDirsResult, CordonLogDirsResult
from quorum.types import uuid_from_text, uuid_to_text
from quorum.v1 import commands_pb2 as wire

if TYPE_CHECKING:
    from quorate.client import Applied, Client

_PARTITION = re.compile(r"(.+):([0-9]{1,9})")
_BROKER_ID = click.argument("broker_id", type=WholeNumber(min=0), shell_complete=brokers)


@click.command(cls=SessionCommand)
@_BROKER_ID
@click.argument("directories", nargs=-1, metavar="[DIRECTORY_ID]...")
@write_options
@pass_session
def cordon(
    session: Session, broker_id: int, directories: tuple[str, ...], dry_run: bool, reason: str
) -> None:
    """Let log directories of BROKER_ID take no new replicas; all of them if none is named.

    Replicas in them stay and work on. A broker whose directories are all cordoned gets no new
    replicas. A cordon outlives a restart of the broker. `broker describe` shows the ids.
    """
    _cordon(session, broker_id, directories, uncordon=False, dry_run=dry_run, reason=reason)


@click.command(cls=SessionCommand)
@_BROKER_ID
@click.argument("directories", nargs=-1, metavar="[DIRECTORY_ID]...")
@write_options
@pass_session
def uncordon(
    session: Session, broker_id: int, directories: tuple[str, ...], dry_run: bool, reason: str
) -> None:
    """Let log directories of BROKER_ID take new replicas again; all of them if none is named."""
    _cordon(session, broker_id, directories, uncordon=True, dry_run=dry_run, reason=reason)


def _cordon(
    session: Session,
    broker_id: int,
    directories: Sequence[str],
    *,
    uncordon: bool,
    dry_run: bool,
    reason: str,
) -> None:
    ids = [_directory(text) for text in directories]
    applied = ask(
        session,
        lambda client: client.cordon_log_dirs(broker_id, ids, uncordon=uncordon, dry_run=dry_run),
        reason=reason,
    )
    cordoned = applied.yielded(CordonLogDirsResult).cordoned_log_dirs
    show_applied(
        session,
        "LogDirectoriesCordoned",
        applied,
        dry_run=dry_run,
        broker_id=broker_id,
        cordoned_log_dirs=[uuid_to_text(each) for each in cordoned],
    )


@click.command(cls=SessionCommand)
@_BROKER_ID
@click.argument("directory")
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC:PARTITION...")
@click.option(
    "--broker-epoch",
    type=WholeNumber(min=0),
    help="The registration; by default the present one.",
)
@write_options
@pass_session
def assign(
    session: Session,
    broker_id: int,
    directory: str,
    partitions: tuple[str, ...],
    broker_epoch: int | None,
    dry_run: bool,
    reason: str,
) -> None:
    """Record that replicas of BROKER_ID are in its log directory DIRECTORY.

    A broker's agent does that by itself. It moves no data. A replica in a directory that is not
    online leaves the in-sync set. If one is refused, the others are recorded all the same, and
    the exit code is that of the first refusal.
    """
    wanted = [_partition(text) for text in partitions]
    directory_id = _directory(directory)

    async def work(client: Client) -> tuple[Applied, dict[bytes, str]]:
        epoch = broker_epoch
        if epoch is None:
            brokers = (await client.describe_cluster()).brokers
            epochs = [each.broker_epoch for each in brokers if each.broker_id == broker_id]
            if not epochs:
                raise CliError(f"broker {broker_id} is not registered", code=Exit.NOT_FOUND)
            epoch = epochs[0]
        names = list(dict.fromkeys(name for name, _ in wanted))
        found = (await client.describe_topics(names)).topics
        missing = [each.name for each in found if each.error_code]
        if missing:
            raise CliError(f"no such topic: {', '.join(missing)}", code=Exit.NOT_FOUND)
        topics = [
            wire.PartitionNumbers(
                topic_id=each.topic_id, partitions=[n for name, n in wanted if name == each.name]
            )
            for each in found
        ]
        request = wire.AssignReplicasToDirs(
            broker_id=broker_id,
            broker_epoch=epoch,
            directories=[wire.DirectoryAssignment(directory_id=directory_id, topics=topics)],
            dry_run=dry_run,
        )
        applied = await client.assign_replicas_to_dirs(request)
        return applied, {each.topic_id: each.name for each in found}

    applied, names = ask(session, work, reason=reason)
    answers = [
        (names[topic.topic_id], each)
        for assigned in applied.yielded(AssignReplicasToDirsResult).directories
        for topic in assigned.topics
        for each in topic.partitions
    ]
    rows = [
        {
            "topic": name,
            "partition": each.partition,
            "result": result_name(each.error_code),
        }
        for name, each in answers
    ]
    fields = {"dry_run": dry_run, "end_offset": applied.offset, "epoch": applied.epoch}
    columns = ("topic", "partition", "result")
    session.show(Result("ReplicasAssigned", fields, rows=rows, columns=columns))
    refused = [each for _, each in answers if each.error_code]
    if refused:
        raise CliError(
            f"{len(refused)} of {len(answers)} replicas were refused",
            code=refusal_exit(refused[0].error_code),
        )


def _directory(text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError as error:
        raise CliError(
            f"{text!r} is no directory id: {error}",
            hint="`quorate broker describe` shows the ids of a broker's directories",
            code=Exit.USAGE,
        ) from error


def _partition(text: str) -> tuple[str, int]:
    found = _PARTITION.fullmatch(text)
    if found is None:
        raise CliError(f"{text!r}: write it as topic:partition", code=Exit.USAGE)
    return found[1], int(found[2])
