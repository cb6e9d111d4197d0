"""``quorate adopt`` and ``quorate release``: a data directory changes hands, in place."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.adoption.errors import AdoptionRefusedError
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.directory_lock import locked
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorum.log.directory_lock import LOCK_NAME
from quorum.log.filesystem import OsFileSystem
from quorum.types import draw_directory_id, uuid_to_text

if TYPE_CHECKING:
    from quorate.adoption.contents import Contents
    from quorum.log.identity import MetaProperties

_DIRECTORY = click.argument(
    "data_dir", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would be changed.")
_COLUMNS = ("file", "change")
_HINT = "nothing was changed; what a crash has torn, its own program mends by one start and stop"


@click.command("adopt", cls=LocalCommand)
@_DIRECTORY
@_DRY_RUN
@pass_session
def adopt_command(session: Session, data_dir: Path, dry_run: bool) -> None:
    """Make DIR, the metadata directory of a stopped Kafka controller, one of ours.

    Everything in it is read and proven first. Records and checkpoints stay as they are; files
    beside them are written, those that make the directory ours last. Run it again after an
    interruption.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.adoption.adopt import adopt, plan_adoption

    fs = OsFileSystem()
    with _alone(data_dir, dry_run=dry_run):
        try:
            plan = plan_adoption(fs, data_dir, draw_directory_id(os.urandom))
        except AdoptionRefusedError as error:
            raise CliError(str(error), hint=_HINT, code=Exit.REFUSED) from error
        if not dry_run:
            adopt(fs, plan)
    contents = plan.contents
    fields = {
        **_identity_fields(data_dir, plan.identity),
        "epoch": plan.election.epoch,
        "log_start_offset": contents.start.offset,
        "log_end_offset": contents.end.offset,
        "kraft_version": contents.kraft_version,
        "voters": [_voter_text(contents, voter_id) for voter_id in contents.voter_ids],
        "dry_run": dry_run,
    }
    _show(session, "Adoption", fields, plan.changes())
    if plan.is_done:
        session.announce("is one of ours already; nothing changed")
    elif not contents.voters:
        session.announce(
            "the log holds no voters record: name all voters, with ids "
            f"{', '.join(map(str, contents.voter_ids)) or 'of the old configuration'}, as "
            "bootstrap.voters"
        )
    if not plan.is_done:
        session.announce("start it with cluster.record_codec=kafka, which its records are in")


@click.command("release", cls=LocalCommand)
@_DIRECTORY
@_DRY_RUN
@pass_session
def release_command(session: Session, data_dir: Path, dry_run: bool) -> None:
    """Make DIR, the data directory of a stopped node, one of a Kafka controller's.

    It must hold nothing but Kafka's records (cluster.record_codec=kafka since it was formatted or
    adopted). Run it again after an interruption.
    """
    from quorate.adoption.release import plan_release, release

    fs = OsFileSystem()
    with _alone(data_dir, dry_run=dry_run):
        try:
            plan = plan_release(fs, data_dir)
        except AdoptionRefusedError as error:
            raise CliError(str(error), hint=_HINT, code=Exit.REFUSED) from error
        if not dry_run:
            release(fs, plan)
    fields = {
        **_identity_fields(data_dir, plan.identity),
        "epoch": plan.election.epoch,
        "log_end_offset": plan.end.offset,
        "dry_run": dry_run,
    }
    _show(session, "Release", fields, plan.changes())
    if plan.is_done:
        session.announce("is Kafka's already; nothing changed")


def _alone(data_dir: Path, *, dry_run: bool) -> AbstractContextManager[object]:
    """The directory's lock, which neither program runs without; a dry run makes no lock file."""
    if dry_run and not (data_dir / LOCK_NAME).exists():
        return nullcontext()
    return locked(data_dir, hint="stop the program that uses it first")


def _identity_fields(data_dir: Path, identity: MetaProperties) -> dict[str, object]:
    return {
        "data_dir": str(data_dir),
        "cluster_id": identity.cluster_id,
        "node_id": identity.node_id,
        "directory_id": uuid_to_text(identity.directory_id),
    }


def _voter_text(contents: Contents, voter_id: int) -> str:
    for voter in contents.voters:
        if voter.key.id == voter_id:
            places = [f"{each.name}={each.host}:{each.port}" for each in voter.endpoints]
            return f"{voter_id} {uuid_to_text(voter.key.directory_id)} {' '.join(places)}"
    return str(voter_id)


def _show(
    session: Session, kind: str, fields: dict[str, object], changes: list[tuple[str, str]]
) -> None:
    rows = [{"file": file, "change": change} for file, change in changes]
    session.show(Result(kind, fields, rows=rows, columns=_COLUMNS))
