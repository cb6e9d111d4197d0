"""What a start repairs or sets aside, step by step, as a script of crashes.

Each repair is followed by a vote without a vote floor, as if the node had fetched everything again:
the next repair must find out by itself what may have been acknowledged.
"""

from __future__ import annotations

from quorum.log.layout import LOG_START_NAME
from quorum.types import OffsetAndEpoch, SnapshotId
from snapshot.naming import file_name
from tests.support.crash_scripts import Script, Step
from tests.support.crash_sites import WatchedFileSystem
from tests.support.storage_script import (
    LOG,
    Stores,
    append,
    commit,
    fetch,
    format_node,
    on_node,
    opened,
    read_node,
    take_checkpoint,
    trim_to,
    vote,
)


def damage_log_start(copies: int) -> Step:
    """``log-start`` is overwritten; the newest checkpoint replaces it. ``copies`` exist then."""

    def run(fs: WatchedFileSystem) -> None:
        names = [name for name in fs.list_directory(LOG) if name.startswith("log-start.damaged")]
        if len(names) < copies:
            fs.write_bytes(LOG / LOG_START_NAME, b"x" * 20)
        opened(fs).log.close()

    return Step(run)


def damage_checkpoint_at_rest(snapshot_id: SnapshotId) -> Step:
    """A bit flips in the newest checkpoint, and the next start finds it."""

    def run(fs: WatchedFileSystem) -> None:
        path = LOG / file_name(snapshot_id)
        if fs.exists(path):
            fs.flip_bit(path, len(fs.read_bytes(path)) - 3)
        opened(fs).log.close()

    return Step(run)


def differs_from(offset: int) -> Step:
    """The running node finds that a majority has another history from ``offset`` on."""

    def run(_fs: WatchedFileSystem, stores: Stores) -> None:
        if stores.log.end.offset > offset:
            stores.log.quarantine(offset, "another history")

    return Step(on_node(run))


REPAIR_SCRIPT = Script(
    prepare=format_node,
    read=read_node,
    steps=(
        vote(1),
        append(0, 1, 8),
        commit(11),
        take_checkpoint(SnapshotId(9, 1)),
        trim_to(OffsetAndEpoch(9, 1)),
        take_checkpoint(SnapshotId(13, 1)),
        damage_log_start(1),
        vote(5),
        # Of a later epoch, and shorter than the log.
        fetch(SnapshotId(15, 4)),
        append(15, 5, 5),
        damage_log_start(2),
        take_checkpoint(SnapshotId(20, 5)),
        damage_checkpoint_at_rest(SnapshotId(20, 5)),
        take_checkpoint(SnapshotId(22, 5)),
        vote(6),
        append(26, 6, 3),
        differs_from(31),
        vote(7),
        differs_from(18),
        vote(8),
        differs_from(3),
        vote(9),
    ),
)
"""Its states are what a start finds."""
