"""A log whose files are gone altogether, although this replica may have acknowledged records.

Opening a log makes its first segment before the node can hear of any epoch. So a directory that
remembers an epoch above 0 and has no segment has lost them, with everything that they acknowledged
and with nothing that says how much it was: the durable mark, where it is left, is up to a second
old. The vote floor is then the beginning of the next epoch. All that was acknowledged here is of no
later epoch than the remembered one; whoever comes to lead a later one is elected by a majority
that this replica is not part of, and therefore has it. Sooner than by a record of a later epoch
the floor is reached at the end of the leader's log (``quorum.core.durability``).

See: ADR 7.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quorum.errors import LogDamagedError
from quorum.log.damage import Loss
from quorum.log.layout import segment_bases
from quorum.log.log_start_file import LogStartFile
from quorum.ports import ElectionStore, FileSystem
from quorum.types import OffsetAndEpoch


def floor_for_vanished(
    fs: FileSystem, directory: Path, election: ElectionStore
) -> list[tuple[LogDamagedError, Loss]]:
    """Store the vote floor of a log without segments; what is lost, empty where nothing is.

    Repeatable. Not for a log that is just being replaced by a checkpoint, nor for one that a
    quarantine has set aside, which has stored its floor.

    Raises:
        StorageError: The floor is not stored.
    """
    state = election.load()
    if state.epoch == 0 or state.vote_floor is not None:
        return []
    if segment_bases(fs.list_directory(directory)):
        return []
    try:
        start = LogStartFile(fs, directory).load()
    except LogDamagedError:
        start = None
    if start is not None and start.is_replacing:
        return []
    floor = OffsetAndEpoch(0, state.epoch + 1)
    election.save(replace(state, vote_floor=floor))
    damage = LogDamagedError(
        f"no segment is left of a log that has been in epoch {state.epoch}",
        path=directory,
        position=0,
        offset=0,
    )
    return [(damage, Loss(0, floor, ()))]
