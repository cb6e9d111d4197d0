"""``quorate backup restore``: a cluster that begins with a backup."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

import quorate
from quorate.backup.manifest import Manifest, newest_manifest
from quorate.backup.storage import storage_of
from quorate.cli.backup_errors import reported_backup
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
from quorate.cli.past import moment_of
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.recovery.report import incarnation_document
from quorum.log.filesystem import OsFileSystem
from quorum.runtime.clock import SystemClock

if TYPE_CHECKING:
    from quorate.backup.unpack import Unpacked


@click.command("restore", cls=LocalCommand)
@click.argument("target")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--node-id", type=WholeNumber(min=0), required=True, help="The voter's node.id.")
@click.option(
    "--endpoint", metavar="HOST:PORT", required=True, help="Where peers reach this voter."
)
@click.option("--at-offset", type=WholeNumber(min=0), help="Leave out this offset and later.")
@click.option("--at-time", metavar="TIME", help="Leave out what was appended after this time.")
@click.option("--cluster-id", "typed", metavar="ID", help=CONSENT_HELP)
@click.option("--reason", default="", help="Why, for the report in the log.")
@pass_session
def restore_command(
    session: Session,
    target: str,
    directory: Path,
    node_id: int,
    endpoint: str,
    at_offset: int | None,
    at_time: str | None,
    typed: str | None,
    reason: str,
) -> None:
    """Make DIRECTORY, which must be empty, the only voter of a cluster with the backup in TARGET.

    The cluster keeps its id. Its log becomes a new incarnation, so former voters and observers, and
    clients with positions above the end, are refused or told. The default is all of the newest
    backup. Use it if no directory is left that `recover apply` could go on with, or to undo what
    was done after an offset or time. An interrupted run leaves an incomplete DIRECTORY, which a
    server refuses: remove it, and run it again.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.backup.restore import Restoration, restore
    from quorate.backup.unpack import checked_end, end_at_time

    moment = moment_of(at_offset, at_time)
    endpoints = endpoints_of(endpoint)
    fs = OsFileSystem()
    if fs.list_directory(directory):
        raise CliError(f"{directory} is not empty", hint="name a new directory", code=Exit.CONFLICT)
    with reported_backup(target):
        storage = storage_of(target)
        manifest, notes = newest_manifest(storage)
        for note in notes:
            session.warn(note)
        end = moment.offset
        if moment.time_ms is not None:
            end = end_at_time(storage, manifest, moment.time_ms)
        wanted = checked_end(manifest, end)
        require_consent(
            f"Restoring to offset {wanted}: what cluster {manifest.cluster_id} committed from there"
            " on is given up, and no present directory of it can be used any more.",
            manifest.cluster_id,
            typed,
        )
        fs.make_directory(directory)
        with session.progress("restoring", wanted) as bar:
            found, begun = restore(
                storage,
                manifest,
                fs,
                directory,
                Restoration(node_id, draw_incarnation_id(), endpoints, draw_incarnation_id(), end),
                lambda unpacked: _report(target, manifest, unpacked, reason),
                SystemClock(),
                progress=bar.reach,
            )
    fields = {
        "target": target,
        "directory": str(directory),
        "cluster_id": manifest.cluster_id,
        "node_id": node_id,
        "restored_to": found.end.offset,
        "log_digest": found.log_digest.hex() or None,
    }
    session.show(Result("BackupRestore", {**fields, **begun_fields(begun)}))
    announce_next_steps(session, manifest.cluster_id, begun)


def _report(target: str, manifest: Manifest, found: Unpacked, reason: str) -> Mapping[str, object]:
    """Return what the log keeps of a restore."""
    return {
        "operation": "restore",
        "at_ms": time.time_ns() // 1_000_000,
        "by": operator(),
        "reason": reason,
        "tool_version": quorate.__version__,
        "cluster_id": manifest.cluster_id,
        "target": target,
        "backup_sequence": manifest.sequence,
        "backup_created_ms": manifest.created_ms,
        "backup_end": manifest.end.offset,
        "restored_to": found.end.offset,
        "restored_epoch": found.end.epoch,
        "log_digest": found.log_digest.hex(),
        "log_incarnation": incarnation_document(found.incarnation),
    }
