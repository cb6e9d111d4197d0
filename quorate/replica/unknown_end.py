"""Stores a vote floor if the end of the log is unknown, although records may be acknowledged.

The durable mark, kept twice, and the segments show where the log ended. Opening a log for the first
time makes both, before the node can learn of any epoch. So a directory that remembers an epoch
above 0 and has no segment, or no intact mark of its own, has lost them. Its log may be whole, or
may lack records that this replica has acknowledged, and this cannot be found out: a mark that is
left beside no segment is up to a second old, and a segment that ends with a whole batch may have
ended later.

The vote floor is then the beginning of the next epoch, whatever the log contains. All that was
acknowledged here is of no later epoch than the remembered one; the leader of a later epoch is
elected by a majority that this replica is not part of, and therefore has it. Sooner than by a
record of a later epoch the floor is reached at the end of the leader's log
(``quorum.core.replication.durability``).

See: ADR 7, 20 and 39.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quorum.errors import LogDamagedError
from quorum.log.damage import Loss
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.layout import WATERMARK_NAME, segment_bases
from quorum.log.log_start_file import LogStartFile
from quorum.ports import ElectionStore, FileSystem
from quorum.types import ElectionState, OffsetAndEpoch, Uuid


def floor_for_unknown_end(
    fs: FileSystem, directory: Path, election: ElectionStore, owner: Uuid
) -> list[tuple[LogDamagedError, Loss]]:
    """Store the vote floor of a log whose end is unknown; return an empty result if it is known.

    Repeatable, and to be called before anything writes a durable mark. ``owner`` is the directory
    id of the disk.

    Returns:
        What may be lost: everything.

    Raises:
        StorageError: The floor is not stored.
    """
    state = election.load()
    if state.epoch == 0:
        return []
    if _has_missing_log(fs, directory, state):
        path = directory
        cause = f"no segment is left of a log that has been in epoch {state.epoch}"
    elif load_watermarks(fs, directory, owner) is None:
        path = directory / WATERMARK_NAME
        cause = "neither it nor its copy is intact, so nothing says how far the log was on disk"
    else:
        return []
    floor = OffsetAndEpoch(0, state.epoch + 1)
    if state.vote_floor is None or not state.vote_floor.is_at_least(floor):
        election.save(replace(state, vote_floor=floor))
    return [(LogDamagedError(cause, path=path, position=0, offset=0), Loss(0, floor, ()))]


def _has_missing_log(fs: FileSystem, directory: Path, state: ElectionState) -> bool:
    """Whether all segments are gone.

    Not those of a log that is just being replaced by a checkpoint, nor of one that a quarantine
    has set aside, which has stored its floor.
    """
    if state.vote_floor is not None or segment_bases(fs.list_directory(directory)):
        return False
    try:
        start = LogStartFile(fs, directory).load()
    except LogDamagedError:
        start = None
    return start is None or not start.is_replacing
