"""Quarantines a log that was found wrong although all its checksums match.

An earlier process stopped because its history was found to be the wrong one of two
(``quorum.core.integrity.divergence_resolution``). Before it loads anything, what differs is set
aside: segments from the first offset that differs on, and the checkpoints made of an image that
contained it. The vote floor is stored first, as with damage.

See: ADR 5 and 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from quorum.errors import LogDamagedError
from quorum.log.damage import Loss, quarantine, reaches_beyond
from quorum.log.layout import LOG_START_NAME, segment_bases, segment_path
from quorum.log.log_start_file import LogStartFile
from quorum.log.quarantine_mark_file import (
    QuarantineMark,
    read_quarantine_mark,
    remove_quarantine_mark,
)
from quorum.ports import ElectionStore, FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, Uuid
from snapshot.store import DirectorySnapshotStore


def floor_store(election: ElectionStore) -> Callable[[Loss], None]:
    """Stores the vote floor of a loss, unless a higher one is stored."""

    def store(loss: Loss) -> None:
        state = election.load()
        floor = state.vote_floor
        # A corrupt epoch must not make a floor that no log will ever reach.
        end = OffsetAndEpoch(loss.end.offset, min(loss.end.epoch, state.epoch))
        if floor is None or not floor.is_at_least(end):
            election.save(replace(state, vote_floor=end))

    return store


def quarantine_log(
    fs: FileSystem,
    directory: Path,
    snapshots: DirectorySnapshotStore,
    election: ElectionStore,
    owner: Uuid,
    rebuilt: list[str],
) -> list[tuple[LogDamagedError, Loss]]:
    """Apply a quarantine mark, if there is one; repeatable after a crash at any point.

    ``owner`` is the directory id of the disk; ``rebuilt`` receives the names of rewritten files.

    Returns:
        The quarantined parts; empty without a mark.

    Raises:
        StorageError: Files could not be renamed; files renamed before stay renamed.
    """
    try:
        found = read_quarantine_mark(fs, directory)
    except LogDamagedError as error:
        found = QuarantineMark(0, str(error))
    if found is None:
        return []
    offset, cause = found
    path = _first_that_differs(fs, directory, offset)
    is_whole = path.name == LOG_START_NAME
    damage = LogDamagedError(cause, path=path, position=0, offset=0 if is_whole else offset)
    loss = quarantine(
        fs,
        directory,
        damage,
        store_vote_floor=floor_store(election),
        epoch_max=election.load().epoch,
        owner=owner,
        rebuilt=rebuilt,
    )
    for snapshot_id in snapshots.list():
        if snapshot_id != BOOTSTRAP_SNAPSHOT_ID and snapshot_id.offset > damage.offset:
            snapshots.quarantine(snapshot_id, cause)
    remove_quarantine_mark(fs, directory)
    return [(damage, loss)]


def _first_that_differs(fs: FileSystem, directory: Path, offset: int) -> Path:
    """Return the segment from which on the log is set aside; ``log-start`` for the whole log.

    A segment of this name need not exist. After a crash in the middle, the segments that hold
    ``offset`` or later records may be set aside already: what is left is sound then.
    """
    bases = segment_bases(fs.list_directory(directory))
    lower = [base for base in bases if base <= offset]
    if offset == 0 or (not lower and offset < _stored_start(fs, directory)):
        return directory / LOG_START_NAME
    if lower:
        path = segment_path(directory, lower[-1])
        if lower[-1] != bases[-1] or reaches_beyond(fs, path, offset):
            return path
    return segment_path(directory, offset)


def _stored_start(fs: FileSystem, directory: Path) -> int:
    try:
        stored = LogStartFile(fs, directory).load()
    except LogDamagedError:
        # Opening the log sets it aside as well.
        return 0
    return 0 if stored is None else stored.start.offset
