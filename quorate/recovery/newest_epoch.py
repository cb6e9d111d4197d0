"""The newest epoch that a directory knows: of its records, checkpoints, marks, votes."""

from __future__ import annotations

from pathlib import Path

from quorum.log.high_watermark_file import load_watermarks
from quorum.log.layout import partition_directory
from quorum.log.readonly import ReadOnlyLog
from quorum.ports import FileSystem
from quorum.types import ElectionState, Epoch
from snapshot.naming import parse_name


def newest_record_epoch(
    fs: FileSystem, data_dir: Path, log: ReadOnlyLog, election: ElectionState
) -> Epoch:
    """Return the newest epoch that anything on this disk was written in, or promised about.

    The epoch of ``quorum-state`` itself does not count: it may have had no leader.
    """
    partition = partition_directory(data_dir)
    found = [log.end.epoch]
    marks = load_watermarks(fs, partition)
    if marks is not None:
        found.append(marks.durable_epoch)
    if election.vote_floor is not None:
        found.append(election.vote_floor.epoch)
    names = (parse_name(name) for name in fs.list_directory(partition))
    return max(found + [snapshot_id.epoch for snapshot_id, _ in filter(None, names)])
