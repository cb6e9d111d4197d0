"""Stub clusters that resume a wrong download."""

from __future__ import annotations

from types import SimpleNamespace

from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch
from tests.support.stub_cluster import Stage, key_of

FIRST, SECOND = OffsetAndEpoch(1, 1), OffsetAndEpoch(2, 1)


def _checkpoint(stage: Stage) -> None:
    """Node 1 writes one; the log below it is committed."""
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.commit(1, end_offset=1, epoch=1)
    store = stage.replicas[1].stores.snapshots
    store.list = lambda: (FIRST,)
    store._open = lambda _: SimpleNamespace(
        size=lambda: 7, read_at=lambda *_: b"content", close=lambda: None
    )
    stage.run_observer.nodes[1].is_corrupt = lambda _: False
    stage.run_observer.checkpointed(1, FIRST)


def _ask(stage: Stage, snapshot_id: OffsetAndEpoch, position: int) -> None:
    request = FetchSnapshotRequest(1, "c", key_of(3), 0, snapshot_id, position, 100)
    stage.run_observer.sent(3, 1, request)


def kept_what_is_not_of_it(stage: Stage) -> None:
    _checkpoint(stage)
    stage.parts[3] = FIRST, b"c0nt"
    stage.open(3)


def goes_on_under_another_id(stage: Stage) -> None:
    """A download may resume only behind bytes that were kept or received since."""
    _checkpoint(stage)
    stage.parts[3] = FIRST, b"cont"
    stage.open(3)
    _ask(stage, FIRST, 4)
    third = OffsetAndEpoch(3, 1)
    answer = FetchSnapshotResponse(1, ErrorCode.NONE, 1, 1, third, chunk=b"c")
    stage.run_observer.received(3, 1, answer)
    _ask(stage, third, 1)
    _ask(stage, SECOND, 4)


def goes_on_with_what_a_former_process_had(stage: Stage) -> None:
    answer = FetchSnapshotResponse(1, ErrorCode.NONE, 1, 1, FIRST, chunk=b"c")
    stage.run_observer.received(3, 1, answer)
    stage.open(3)
    _ask(stage, FIRST, 1)


CASES = (
    (kept_what_is_not_of_it, "resumed-downloads"),
    (goes_on_under_another_id, "resumed-downloads"),
    (goes_on_with_what_a_former_process_had, "resumed-downloads"),
)
