"""``quorate release``: a data directory of ours becomes one of a Kafka controller's, in place.

Only what every Kafka controller reads may be in it: the records of ``cluster.record_codec=kafka``.
Nothing that binds this replica beyond what Kafka knows may be lost: no vote floor above the log, no
disqualification, no quarantined log. ``meta.properties`` comes first, so that an interrupted
attempt leaves a directory that our server refuses, and Kafka's takes; it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quorate.adoption.contents import batches_of, checkpoints_of
from quorate.adoption.errors import AdoptionRefusedError
from quorate.adoption.own_files import own_side_files
from quorum.batch import iterate_records, scan_batches
from quorum.errors import IdentityDamagedError, IdentityError
from quorum.log.election_store import ElectionFile
from quorum.log.identity import (
    MetaProperties,
    load_foreign_identity,
    load_identity,
    unseal_identity,
)
from quorum.log.layout import (
    META_PROPERTIES_NAME,
    QUARANTINED_NAME,
    QUORUM_STATE_NAME,
    partition_directory,
)
from quorum.log.readonly import ReadOnlyLog, open_readonly
from quorum.ports import FileSystem
from quorum.types import ElectionState, OffsetAndEpoch
from statemachine.codec_kafka import FRAME_VERSION


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The changes of a release; none if the directory is Kafka's already."""

    data_dir: Path
    identity: MetaProperties
    election: ElectionState
    end: OffsetAndEpoch
    removed: tuple[str, ...]
    """Side files of ours, which Kafka passes over."""
    is_done: bool

    def changes(self) -> list[tuple[str, str]]:
        """File and what happens to it, in the order of the steps."""
        if self.is_done:
            return []
        return [
            (META_PROPERTIES_NAME, "checksum line taken out"),
            (QUORUM_STATE_NAME, "written as Kafka does"),
            *((name, "removed") for name in self.removed),
        ]


def plan_release(fs: FileSystem, data_dir: Path) -> ReleasePlan:
    """Look at a directory and prove that Kafka can read it all; writes nothing.

    Raises:
        AdoptionRefusedError: Kafka could not continue from this directory; the message has the
            reason.
        StorageError: A file is missing, damaged, or cannot be read.
    """
    partition = partition_directory(data_dir)
    if not fs.exists(partition):
        raise AdoptionRefusedError(f"{data_dir}: no {partition.name} in it")
    identity = load_foreign_identity(fs, data_dir)
    names = fs.list_directory(partition)
    removed = own_side_files(names, with_log_start=True)
    election = ElectionFile(fs, partition, identity.directory_id).load_foreign()
    is_done = not removed and not _is_ours(fs, data_dir)
    log = open_readonly(data_dir, fs)
    try:
        end = log.end
        if not is_done:
            if log.problems:
                raise AdoptionRefusedError("; ".join(log.problems))
            _check_promises(election, log, names)
            _check_codec(fs, log, partition)
    finally:
        log.close()
    return ReleasePlan(data_dir, identity, election, end, removed, is_done)


def _is_ours(fs: FileSystem, data_dir: Path) -> bool:
    try:
        load_identity(fs, data_dir)
    except IdentityDamagedError:
        raise
    except IdentityError:
        return False
    return True


def _check_promises(election: ElectionState, log: ReadOnlyLog, names: Iterable[str]) -> None:
    """Refuse state that only our files store and that a Kafka controller would ignore."""
    floor = election.vote_floor
    if election.disqualified:
        raise AdoptionRefusedError(f"this directory id never votes again: {election.disqualified}")
    if QUARANTINED_NAME in names:
        raise AdoptionRefusedError("a majority holds another history; start the node to mend that")
    if election.bootstrap_state is not None:
        raise AdoptionRefusedError("the first voters have not bootstrapped the quorum yet")
    if floor is not None and (floor.epoch, floor.offset) > (log.end.epoch, log.end.offset):
        raise AdoptionRefusedError(
            f"records up to {floor} were acknowledged and are lost here; let the node catch up"
        )


def _check_codec(fs: FileSystem, log: ReadOnlyLog, partition: Path) -> None:
    for data in batches_of(log, log.start.offset):
        _check_records(data, "the log")
    for snapshot_id, reader in checkpoints_of(fs, partition):
        for data in reader.batches():
            _check_records(data, f"checkpoint {snapshot_id}")


def _check_records(data: bytes, place: str) -> None:
    for header in scan_batches(data, verify_crc=False):
        if header.is_control:
            continue
        for record in iterate_records(data, header):
            if record.headers or not record.value or record.value[0] != FRAME_VERSION:
                raise AdoptionRefusedError(
                    f"{place} holds records of the native codec, at offset {record.offset} first: "
                    "no Kafka controller reads them (cluster.record_codec)"
                )


def release(fs: FileSystem, plan: ReleasePlan) -> None:
    """Carry the plan out. May be repeated after a crash anywhere, with a new plan.

    The caller has held the directory's locks since before it was planned.

    Durability: everything is on disk when this returns.

    Raises:
        StorageError: The disk failed.
    """
    if plan.is_done:
        return
    partition = partition_directory(plan.data_dir)
    unseal_identity(fs, plan.data_dir)
    ElectionFile(fs, partition, plan.identity.directory_id).save_foreign(plan.election)
    for name in plan.removed:
        fs.unlink(partition / name)
    fs.sync_directory(partition)
