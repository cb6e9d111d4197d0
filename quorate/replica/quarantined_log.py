"""Setting aside a log that was found wrong although all its checksums are right.

This node stopped before, when its history was found to be the wrong one of two
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
from quorum.log.damage import Loss, quarantine
from quorum.log.layout import LOG_START_NAME, segment_bases, segment_path
from quorum.log.quarantine_mark_file import (
    QuarantineMark,
    read_quarantine_mark,
    remove_quarantine_mark,
)
from quorum.ports import ElectionStore, FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, Uuid
from snapshot.store import DirectorySnapshotStore


def floor_store(election: ElectionStore) -> Callable[[Loss], None]:
    """What stores the vote floor of a loss, unless a higher one is stored."""

    def store(loss: Loss) -> None:
        state = election.load()
        floor = state.vote_floor
        # An epoch that rotted must not make a floor that no log will ever reach.
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
    """Carry out a quarantine mark, if there is one; repeatable after a crash at any point.

    ``owner`` is the directory id of the disk; ``rebuilt`` receives the names of side files that are
    written anew.

    Returns:
        What it took away; empty without one.

    Raises:
        StorageError: Files could not be renamed; what was renamed stays so.
    """
    try:
        found = read_quarantine_mark(fs, directory)
    except LogDamagedError as error:
        found = QuarantineMark(0, str(error))
    if found is None:
        return []
    offset, cause = found
    bases = [base for base in segment_bases(fs.list_directory(directory)) if base <= offset]
    is_whole = offset == 0 or not bases
    path = directory / LOG_START_NAME if is_whole else segment_path(directory, bases[-1])
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
