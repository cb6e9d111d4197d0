"""``quorate diff``: what differs between two states, who changed it, and why."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.cells import named_text
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import Exit
from quorate.cli.output import Result
from quorate.cli.past import provenance_fields, reported_past, split_source, warn_of_problems
from quorate.cli.session import Session
from quorate.timetravel.kinds import KINDS

if TYPE_CHECKING:
    from quorate.timetravel.attribution import Author
    from quorate.timetravel.difference import Difference
    from quorate.timetravel.positions import PastState

_COLUMNS = ("change", "kind", "name", "what", "offset", "time", "principal", "reason")


@click.command("diff", cls=LocalCommand)
@click.argument("before")
@click.argument("after")
@click.option(
    "--in",
    "directory",
    type=click.Path(exists=True, path_type=Path),
    help="Directory that offsets and times without a path refer to.",
)
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these kinds.")
@click.option(
    "--uncommitted", is_flag=True, help="Also admit offsets that are not known to be committed."
)
@pass_session
def diff(
    session: Session,
    before: str,
    after: str,
    directory: Path | None,
    kinds: tuple[str, ...],
    uncommitted: bool,
) -> None:
    """Show what was added, changed and removed from state BEFORE to state AFTER, by whom and why.

    Each of the two is a directory, a checkpoint, DIR@OFFSET or DIR@TIME; with --in also an offset
    or a time. Who and why come from the record headers between the two offsets, if one of the
    sources has that part of the log. A row names the last change, -o json all of them. same_history
    says whether both sources have the same log below the lower offset; null if that is not known.
    Exit code 3 says that something differs.
    """
    # Loaded here: help needs no state.
    from quorate.timetravel.difference import Change, differences
    from quorate.timetravel.histories import authors_between, relation
    from quorate.timetravel.positions import state_at, state_of

    first_source, first_moment = split_source(before, directory)
    second_source, second_moment = split_source(after, directory)
    with reported_past():
        first = state_at(first_source, first_moment, with_uncommitted=uncommitted)
        if second_source == first_source:
            # Of a running node both states are then of one moment of its log.
            second = state_of(first.plan, second_moment)
        else:
            second = state_at(second_source, second_moment, with_uncommitted=uncommitted)
        for each in (first, second) if first.plan != second.plan else (first,):
            warn_of_problems(session, each)
        found = [
            each
            for each in differences(first.image, second.image)
            if not kinds or each.entity.kind in kinds
        ]
        same_history = relation(first, second)
        known = authors_between(first, second, same_history=same_history) if found else {}
    if found and known is None:
        session.warn(f"{_why_unknown(first, second, same_history)}: who and why are not known")
    counts = Counter(each.change for each in found)
    is_table = session.output == "table"
    fields: dict[str, object] = {
        "before": _place(first) if is_table else provenance_fields(first),
        "after": _place(second) if is_table else provenance_fields(second),
        "same_history": same_history,
        **{change.value: counts[change] for change in Change},
    }
    known = known or {}
    to_row = _line if is_table else _row
    rows = [to_row(each, known.get(each.entity.key, [])) for each in found]
    session.show(Result("StateDifference", fields, rows, _COLUMNS))
    if found:
        raise click.exceptions.Exit(Exit.UNHEALTHY)


def _why_unknown(first: PastState, second: PastState, same_history: bool | None) -> str:
    ids = (first.plan.cluster_id, second.plan.cluster_id)
    if all(ids) and ids[0] != ids[1]:
        return f"the sources are of different clusters, {ids[0]} and {ids[1]}"
    if same_history is None:
        return "it is not known whether both sources have one history"
    if not same_history:
        return "the sources have different histories"
    return "neither source has the log between the two states"


def _place(state: PastState) -> str:
    provenance = state.image.provenance
    return f"{state.plan.source} as of offset {provenance.end_offset}"


def _line(difference: Difference, authors: list[Author]) -> dict[str, object]:
    """Return a row for people: of a changed entity what changed, with the last author."""
    from quorate.timetravel.difference import Change

    what = ""
    if difference.change is Change.CHANGED:
        what = "; ".join(
            f"{name}: {named_text(name, values['before'])} -> {named_text(name, values['after'])}"
            for name, values in difference.fields().items()
        )
    return {**_row(difference, authors), "what": what}


def _row(difference: Difference, authors: list[Author]) -> dict[str, object]:
    return {
        "change": difference.change.value,
        "kind": difference.entity.kind,
        "name": difference.entity.name,
        "fields": difference.fields(),
        **(authors[-1] if authors else {}),
        "changes": authors,
    }
