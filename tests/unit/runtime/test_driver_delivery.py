"""A follower acknowledges first and applies afterwards; a leader applies at once."""

from __future__ import annotations

from quorum.batch import encode_batch
from quorum.core.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
)
from quorum.errors import ErrorCode
from statemachine.codec import encode_record
from statemachine.records import NoOpRecord
from tests.support.lone_replica import LoneReplica


def following() -> tuple[LoneReplica, list[str]]:
    """Node 1 follows node 2 in epoch 1; the list says each time that delivery is due."""
    bench = LoneReplica(voters=3).boot()
    bench.persist()
    due: list[str] = []
    bench.replica.driver._on_delivery_due = lambda: due.append("due")
    mine, leader = bench.voters[0].key, bench.voters[1].key
    bench.replica.receive(2, BeginQuorumEpochRequest(1, "cluster", mine, leader, 1, ()))
    bench.persist()
    bench.replica.deliver()
    due.clear()
    return bench, due


def last_fetch(bench: LoneReplica) -> FetchRequest:
    return [each for _, each in bench.sent if isinstance(each, FetchRequest)][-1]


def record_at(offset: int) -> bytes:
    return encode_batch([encode_record(NoOpRecord())], base_offset=offset, epoch=1, timestamp=1)


def answer(bench: LoneReplica, *, high_watermark: int, records: bytes) -> None:
    bench.replica.receive(
        2,
        FetchResponse(
            last_fetch(bench).request_id, ErrorCode.NONE, 2, 1, high_watermark, records=records
        ),
    )


def test_a_follower_acknowledges_before_it_applies() -> None:
    """Goal: applying delays no leader. Method: records and their commit in one answer."""
    bench, due = following()
    answer(bench, high_watermark=1, records=record_at(0))
    assert bench.replica.controller.image.provenance.end_offset == 0
    assert due == []
    bench.persist()
    assert last_fetch(bench).fetch_offset == 1
    assert due == ["due"]
    assert bench.replica.controller.image.provenance.end_offset == 0
    bench.replica.deliver()
    assert bench.replica.controller.image.provenance.end_offset == 1


def test_a_commit_without_records_is_applied_soon() -> None:
    """Goal: nothing waits for the next write. Method: only the high watermark moves."""
    bench, due = following()
    answer(bench, high_watermark=0, records=record_at(0))
    bench.persist()
    answer(bench, high_watermark=1, records=b"")
    assert due == ["due"]
    bench.replica.deliver()
    assert bench.replica.controller.image.provenance.end_offset == 1
    bench.replica.deliver()
    assert due == ["due"]


def test_what_was_put_off_comes_before_a_new_epoch() -> None:
    """Goal: news stays in order. Method: a new leader announces itself before delivery."""
    bench, _ = following()
    answer(bench, high_watermark=1, records=record_at(0))
    newer = BeginQuorumEpochRequest(2, "cluster", bench.voters[0].key, bench.voters[2].key, 2, ())
    bench.replica.receive(3, newer)
    assert bench.replica.controller.image.provenance.end_offset == 1
