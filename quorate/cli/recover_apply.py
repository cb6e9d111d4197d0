"""``quorate recover apply`` and ``report``: go on with what is left, and what was decided."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

import quorate
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.incarnations import (
    CONSENT_HELP,
    announce_next_steps,
    begun_fields,
    draw_incarnation_id,
    endpoints_of,
    operator,
    require_consent,
)
from quorate.cli.output import Result
from quorate.cli.recover_plan import held_directories
from quorate.cli.session import Session
from quorate.recovery.errors import RecoveryRefusedError
from quorate.recovery.report import incarnation_document, recovery_report
from quorate.timetravel.moments import time_text
from quorum.control_records import LeaderChange, Voters
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import segment_bases
from quorum.runtime.clock import SystemClock

if TYPE_CHECKING:
    from quorate.recovery.plan import RecoveryPlan
    from quorate.recovery.survivor import Survivor


@click.command("apply", cls=LocalCommand)
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("others", nargs=-1, type=click.Path(path_type=Path))
@click.option("--cluster-id", "typed", metavar="ID", help=CONSENT_HELP)
@click.option(
    "--endpoint",
    metavar="HOST:PORT",
    help="Where peers reach the node. Default: as in the voters record of its log.",
)
@click.option("--reason", default="", help="Why, for the report in the log.")
@pass_session
def apply_command(
    session: Session,
    directory: Path,
    others: tuple[Path, ...],
    typed: str | None,
    endpoint: str | None,
    reason: str,
) -> None:
    """Go on with DIRECTORY alone, after the majority of the voters was lost for ever.

    Name all OTHERS that survived, as for `recover plan`, with their nodes stopped. DIRECTORY
    becomes the only voter of a new incarnation of the log. All former voters are removed, and the
    report becomes part of the log. Other directories are not changed: they cannot be used any more.

    Committed records may be lost: see `recover plan` first. The command needs the cluster id as
    consent. Exit code 6 says that it was refused: a majority is left, or another directory has a
    newer log. If it is interrupted, repeat it.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.recovery.incarnation import Beginning, begin
    from quorate.recovery.survivor import read_survivor
    from quorate.replica.log_incarnation import is_unfinished
    from quorum.log.identity import load_identity

    fs = OsFileSystem()
    directories = (directory, *others)
    with held_directories(fs, directories, changed=directory):
        identity = load_identity(fs, directory)
        endpoints = endpoints_of(endpoint)
        try:
            own = read_survivor(fs, directory)
            beginning = Beginning(draw_incarnation_id(), own.committed_end, own.newest_epoch)
            text = f"{directory}: a recovery was interrupted, and goes on."
            if not is_unfinished(own.named_incarnation_id, own.incarnation):
                plan = _plan_for(own, [read_survivor(fs, each) for each in others])
                text = _question(plan)
                beginning = Beginning(
                    beginning.incarnation_id,
                    plan.kept_end,
                    max(each.newest_epoch for each in plan.survivors),
                    endpoints,
                    recovery_report(
                        plan,
                        reason=reason,
                        by=operator(),
                        at_ms=time.time_ns() // 1_000_000,
                        tool_version=quorate.__version__,
                    ),
                )
            require_consent(text, identity.cluster_id, typed)
            begun = begin(fs, directory, identity, beginning, SystemClock())
        except RecoveryRefusedError as error:
            raise CliError(str(error), code=Exit.REFUSED) from error
    fields = {"directory": str(directory), "cluster_id": identity.cluster_id}
    session.show(Result("Recovery", {**fields, **begun_fields(begun)}))
    announce_next_steps(session, identity.cluster_id, begun)


def _plan_for(own: Survivor, others: list[Survivor]) -> RecoveryPlan:
    """Return the plan in which ``own`` goes on.

    Raises:
        RecoveryRefusedError: Nothing has to be recovered, or another one has to go on.
    """
    from quorate.recovery.plan import make_plan

    # Of equal logs, the first one is chosen.
    plan = make_plan([own, *others])
    if plan.has_majority:
        raise RecoveryRefusedError(
            "a majority of the voters is here, so nothing has to be given up: start these nodes"
        )
    if plan.chosen is not own:
        raise RecoveryRefusedError(
            f"{plan.chosen.data_dir} has the newest log that may go on (it ends at "
            f"{plan.chosen.end}; {own.data_dir} at {own.end}): name it first"
        )
    return plan


def _question(plan: RecoveryPlan) -> str:
    kept, end = plan.kept_end, plan.forced_end
    missing = ", ".join(str(each.id) for each in plan.missing)
    forced = f"the {end - kept} records in [{kept}, {end}) become committed, " if end > kept else ""
    return (
        f"Going on with {plan.chosen.data_dir} alone: {forced}whatever else was committed from "
        f"{kept} on is lost, and the voters "
        f"{missing} never come back with their directories."
    )


@click.command("report", cls=LocalCommand)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@pass_session
def report_command(session: Session, directory: Path) -> None:
    """Show each incarnation that began in the log of DIRECTORY, and why. Its node may be running.

    -o json has the whole reports.
    """
    from quorate.verification.log_files import partition_of

    if not segment_bases(OsFileSystem().list_directory(partition_of(directory))):
        raise CliError(
            f"{directory}: no log segments", hint="name a data directory", code=Exit.NOT_FOUND
        )
    rows = list(_incarnations(directory))
    columns = ("offset", "epoch", "number", "id", "kept_end_offset", "operation", "time", "reason")
    session.show(Result("IncarnationReports", {"directory": str(directory)}, rows, columns))
    if not rows:
        session.announce("note: no recovery and no restore began in the log that is left")


def _incarnations(directory: Path) -> Iterator[dict[str, object]]:
    from quorate.adoption.contents import batches_of
    from quorum.batch import iterate_records, scan_batches
    from quorum.control import decode_control
    from quorum.log.readonly import open_readonly

    log = open_readonly(directory)
    current = FIRST_INCARNATION
    try:
        for data in batches_of(log, log.start.offset):
            for header in scan_batches(data, verify_crc=False):
                records = iterate_records(data, header) if header.is_control else ()
                found = [(record.offset, decode_control(record)) for record in records]
                for offset, control in found:
                    if isinstance(control, Voters) and control.incarnation != current:
                        current = control.incarnation
                        yield _row(offset, header.epoch, current, _report(found))
    finally:
        log.close()


def _report(batch: Iterable[tuple[int, object]]) -> object:
    """Return the report in the batch that begins an incarnation; None if there is none."""
    from statemachine.payload import control_payload

    for _, control in batch:
        if isinstance(control, LeaderChange):
            return control_payload(control).get("incarnationReport")
    return None


def _row(offset: int, epoch: int, incarnation: LogIncarnation, report: object) -> dict[str, object]:
    known = report if isinstance(report, dict) else {}
    at_ms = known.get("at_ms")
    return {
        "offset": offset,
        "epoch": epoch,
        **(incarnation_document(incarnation) or {}),
        "operation": known.get("operation"),
        "time": time_text(at_ms) if isinstance(at_ms, int) else None,
        "reason": known.get("reason"),
        "report": report,
    }
