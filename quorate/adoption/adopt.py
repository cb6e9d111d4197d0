"""``quorate adopt``: a Kafka controller's data directory becomes ours, in place.

Records and checkpoints stay as they are; only files beside them change. A directory is ours once
``quorum-state`` and ``meta.properties`` carry our checksum, and these two are written last. Until
then a server of ours refuses it, a Kafka controller may still start on it, and everything beside
the log is made anew by the next attempt, as Kafka may have written to the log in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quorate.adoption.contents import Contents, examine
from quorate.adoption.errors import AdoptionRefusedError
from quorate.adoption.own_files import own_side_files
from quorum.errors import ElectionStateError, IdentityDamagedError, IdentityError
from quorum.log.election_store import ElectionFile
from quorum.log.identity import (
    MetaProperties,
    load_foreign_identity,
    load_identity,
    seal_foreign_identity,
)
from quorum.log.layout import (
    LOG_START_NAME,
    META_PROPERTIES_NAME,
    QUARANTINED_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAMES,
    partition_directory,
)
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.recovery import open_log
from quorum.ports import FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, LOG_BEGINNING, ZERO_UUID, ElectionState, Uuid
from snapshot.naming import FileState, parse_name


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    """The changes of an adoption; none if the directory is ours already."""

    data_dir: Path
    identity: MetaProperties
    election: ElectionState
    contents: Contents
    log_start: LogStart | None
    """To be stored; None where the log has its beginning, or says where it begins."""
    removed: tuple[str, ...]
    """Side files of ours from before Kafka wrote to the log again."""
    is_done: bool

    def changes(self) -> list[tuple[str, str]]:
        """File and what happens to it, in the order of the steps."""
        if self.is_done:
            return []
        found = [(name, "removed: of an earlier time as ours") for name in self.removed]
        if self.log_start is not None:
            found.append((LOG_START_NAME, f"written: the log begins at {self.log_start.start}"))
        end = self.contents.end.offset
        found += [(name, f"written: on disk up to offset {end}") for name in WATERMARK_NAMES]
        found.append((QUORUM_STATE_NAME, "sealed with a checksum"))
        found.append((META_PROPERTIES_NAME, "sealed with a checksum"))
        return found


def plan_adoption(fs: FileSystem, data_dir: Path, new_directory_id: Uuid) -> AdoptionPlan:
    """Look at a directory and prove everything in it; writes nothing.

    ``new_directory_id`` names the disk where ``meta.properties`` does not (before Kafka 3.7).

    Raises:
        AdoptionRefusedError: The directory cannot become ours; says why.
        StorageError: A file is missing, damaged, or cannot be read.
    """
    partition = partition_directory(data_dir)
    identity = load_foreign_identity(fs, data_dir)
    if identity.directory_id == ZERO_UUID:
        identity = MetaProperties(identity.cluster_id, identity.node_id, new_directory_id)
    file = ElectionFile(fs, partition, identity.directory_id)
    if fs.exists(partition) and not file.exists():
        raise AdoptionRefusedError(
            f"{partition}: {QUORUM_STATE_NAME} is missing, so a vote may have been forgotten"
        )
    contents = examine(fs, data_dir)
    election = file.load_foreign()
    if contents.end.epoch > election.epoch:
        raise AdoptionRefusedError(
            f"{partition}: {QUORUM_STATE_NAME} is of epoch {election.epoch} and the log of epoch "
            f"{contents.end.epoch}: it is an older copy"
        )
    if election.epoch == 0:
        raise AdoptionRefusedError(
            f"{data_dir}: no leader was ever elected here; `quorate format` makes a new directory"
        )
    is_done = _is_ours(fs, data_dir, file)
    names = fs.list_directory(partition)
    if not is_done and QUARANTINED_NAME in names:
        raise AdoptionRefusedError(
            f"{partition}: {QUARANTINED_NAME} says that a majority holds another history"
        )
    stored = LogStartFile(fs, partition).load()
    written = LOG_BEGINNING if stored is None else stored.start
    return AdoptionPlan(
        data_dir,
        identity,
        election,
        contents,
        LogStart(contents.start) if contents.start != written else None,
        () if is_done else own_side_files(names, with_log_start=False),
        is_done,
    )


def _is_ours(fs: FileSystem, data_dir: Path, election: ElectionFile) -> bool:
    try:
        load_identity(fs, data_dir)
        election.load()
    except IdentityDamagedError:
        raise
    except (IdentityError, ElectionStateError):
        return False
    return True


def adopt(fs: FileSystem, plan: AdoptionPlan) -> None:
    """Carry the plan out. May be repeated after a crash anywhere, with a new plan.

    The caller has held the directory's locks since before it was planned.

    Durability: everything is on disk when this returns.

    Raises:
        StorageError: The disk failed; the directory is not ours yet, and still Kafka's.
    """
    if plan.is_done:
        return
    partition = plan.contents.partition
    for name in plan.removed:
        fs.unlink(partition / name)
    fs.sync_directory(partition)
    if plan.log_start is not None:
        LogStartFile(fs, partition).save(plan.log_start)
    # Writes what of our side files follows from the log, and syncs the log.
    log, _ = open_log(
        fs,
        partition,
        snapshots=tuple(
            parsed[0]
            for name in fs.list_directory(partition)
            if (parsed := parse_name(name)) is not None
            and parsed[1] is FileState.SEALED
            and parsed[0] != BOOTSTRAP_SNAPSHOT_ID
        ),
        epoch_max=plan.election.epoch,
        owner=plan.identity.directory_id,
    )
    # Nothing is known to be committed, but all of it is on disk, whatever power loss does.
    log.store_high_watermark(0)
    log.close()
    ElectionFile(fs, partition, plan.identity.directory_id).save(plan.election)
    seal_foreign_identity(fs, plan.data_dir, plan.identity.directory_id)
