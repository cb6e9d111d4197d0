"""What a node does to the files of one disk, step by step, as a script of crashes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quorate.formatting import FormatPlan, format_directory
from quorate.replica.boot import Stores, open_stores
from quorum.batch import scan_batches
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.errors import DiskFullError, SnapshotCorruptError
from quorum.log.config import LogConfig
from quorum.log.layout import (
    WATERMARK_NAMES,
    partition_directory,
    segment_bases,
    segment_path,
)
from quorum.log.quarantine_mark_file import QuarantineMark, write_quarantine_mark
from quorum.types import (
    BOOTSTRAP_SNAPSHOT_ID,
    ElectionState,
    Endpoint,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)
from simulation.clocks import DriftingClock
from simulation.scheduler import Scheduler
from snapshot.config import SnapshotConfig
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.writer import CheckpointCancelled, write_checkpoint
from statemachine.codec import encode_record
from statemachine.records import FeatureLevelRecord, NoOpRecord, TopicRecord
from tests.support.crash_scripts import Script, Step
from tests.support.crash_sites import WatchedFileSystem
from tests.support.log_builder import contents, make_batch

HOME = Path("/data/n1")
LOG = partition_directory(HOME)
ME = ReplicaKey(1, b"d" * 16)
VOTERS = (Voter(ME, (Endpoint("CONTROLLER", "n1", 9093),)),)
PLAN = FormatPlan(HOME, "crash-points", 1, ME.directory_id, VOTERS)
SNAPSHOTS = SnapshotConfig()
CHANGE = LeaderChange(1, (1,), (1,))


class Node(NamedTuple):
    """What a node finds when it starts."""

    election: ElectionState
    start: OffsetAndEpoch
    records: tuple[Any, ...]
    checkpoints: tuple[SnapshotId, ...]
    high_watermark: int


def format_node(fs: WatchedFileSystem) -> None:
    format_directory(fs, PLAN, ignore_formatted=True)


def clock() -> DriftingClock:
    return DriftingClock(Scheduler(), 1_000)


def opened(fs: WatchedFileSystem) -> Stores:
    return open_stores(
        fs,
        HOME,
        node_id=1,
        log_config=LogConfig(segment_bytes=400, index_interval_bytes=150),
        snapshot_config=SNAPSHOTS,
        clock=clock(),
    )


def read_node(fs: WatchedFileSystem) -> Node:
    node, stores = start_node(fs)
    stores.log.close()
    return node


def start_node(fs: WatchedFileSystem) -> tuple[Node, Stores]:
    """Start, and return what is found; nothing is closed."""
    stores = opened(fs)
    log = stores.log
    for snapshot_id in stores.snapshots.list():
        with contextlib.suppress(SnapshotCorruptError):
            stores.snapshots.verify(snapshot_id)
    found = Node(
        stores.election.load(),
        log.start,
        tuple(contents(log)),
        stores.snapshots.list(),
        stores.state.high_watermark,
    )
    return found, stores


def on_node(work: Callable[[WatchedFileSystem, Stores], object]) -> Callable[..., None]:
    """Work on an opened node, which ends afterwards without a word."""

    def run(fs: WatchedFileSystem) -> None:
        work(fs, opened(fs))

    return run


def vote(epoch: int) -> Step:
    state = ElectionState(epoch, voted=ME)
    return Step(on_node(lambda _fs, stores: stores.election.save(state)))


def append(base: int, epoch: int, count: int, *, leads: bool = True) -> Step:
    """Append batches of two records, a new leader's behind its leader change.

    A crash may leave the first batches.
    """
    batches = [(base, encode_control_batch([CHANGE], base_offset=base, epoch=epoch, timestamp=1))]
    batches = batches if leads else []
    for offset in range(base + leads, base + leads + 2 * count, 2):
        values = [encode_record(NoOpRecord())] * 2
        batches.append((offset, make_batch(offset, epoch, values)))

    def run(_fs: WatchedFileSystem, stores: Stores) -> None:
        end_offset = stores.log.end.offset
        for offset, data in batches:
            if offset >= end_offset:
                after = scan_batches(data)[0].end_offset
                stores.log.append(data, base_offset=offset, end_offset=after)
        stores.log.flush()

    def allows(before: Node, after: Node, found: Node) -> bool:
        return (
            found._replace(records=()) == after._replace(records=())
            and len(before.records) <= len(found.records)
            and found.records == after.records[: len(found.records)]
        )

    return Step(on_node(run), allows)


def cut_to(end_offset: int) -> Step:
    """Cut over several segments; a crash may leave any place behind the target."""

    def run(_fs: WatchedFileSystem, stores: Stores) -> None:
        stores.log.truncate_to(end_offset)
        stores.log.flush()

    def allows(before: Node, after: Node, found: Node) -> bool:
        return (
            found._replace(records=()) == after._replace(records=())
            and len(after.records) <= len(found.records)
            and found.records == before.records[: len(found.records)]
        )

    return Step(on_node(run), allows)


def commit(offset: int) -> Step:
    return Step(on_node(lambda _fs, stores: stores.log.store_high_watermark(offset)))


def checkpoint_values() -> list[bytes]:
    return [
        encode_record(FeatureLevelRecord("metadata.version", 20)),
        *(encode_record(TopicRecord(f"t{n}", bytes([n]) * 16)) for n in range(1, 9)),
    ]


def take_checkpoint(snapshot_id: SnapshotId) -> Step:
    def run(fs: WatchedFileSystem, stores: Stores) -> None:
        digest = stores.log.digest_at(snapshot_id.offset)
        taken = {"values": checkpoint_values(), "last_contained_log_timestamp": 1}
        with contextlib.suppress(CheckpointCancelled):
            write_checkpoint(fs, LOG, snapshot_id, is_cancelled=lambda: True, **taken)  # type: ignore[arg-type]
        write_checkpoint(fs, LOG, snapshot_id, log_digest=digest, **taken)  # type: ignore[arg-type]

    return Step(on_node(run))


def trim_to(start: OffsetAndEpoch, *last_pass: SnapshotId) -> Step:
    """Raise the log start, then delete older checkpoints; a crash may stop it in between."""

    def run(_fs: WatchedFileSystem, stores: Stores) -> None:
        if stores.log.start.offset < start.offset:
            stores.log.advance_start(start)
        stores.snapshots.delete(last_pass)

    def allows(before: Node, after: Node, found: Node) -> bool:
        trimmed = before._replace(start=after.start, records=after.records)
        return found == before or (
            found._replace(checkpoints=()) == trimmed._replace(checkpoints=())
            and set(after.checkpoints) <= set(found.checkpoints) <= set(before.checkpoints)
        )

    return Step(on_node(run), allows)


def fetched(snapshot_id: SnapshotId) -> bytes:
    head = CheckpointHead(1, log_digest=b"g" * 16)
    batches = checkpoint_batches(snapshot_id, head, checkpoint_values(), lambda: b"")
    return b"".join(batch for batch, _ in batches)


def fetch(snapshot_id: SnapshotId) -> Step:
    """Fetch a checkpoint in chunks, from where an earlier process run was, and start from it."""
    data = fetched(snapshot_id)

    def run(_fs: WatchedFileSystem, stores: Stores) -> None:
        if snapshot_id in stores.snapshots.list():
            return
        download = stores.state.download
        if download is None or download.snapshot_id != snapshot_id:
            stores.snapshots.begin_download(snapshot_id)
        position = 0 if download is None else download.size
        for begin in range(position, len(data), 100):
            stores.snapshots.write_chunk(snapshot_id, begin, data[begin : begin + 100])
        stores.snapshots.seal_download(snapshot_id)
        stores.log.replace_with(snapshot_id, digest=b"g" * 16)

    return Step(on_node(run))


def give_up(snapshot_id: SnapshotId) -> Step:
    """Begin a download, abandon it, and leave another that cannot be opened at the next start."""

    def run(fs: WatchedFileSystem, stores: Stores) -> None:
        for _ in range(2):
            stores.snapshots.begin_download(snapshot_id)
            stores.snapshots.write_chunk(snapshot_id, 0, fetched(snapshot_id)[:400])
        fs.not_to_open = f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint.part"
        try:
            opened(fs).log.close()
        finally:
            fs.not_to_open = None

    return Step(on_node(run))


def spoil_download(snapshot_id: SnapshotId) -> Step:
    """Fetch a file that is not what the sender has; it is set aside."""

    def run(_fs: WatchedFileSystem, stores: Stores) -> None:
        stores.snapshots.begin_download(snapshot_id)
        stores.snapshots.write_chunk(snapshot_id, 0, fetched(snapshot_id))
        with pytest.raises(SnapshotCorruptError):
            stores.snapshots.seal_download(snapshot_id, b"another digest")

    return Step(on_node(run))


def quarantine_from(offset: int) -> Step:
    """The majority has another history from ``offset`` on; the next start sets ours aside."""

    def run(fs: WatchedFileSystem, stores: Stores) -> None:
        if stores.log.end.offset > offset:
            write_quarantine_mark(fs, LOG, QuarantineMark(offset, "another history"))

    return Step(on_node(run))


def damage_log() -> Step:
    """A bit flips in the middle of the log; the next start sets it aside from there on."""

    def run(fs: WatchedFileSystem) -> None:
        names = fs.list_directory(LOG)
        if not any(name.endswith(".damaged") for name in names):
            fs.flip_bit(segment_path(LOG, segment_bases(names)[-2]), 80)
        opened(fs).log.close()

    return Step(run)


def damage_checkpoint(snapshot_id: SnapshotId) -> Step:
    def run(fs: WatchedFileSystem, stores: Stores) -> None:
        if snapshot_id in stores.snapshots.list():
            path = stores.snapshots.path(snapshot_id)
            fs.flip_bit(path, len(fs.read_bytes(path)) - 3)
            with pytest.raises(SnapshotCorruptError):
                stores.snapshots.verify(snapshot_id)

    return Step(on_node(run))


def damage_marks() -> Step:
    """Both copies of the high watermark are damaged, and the next start writes them anew."""

    def run(fs: WatchedFileSystem) -> None:
        for name in WATERMARK_NAMES:
            fs.write_bytes(LOG / name, b"x" * 5_000)
        opened(fs).log.close()

    return Step(run)


def append_much(_fs: WatchedFileSystem, stores: Stores) -> None:
    offset = stores.log.end.offset
    data = make_batch(offset, 3, [b"v" * 400])
    stores.log.append(data, base_offset=offset, end_offset=offset + 1)


def fill_disk(run: Callable[[WatchedFileSystem, Stores], object]) -> Step:
    """Work that fails for lack of space and changes nothing."""

    def full(fs: WatchedFileSystem, stores: Stores) -> None:
        fs.is_watched = True
        fs.faults.full_at_write = 0
        try:
            with pytest.raises(DiskFullError):
                run(fs, stores)
        finally:
            fs.faults.full_at_write = -1

    return Step(on_node(full))


NODE_SCRIPT = Script(
    prepare=format_node,
    read=read_node,
    steps=(
        vote(1),
        append(0, 1, 4),
        commit(5),
        vote(2),
        append(9, 2, 6),
        cut_to(7),
        vote(3),
        append(7, 3, 5),
        commit(14),
        take_checkpoint(SnapshotId(10, 3)),
        trim_to(OffsetAndEpoch(10, 3)),
        take_checkpoint(SnapshotId(14, 3)),
        trim_to(OffsetAndEpoch(14, 3), SnapshotId(10, 3), BOOTSTRAP_SNAPSHOT_ID),
        give_up(SnapshotId(30, 3)),
        spoil_download(SnapshotId(35, 3)),
        fetch(SnapshotId(40, 3)),
        append(40, 3, 12, leads=False),
        fill_disk(lambda _fs, stores: stores.election.save(ElectionState(9))),
        fill_disk(append_much),
        damage_checkpoint(SnapshotId(14, 3)),
        damage_log(),
        vote(4),
        append(48, 4, 4),
        quarantine_from(50),
        quarantine_from(42),
        damage_marks(),
        vote(5),
    ),
)
"""Its states are what a start finds."""


def nothing_invented(before: Node, after: Node, found: Node) -> bool:
    """Whether the log is a part of what was written, and what is missing of it is remembered.

    A disk that writes out of order can leave a batch behind a hole. That cannot be told from
    damage, so such a segment is set aside, and the vote floor covers it (``quorum/log/DESIGN.md``).
    """
    floor = found.election.vote_floor
    votes = [replace(each.election, vote_floor=None) for each in (before, after, found)]
    known = [each for each in (before, after) if each.start == found.start]
    is_part = any(found.records == each.records[: len(found.records)] for each in known)
    end = found.start.offset + len(found.records)
    promised = min(each.start.offset + len(each.records) for each in (before, after))
    is_covered = end >= promised or (floor is not None and floor.offset >= promised)
    return votes[2] in votes[:2] and is_part and is_covered
