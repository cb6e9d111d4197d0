"""``quorate backup``: copies of a cluster's metadata that can be verified and restored."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

import quorate
from quorate.backup.errors import TargetUnreachableError
from quorate.backup.manifest import Manifest, StoredCheckpoint, StoredChunk, newest_manifest
from quorate.backup.storage import Storage, storage_of
from quorate.backup.target import check_target
from quorate.cli.backup_errors import DAMAGED_HINT, reported_backup
from quorate.cli.backup_restore import restore_command
from quorate.cli.command import LocalCommand, NounGroup, pass_session
from quorate.cli.connection import ask
from quorate.cli.directory_lock import taken
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.past import moment_of
from quorate.cli.ranges import Seconds, WholeNumber
from quorate.cli.session import Session
from quorate.cli.tls_files import credentials_of
from quorate.timetravel.moments import time_text
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory

if TYPE_CHECKING:
    import grpc

    from quorate.backup.source import Source

_TARGET = click.argument("target")
_COLUMNS = ("file", "start_offset", "end_offset", "epoch", "bytes")


@click.group(cls=NounGroup)
def backup() -> None:
    """Create, verify, drill and read backups of a cluster's metadata.

    TARGET is a directory or a URL that fsspec knows, such as s3://bucket/quorate. A backup holds
    everything that a voter holds, credentials too: keep it as safe as the voters' disks.
    """


@backup.command("create")
@_TARGET
@click.option(
    "--from",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read this data directory instead of the cluster of --bootstrap.",
)
@click.option(
    "--follow",
    "every_s",
    type=Seconds(min=0, min_open=True),
    help="Go on until interrupted, and add what is new every SECONDS.",
)
@pass_session
def create(session: Session, target: str, directory: Path | None, every_s: float | None) -> None:
    """Copy what is committed into TARGET; a later run adds only what is new.

    The source is the running cluster of --bootstrap, or with --from a data directory, ours or a
    Kafka controller's, whose node may be running. An interrupted run leaves the former backup as
    it was. Exit code 6 says that TARGET holds a backup of another cluster or history, or files of
    somebody else, or that another run uses it; 5 that the source no longer has the records that
    follow the backup.
    """
    with reported_backup(target):
        storage = storage_of(target)
        check_target(storage)
        with taken(storage.lock, "another backup runs into this target"):
            if every_s is not None:
                _follow(session, storage, directory, every_s)
            manifest, added = _run(session, storage, directory)
    session.show(Result("Backup", {"target": target, **_fields(manifest), "bytes_added": added}))


def _follow(session: Session, storage: Storage, directory: Path | None, every_s: float) -> NoReturn:
    """Repeat the run until interrupted; a cluster or store that is out of reach is waited for."""
    while True:
        try:
            manifest, added = _run(session, storage, directory)
        except CliError as error:
            if error.code is not Exit.UNREACHABLE:
                raise
            session.warn(f"{error}; trying again in {every_s:g} s")
        except TargetUnreachableError as error:
            session.warn(f"{error}; trying again in {every_s:g} s")
        else:
            session.announce(f"up to offset {manifest.end.offset}, {added} bytes added")
        time.sleep(every_s)


def _run(session: Session, storage: Storage, directory: Path | None) -> tuple[Manifest, int]:
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.backup.create import create as create_backup
    from quorate.backup.source import DirectorySource

    async def work(source: Source) -> tuple[Manifest, int]:
        with session.progress("copying", None):
            return await create_backup(
                source,
                storage,
                tool_version=quorate.__version__,
                created_ms=time.time_ns() // 1_000_000,
            )

    if directory is not None:
        source = DirectorySource(directory)
        done = asyncio.run(work(source))
        for problem in source.problems:
            session.warn(problem)
        return done
    from quorate.backup.node_source import NodeSource

    credentials = credentials_of(session)

    def connect(address: str) -> grpc.aio.Channel:
        # Loaded here: other subcommands reach no cluster.
        import grpc

        if credentials is None:
            return grpc.aio.insecure_channel(address)
        return grpc.aio.secure_channel(address, credentials)

    return ask(
        session,
        lambda client: work(NodeSource(client, connect, timeout_seconds=session.timeout_s)),
        is_bounded=False,
    )


@backup.command("show", cls=LocalCommand)
@_TARGET
@pass_session
def show(session: Session, target: str) -> None:
    """Show the newest complete backup in TARGET and its files; reads the manifest only."""
    with reported_backup(target):
        manifest, notes = newest_manifest(storage_of(target))
    for note in notes:
        session.warn(note)
    stored: list[StoredCheckpoint | StoredChunk] = [*manifest.chunks]
    if manifest.checkpoint is not None:
        stored.insert(0, manifest.checkpoint)
    rows = [
        {
            "file": each.name,
            "start_offset": each.start_offset if isinstance(each, StoredChunk) else 0,
            "end_offset": each.end_offset,
            "epoch": each.epoch,
            "bytes": each.size_bytes,
            "sha256": each.sha256,
        }
        for each in stored
    ]
    session.show(Result("BackupContent", {"target": target, **_fields(manifest)}, rows, _COLUMNS))


@backup.command("verify", cls=LocalCommand)
@_TARGET
@pass_session
def verify(session: Session, target: str) -> None:
    """Read every file of the newest backup in TARGET, and compare all digests.

    SHA-256 of every file, the checksum of every batch, offsets, epochs and the log digest. Ends
    with exit code 8 if the backup is damaged.
    """
    from quorate.backup.check import verify as verify_backup

    with reported_backup(target):
        storage = storage_of(target)
        total = newest_manifest(storage)[0].size_bytes
        began = time.perf_counter()
        with session.progress("verifying", total) as bar:
            found = verify_backup(storage, progress=bar.reach)
        seconds = max(time.perf_counter() - began, 1e-9)
    for note in found.notes:
        session.warn(note)
    session.show(
        Result(
            "BackupVerification",
            {
                "target": target,
                **_fields(found.manifest),
                "batches": found.batches,
                "bytes_read": found.size_bytes,
                "bytes_per_second": int(found.size_bytes / seconds),
                "is_intact": not found.problems,
                "damage": "; ".join(found.problems) or None,
            },
        )
    )
    if found.problems:
        raise CliError("; ".join(found.problems), hint=DAMAGED_HINT, code=Exit.DAMAGED)


@backup.command("drill", cls=LocalCommand)
@_TARGET
@click.option(
    "--scratch",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Existing folder for the restored files, which are deleted. Default: the system's.",
)
@pass_session
def drill(session: Session, target: str, scratch: Path | None) -> None:
    """Restore the newest backup in TARGET to scratch, replay it, and compare all digests.

    The restored log must have the log digest of the manifest, and its replay the state digest that
    the source reported when the backup was made. Ends with exit code 3 if one differs, and with 8
    if the backup is damaged. The scratch files are deleted in each case.
    """
    from quorate.backup.drill import drill as drill_backup

    with reported_backup(target):
        storage = storage_of(target)
        total = newest_manifest(storage)[0].end.offset
        with (
            tempfile.TemporaryDirectory(prefix="quorate-drill-", dir=scratch) as folder,
            session.progress("restoring", total) as bar,
        ):
            found = drill_backup(storage, Path(folder), progress=bar.reach)
    session.show(
        Result(
            "BackupDrill",
            {
                "target": target,
                "sequence": found.manifest_sequence,
                "cluster_id": found.cluster_id,
                "restored_to": found.unpacked.end.offset,
                "bytes_restored": found.unpacked.size_bytes,
                "records_replayed": found.replayed.records,
                "log_digest": found.unpacked.log_digest.hex() or None,
                "state_offset": found.state_offset,
                "state_digest": found.found_digest,
                "expected_state_digest": found.expected_digest,
                "is_equal": not found.problems,
                "difference": "; ".join(found.problems) or None,
            },
        )
    )
    if found.problems:
        raise CliError("; ".join(found.problems), hint=DAMAGED_HINT, code=Exit.UNHEALTHY)


@backup.command("extract", cls=LocalCommand)
@_TARGET
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--to-offset", type=WholeNumber(min=0), help="Leave out this offset and later.")
@click.option("--to-time", metavar="TIME", help="Leave out what was appended after this time.")
@pass_session
def extract(
    session: Session, target: str, directory: Path, to_offset: int | None, to_time: str | None
) -> None:
    """Write the log of the newest backup in TARGET to DIRECTORY, for state, diff, shell and log.

    DIRECTORY must not exist, or be empty. What is written is no node's directory: it has no
    identity, and a server refuses it. An offset inside a batch means the beginning of the batch. An
    interrupted run leaves an incomplete DIRECTORY: remove it, and run it again.
    """
    from quorate.backup.unpack import checked_end, end_at_time, unpack

    moment = moment_of(to_offset, to_time)
    fs = OsFileSystem()
    if fs.list_directory(directory):
        raise CliError(f"{directory} is not empty", hint="name a new directory", code=Exit.CONFLICT)
    with reported_backup(target):
        storage = storage_of(target)
        manifest, _ = newest_manifest(storage)
        end = moment.offset
        if moment.time_ms is not None:
            end = end_at_time(storage, manifest, moment.time_ms)
        wanted = checked_end(manifest, end)
        fs.make_directory(directory)
        with session.progress("extracting", wanted) as bar:
            found = unpack(
                storage,
                manifest,
                fs,
                partition_directory(directory),
                end_offset=end,
                progress=bar.reach,
            )
    session.show(
        Result(
            "BackupExtract",
            {
                "target": target,
                "directory": str(directory),
                "cluster_id": manifest.cluster_id,
                "start_offset": manifest.start.offset,
                "end_offset": found.end.offset,
                "end_epoch": found.end.epoch,
                "log_digest": found.log_digest.hex() or None,
                "bytes": found.size_bytes,
            },
        )
    )


def _fields(manifest: Manifest) -> dict[str, object]:
    return {
        "cluster_id": manifest.cluster_id,
        "sequence": manifest.sequence,
        "created": time_text(manifest.created_ms),
        "source": manifest.source,
        "start_offset": manifest.start.offset,
        "end_offset": manifest.end.offset,
        "end_epoch": manifest.end.epoch,
        "log_incarnation": manifest.incarnation_id or None,
        "log_digest": manifest.log_digest or None,
        "state_offset": manifest.state_offset,
        "state_digest": manifest.state_digest,
        "files": len(manifest.files),
        "bytes": manifest.size_bytes,
    }


backup.add_command(restore_command)
