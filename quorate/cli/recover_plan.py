"""``quorate recover plan``: what is left of a quorum that lost the majority of its voters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.cells import as_text
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.directory_lock import locked
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.recovery.errors import RecoveryRefusedError
from quorate.recovery.report import plan_document
from quorum.log.directory_lock import LOCK_NAME
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory

if TYPE_CHECKING:
    from quorate.recovery.plan import RecoveryPlan
    from quorate.recovery.survivor import Survivor

_DATA_CHARACTERS_MAX = 60
_COLUMNS = ("offset", "epoch", "type", "data", "principal", "reason")


@click.command("plan", cls=LocalCommand)
@click.argument("directories", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--limit", type=WholeNumber(min=0), default=20, show_default=True,
              help="Records in the table; -o json has all.")  # fmt: skip
@pass_session
def plan_command(session: Session, directories: tuple[Path, ...], limit: int) -> None:
    """Say what the surviving DIRECTORIES keep, and what going on with them would lose.

    Name every data directory that is left, of voters and of observers, with their nodes stopped.
    Nothing is changed. The table names the records that may or may not have been committed, and
    would be committed by force. Exit code 3 says that a majority of the voters is missing, 0 that
    the voters that are left can elect a leader, 6 that no plan can be made.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.recovery.plan import make_plan
    from quorate.recovery.survivor import read_survivor

    fs = OsFileSystem()
    with held_directories(fs, directories):
        try:
            plan = make_plan([read_survivor(fs, each) for each in directories])
        except RecoveryRefusedError as error:
            raise CliError(str(error), code=Exit.REFUSED) from error
        rows = list(_forced(fs, plan))
    is_table = session.output == "table"
    fields = plan_lines(plan) if is_table else plan_document(plan)
    shown = [_short(each) for each in rows[:limit]] if is_table else rows
    session.show(Result("RecoveryPlan", fields, shown, _COLUMNS))
    if is_table and len(rows) > limit:
        session.announce(f"{len(rows) - limit} more records; --limit shows them")
    if not plan.has_majority:
        raise click.exceptions.Exit(Exit.UNHEALTHY)


@contextmanager
def held_directories(
    fs: OsFileSystem, directories: Sequence[Path], *, changed: Path | None = None
) -> Iterator[None]:
    """Keep the nodes of these directories from starting; without a lock file none has ever run.

    ``changed`` is the one that is written to.

    Raises:
        CliError: One is no data directory, is named twice, or has a running node.
        StorageError: A lock file cannot be made.
    """
    if len({each.resolve() for each in directories}) < len(directories):
        raise CliError("a directory is named twice", code=Exit.USAGE)
    with ExitStack() as held:
        for each in directories:
            if not fs.exists(partition_directory(each)):
                raise CliError(
                    f"{each} is no data directory",
                    hint=f"name a folder that contains {partition_directory(Path()).name}",
                    code=Exit.USAGE,
                )
            if each == changed:
                held.enter_context(locked(each))
            elif fs.exists(each / LOCK_NAME):
                held.enter_context(locked(each, is_shared=True))
        yield


def _forced(fs: OsFileSystem, plan: RecoveryPlan) -> Iterator[Mapping[str, object]]:
    """Yield the records of the chosen log that are not known to be committed."""
    from quorate.adoption.contents import batches_of
    from quorate.cli.dump import FoundBatch, record_line
    from quorum.batch import scan_batches
    from quorum.log.readonly import open_readonly

    log = open_readonly(plan.chosen.data_dir, fs)
    try:
        for data in batches_of(log, plan.kept_end):
            for header in scan_batches(data, verify_crc=False):
                batch = FoundBatch(
                    header, data[header.position : header.end_position], log.directory
                )
                context: Mapping[str, object] = {}
                for record in batch.records():
                    line = record_line(batch, record)
                    # The first record of a batch has the headers of all.
                    headers = line.get("headers")
                    context = headers if isinstance(headers, dict) else context
                    yield _row(header.epoch, line, context)
    finally:
        log.close()


def _row(
    epoch: int, line: Mapping[str, object], context: Mapping[str, object]
) -> dict[str, object]:
    payload = line.get("payload")
    content = payload if isinstance(payload, dict) else {"type": None, "data": line.get("error")}
    return {
        "offset": line["offset"],
        "epoch": epoch,
        "type": content.get("type"),
        "data": content.get("data"),
        "principal": context.get("principal"),
        "reason": context.get("reason"),
    }


def _short(row: Mapping[str, object]) -> dict[str, object]:
    text = as_text(row["data"])
    cut = text if len(text) <= _DATA_CHARACTERS_MAX else text[: _DATA_CHARACTERS_MAX - 1] + "…"
    return {**row, "data": cut}


def plan_lines(plan: RecoveryPlan) -> dict[str, object]:
    """Return the plan in sentences."""
    chosen, kept, end = plan.chosen, plan.kept_end, plan.forced_end
    missing = {each.id for each in plan.missing}
    lines: dict[str, object] = {
        "cluster_id": chosen.cluster_id,
        "voters": ", ".join(
            f"{each.id} {'missing' if each.id in missing else 'here'}" for each in plan.voters
        ),
    }
    for each in plan.survivors:
        lines[str(each.data_dir)] = _survivor_line(plan, each)
    lines["newest log"] = f"{chosen.data_dir}, ends at {end} in epoch {chosen.end.epoch}"
    lines["kept"] = f"everything below {kept} is committed"
    lines["by force"] = (
        f"the {end - kept} records in [{kept}, {end}) may be committed or not"
        if end > kept
        else "nothing"
    )
    for dropped in plan.dropped:
        span = f"[{dropped.start_offset}, {dropped.end_offset})"
        lines[f"dropped of {dropped.survivor.data_dir}"] = f"{span}; none of it was committed"
    lines["unknown"] = (
        "nothing: a majority is left, so start these voters; no recovery is needed"
        if plan.has_majority
        else f"whether the missing voters committed other records from {kept} on; those are lost"
    )
    return lines


def _survivor_line(plan: RecoveryPlan, each: Survivor) -> str:
    is_voter = any(each.key.matches(voter) for voter in plan.voters)
    parts = [
        f"node {each.key.id}, {'voter' if is_voter else 'no voter'}",
        f"ends at {each.end.offset} in epoch {each.end.epoch}",
        f"knows {each.committed_end} as committed",
    ]
    if each.vote_floor is not None:
        parts.append(f"has lost acknowledged records, up to {each.vote_floor.offset} at most")
    if each.disqualified:
        parts.append(f"disqualified: {each.disqualified}")
    parts += [f"not usable: {problem}" for problem in each.checkpoint_problems]
    if each.torn_tail:
        parts.append("a crash cut its last write, which was never acknowledged")
    return "; ".join(parts)
