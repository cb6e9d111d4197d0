"""Shared by the commands that show past states: options, sources and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.errors import AuditError
from quorate.cli.audit_extra import reported_damage
from quorate.cli.exits import CliError, Exit
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.timetravel.moments import NEWEST, Moment, parse_moment, parse_time, time_text
from quorum.log.filesystem import OsFileSystem

if TYPE_CHECKING:
    from quorate.timetravel.positions import PastState


def moment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--at-offset``, ``--at-time`` and ``--uncommitted`` to a command."""
    command = click.option(
        "--uncommitted",
        is_flag=True,
        help="Also admit offsets that are not known to be committed.",
    )(command)
    command = click.option(
        "--at-time",
        metavar="TIME",
        help="As of this time: ISO 8601, UTC unless it names an offset, or ms since 1970.",
    )(command)
    return click.option(
        "--at-offset",
        type=WholeNumber(min=0),
        help="As of this offset: everything visible below it. Default: all that is committed.",
    )(command)


def moment_of(at_offset: int | None, at_time: str | None) -> Moment:
    """Return the position that the options name.

    Raises:
        CliError: Both are given.
        QuorumUsageError: The time cannot be read.
    """
    if at_offset is not None and at_time is not None:
        raise CliError("an offset and a time exclude each other", code=Exit.USAGE)
    if at_time is not None:
        return Moment(time_ms=parse_time(at_time))
    return NEWEST if at_offset is None else Moment(offset=at_offset)


_IN_DIRECTORY = "for an offset or a time name its directory: DIR@OFFSET, or --in DIR"


def split_source(
    text: str, directory: Path | None, *, hint: str = _IN_DIRECTORY
) -> tuple[Path, Moment]:
    """Return the source and the position that an argument names.

    It is a path, ``PATH@OFFSET`` or ``PATH@TIME``; with ``directory`` also an offset or a time.

    Raises:
        CliError: There is no such path.
        QuorumUsageError: The position cannot be read.
        StorageError: A folder on the path cannot be read.
    """
    fs = OsFileSystem()
    if fs.exists(Path(text)):
        return Path(text), NEWEST
    path, found, position = text.rpartition("@")
    if found and fs.exists(Path(path)):
        return Path(path), parse_moment(position)
    if directory is not None:
        return directory, parse_moment(text)
    raise CliError(
        f"{text}: no such file or directory",
        hint=hint,
        code=Exit.USAGE,
    )


def source_and_moment(text: str, at_offset: int | None, at_time: str | None) -> tuple[Path, Moment]:
    """Return the source and the position that an argument and the options name together.

    Raises:
        CliError: There is no such path, or more than one position is named.
        QuorumUsageError: The position cannot be read.
    """
    source, moment = split_source(text, None, hint="name a data directory or a checkpoint")
    chosen = moment_of(at_offset, at_time)
    if NEWEST not in (moment, chosen):
        raise CliError(f"{text} names a position already", code=Exit.USAGE)
    return source, chosen if moment == NEWEST else moment


@contextmanager
def reported_past() -> Iterator[None]:
    """Give a state that cannot be shown the exit code for things not found, and damage its hint.

    Raises:
        CliError: The state cannot be shown, or the log is damaged.
    """
    try:
        with reported_damage():
            yield
    except AuditError as error:
        raise CliError(str(error), code=Exit.NOT_FOUND) from error


def warn_of_problems(session: Session, state: PastState) -> None:
    """Say what of the source could not be used, and why a state is empty."""
    # Loaded here: help needs no state.
    from quorate.timetravel.positions import first_append_time

    for problem in state.plan.problems:
        session.warn(problem)
    if state.offset == 0 < state.plan.end_offset:
        begin = first_append_time(state.plan)
        session.announce(
            "note: that is before the first record of the log"
            + (f", of {time_text(begin)}" if begin is not None else "")
        )


def provenance_fields(state: PastState) -> dict[str, object]:
    """Return where a state comes from, as fields of a document."""
    from statemachine.dump import state_digest

    image = state.image
    return {
        "source": state.plan.source,
        "cluster_id": state.plan.cluster_id or None,
        "as_of_offset": image.provenance.end_offset,
        "epoch": image.provenance.epoch,
        "append_time": time_text(image.provenance.timestamp_ms),
        "committed_offset": state.plan.committed_offset,
        "state_digest": state_digest(image).hex(),
    }
