"""Which checkpoints a replica has, which is newest, which may go; and a download of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.local_events import PartialDownload
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.positions.download import Download, replaces_log
from quorum.core.positions.log_view import LogView
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.errors import ErrorCode
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, EpochStart, OffsetAndEpoch

OLD, MIDDLE, NEW = OffsetAndEpoch(4, 1), OffsetAndEpoch(6, 1), OffsetAndEpoch(6, 2)


def test_checkpoints_are_in_order_and_the_bootstrap_one_is_no_newest() -> None:
    index = SnapshotIndex([NEW, OLD, BOOTSTRAP_SNAPSHOT_ID, MIDDLE])
    assert index.ids == (BOOTSTRAP_SNAPSHOT_ID, OLD, MIDDLE, NEW)
    assert index.latest == NEW
    index.remove(NEW)
    assert (index.latest, index.get(NEW)) == (MIDDLE, None)
    index.remove(NEW)
    assert index.ids == (BOOTSTRAP_SNAPSHOT_ID, OLD, MIDDLE)
    index = SnapshotIndex([OLD])
    index.remove(OLD)
    index.remove(OLD)
    assert (index.ids, index.latest) == ((), None)
    assert SnapshotIndex([BOOTSTRAP_SNAPSHOT_ID]).latest is None
    assert SnapshotIndex().latest is None


def test_the_holding_time_goes_on_over_a_restart_and_never_begins_in_the_future() -> None:
    index = SnapshotIndex([OLD, MIDDLE, NEW], {OLD: 40}, {OLD: 700, MIDDLE: -5}, now_ms=1_000)
    found = [index.get(each) for each in (OLD, MIDDLE, NEW)]
    assert [each and (each.size, each.since_ms) for each in found] == [
        (40, 300), (0, 1_000), (0, 1_000),
    ]  # fmt: skip


def test_a_checkpoint_that_is_reported_again_only_gets_its_size() -> None:
    index = SnapshotIndex()
    index.add(OLD, 0, now_ms=10)
    for size, known in ((40, 40), (0, 40), (50, 50)):
        index.add(OLD, size, now_ms=20)
        found = index.get(OLD)
        assert found is not None
        assert (found.size, found.since_ms) == (known, 10)
    assert index.ids == (OLD,)


def test_what_lies_below_the_log_start_may_go_unless_it_is_the_newest_or_being_read() -> None:
    index = SnapshotIndex([OLD, MIDDLE, NEW])
    assert index.deletable_below(OffsetAndEpoch(4, 1)) == ()
    assert index.deletable_below(OffsetAndEpoch(5, 1)) == (OLD,)
    assert index.deletable_below(OffsetAndEpoch(7, 1)) == (OLD, MIDDLE)
    index.leased = (OLD,)
    assert index.deletable_below(OffsetAndEpoch(7, 1)) == (MIDDLE,)


def answer(position: int = 0, size: int = 10, chunk: bytes = b"1234") -> FetchSnapshotResponse:
    return FetchSnapshotResponse(
        1, ErrorCode.NONE, 1, 1, NEW, size, position, chunk=chunk, file_digest=b"d"
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (answer(4, 10), ""),
        (answer(4, 8), ""),
        (answer(4, 7), "a chunk beyond the size 7"),
        (answer(3), "position 3 instead of 4"),
        (answer(5), "position 5 instead of 4"),
        (answer(4, chunk=b""), "an empty chunk"),
        (replace(answer(4), snapshot_id=OLD), "another snapshot"),
    ],
)
def test_only_the_next_chunk_of_the_file_fits(given: FetchSnapshotResponse, problem: str) -> None:
    assert Download(NEW, 1, position=4).problem_with(given) == problem


def test_a_file_is_known_by_its_size_and_digest_once_it_has_begun() -> None:
    download = Download(NEW, 1)
    assert not download.is_another_file(answer())
    download.size, download.file_digest, download.position = 10, b"d", 4
    assert not download.is_another_file(answer(4))
    assert download.is_another_file(answer(4, 11))
    assert download.is_another_file(replace(answer(4), file_digest=b"e"))
    download.size = 0
    assert download.is_another_file(answer(0, 1)), "an empty file is known, too"


def test_what_an_earlier_process_run_left_is_continued_only_with_a_digest() -> None:
    download = Download.found(PartialDownload(NEW, 4))
    assert (download.position, download.is_unconfirmed, download.is_complete) == (4, True, False)
    assert not download.is_another_file(answer(4))
    assert download.is_another_file(replace(answer(4), file_digest=b""))
    for size in (0, 1, 10):
        download.size = size
        assert not download.is_unconfirmed
    assert not Download.found(PartialDownload(NEW, 0)).is_unconfirmed
    assert Download.found(PartialDownload(NEW, 1)).is_unconfirmed


def test_a_download_is_complete_with_its_last_byte_and_forgets_all_when_it_restarts() -> None:
    for position, size, is_complete in (
        (9, 10, False),
        (10, 10, True),
        (0, 0, True),
        (4, -1, False),
    ):
        assert Download(NEW, 1, position, size).is_complete == is_complete
    download = Download(NEW, 1, 4, 10, b"d", chunk_bytes=4, found_bytes=2)
    download.restart()
    assert download == Download(NEW, 1)


@pytest.mark.parametrize(
    ("snapshot_id", "replaces"),
    [
        (OffsetAndEpoch(3, 9), False),
        (OffsetAndEpoch(4, 1), False),
        (OffsetAndEpoch(4, 2), True),
        (OffsetAndEpoch(8, 2), False),
        (OffsetAndEpoch(8, 3), True),
        (OffsetAndEpoch(9, 2), True),
        (OffsetAndEpoch(2, 1), False),
    ],
)
def test_a_snapshot_replaces_only_a_log_that_it_brings_forward(
    snapshot_id: OffsetAndEpoch, replaces: bool
) -> None:
    """Method: a log of [2, 8), committed up to 4; epoch 1 up to 6, then epoch 2."""
    log = LogView(OffsetAndEpoch(2, 1), OffsetAndEpoch(8, 2), (EpochStart(1, 2), EpochStart(2, 6)))
    assert replaces_log(log, 4, snapshot_id) == replaces


def test_a_snapshot_below_a_log_that_knows_nothing_to_be_committed_replaces_it() -> None:
    log = LogView(OffsetAndEpoch(2, 1), OffsetAndEpoch(8, 1), (EpochStart(1, 2),))
    assert replaces_log(log, 0, OffsetAndEpoch(1, 1))
    assert not replaces_log(log, 0, OffsetAndEpoch(2, 1))
    assert replaces_log(log, 0, OffsetAndEpoch(2, 0))
