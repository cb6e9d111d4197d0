"""``quorate import``: the metadata of a Kafka cluster, loaded into an empty one of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import ask, reason_options
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.importer.errors import ImportDiffersError, ImportRefusedError, SourceDamagedError

if TYPE_CHECKING:
    from quorate.client import Client
    from quorate.importer.run import ImportReport
    from quorate.importer.source import Source


@click.command("import", cls=SessionCommand)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--source-cluster-id", default="", help="Where DIRECTORY has no meta.properties.")
@click.option(
    "--uncommitted",
    is_flag=True,
    help="Also what DIRECTORY does not show to be committed (one of several controllers).",
)
@reason_options
@pass_session
def import_command(
    session: Session,
    directory: Path,
    source_cluster_id: str,
    uncommitted: bool,
    dry_run: bool,
    reason: str,
) -> None:
    """Load the metadata in DIRECTORY, a Kafka controller's, into an empty cluster.

    The whole source is proven first. Run it again to continue where it stopped; nothing else can
    write until it is done. In the end the cluster's state digest is compared with that of a
    replay of DIRECTORY; exit code 3 if they differ.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.importer.source import open_source

    try:
        with session.progress("reading the source", None):
            source = open_source(
                directory, cluster_id=source_cluster_id, with_uncommitted=uncommitted
            )
        report = ask(session, _work(session, source, dry_run=dry_run), reason=reason,
                     is_bounded=False)  # fmt: skip
    except ImportRefusedError as error:
        raise CliError(str(error), code=Exit.REFUSED) from error
    except SourceDamagedError as error:
        raise CliError(
            str(error), hint="nothing was written; copy from an intact replica", code=Exit.DAMAGED
        ) from error
    except ImportDiffersError as error:
        raise CliError(
            str(error),
            hint="unless it was changed after an import that was complete, format the cluster anew",
            code=Exit.UNHEALTHY,
        ) from error
    session.show(Result("Import", _fields(source, report, dry_run=dry_run)))


def _work(
    session: Session, source: Source, *, dry_run: bool
) -> Callable[[Client], Awaitable[ImportReport]]:
    async def work(client: Client) -> ImportReport:
        # Loaded here, with the client that it needs.
        from quorate.importer.run import Import

        end_offset = source.end_offset
        # Every offset is replayed once and copied once; a terminal shows one bar at a time.
        with session.progress("importing", 2 * end_offset) as bar:
            seen = 0

            def on_offset(offset: int) -> None:
                nonlocal seen
                bar.advance(offset - seen)
                seen = offset

            job = Import(
                client,
                source,
                stall_seconds=session.timeout_s,
                on_offset=on_offset,
                on_step=bar.advance,
            )
            return await job.run(dry_run=dry_run)

    return work


def _fields(source: Source, report: ImportReport, *, dry_run: bool) -> dict[str, object]:
    from statemachine.import_state import NO_CHECKPOINT

    is_equal = report.found_digest == report.expected_digest
    return {
        "source": str(source.directory),
        "source_cluster_id": report.source_cluster_id,
        "checkpoint": (
            None if report.checkpoint_offset == NO_CHECKPOINT else report.checkpoint_offset
        ),
        "copied_from": report.start.text(),
        "source_end_offset": report.end.offset,
        "was_finished": report.was_finished,
        "dry_run": dry_run,
        "batches": report.batches,
        "records": report.records,
        "dropped_records": report.dropped_records,
        "source_digest": report.expected_digest.hex(),
        "cluster_digest": report.found_digest.hex() or None,
        "equal": None if dry_run else is_equal,
    }
