"""``quorate state``: the metadata as of a past offset or time, from files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.past import (
    moment_options,
    provenance_fields,
    reported_past,
    source_and_moment,
    warn_of_problems,
)
from quorate.cli.session import Session
from quorate.timetravel.kinds import KINDS

if TYPE_CHECKING:
    from quorate.timetravel.entities import Entity


@click.command("state", cls=LocalCommand)
@click.argument("source")
@moment_options
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these kinds.")
@click.option("--name", help="Only entities of this name, such as orders-0.")
@click.option("--count", "only_count", is_flag=True, help="Show how many of each kind there are.")
@pass_session
def state(
    session: Session,
    source: str,
    at_offset: int | None,
    at_time: str | None,
    uncommitted: bool,
    kinds: tuple[str, ...],
    name: str | None,
    only_count: bool,
) -> None:
    """Show the whole metadata in SOURCE as of an offset or a time. Needs no running node.

    SOURCE is a data directory, ours or a Kafka controller's, a copy of one, or a checkpoint; or
    DIR@OFFSET or DIR@TIME, as for `quorate diff`. Its node may be running: what is committed when
    the command starts is read, and nothing is written.
    The state is replayed from the nearest checkpoint. as_of_offset says where it ends. Exit code 4
    says that the log no longer reaches back so far, and which is the oldest state.
    """
    # Loaded here: help needs no state.
    from quorate.timetravel.entities import entities
    from quorate.timetravel.positions import state_at

    path, moment = source_and_moment(source, at_offset, at_time)
    with reported_past():
        found = state_at(path, moment, with_uncommitted=uncommitted)
    warn_of_problems(session, found)
    shown = [
        each
        for each in entities(found.image)
        if (not kinds or each.kind in kinds) and (name is None or each.name == name)
    ]
    if name is not None and not shown:
        raise CliError(
            f"there is no {' or '.join(kinds) or 'entity'} named {name!r} in this state",
            hint="leave --name out to see all",
            code=Exit.NOT_FOUND,
        )
    fields = provenance_fields(found)
    if only_count:
        counts = Counter(each.kind for each in shown)
        tally = [{"kind": kind, "entities": counts[kind]} for kind in KINDS if counts[kind]]
        session.show(Result("StateCounts", fields, tally, ("kind", "entities")))
        return
    session.show(
        Result("State", fields, [_row(each) for each in shown], ("kind", "name", "fields"))
    )


def _row(entity: Entity) -> dict[str, object]:
    return {"kind": entity.kind, "name": entity.name, "fields": entity.fields()}
