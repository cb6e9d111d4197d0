"""A follower acknowledges first and applies afterwards; a leader applies at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from metrics.families import Families
from metrics.observer import Observer
from quorate.config.server_config import ServerConfig
from quorate.server.health_checks import HealthChecks
from quorate.server.metering import CommandMeter
from quorate.server.served_node import ReplicaNode
from quorum.batch import VerifiedBatches, encode_batch, scan_batches
from quorum.core.contract.output import SaveElectionState, StoreHighWatermark
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.errors import ErrorCode
from quorum.runtime.clock import SystemClock
from quorum.runtime.delivery import GATHERED_RECORDS_MAX, DeferredDelivery
from quorum.types import OffsetAndEpoch
from simulation.harness.arrival import arrived
from statemachine.codec import encode_record
from statemachine.records import FeatureLevelRecord, NoOpRecord
from tests.support.lone_replica import LoneReplica


def following() -> tuple[LoneReplica, list[str]]:
    """Node 1 follows node 2 in epoch 1; the list gets an entry when a delivery is due."""
    bench = LoneReplica(voters=3).boot()
    bench.persist()
    due: list[str] = []
    bench.replica.driver._deferred = DeferredDelivery(
        lambda is_urgent: due.append("at once" if is_urgent else "due")
    )
    mine, leader = bench.voters[0].key, bench.voters[1].key
    begin = BeginQuorumEpochRequest(1, "cluster", mine, leader, 1, ())
    bench.replica.receive(2, arrived(begin))
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


def learn_new_epoch(bench: LoneReplica) -> None:
    """The node that it fetches from names node 3 as the leader of epoch 2."""
    error = ErrorCode.FENCED_LEADER_EPOCH
    bench.replica.receive(2, FetchResponse(last_fetch(bench).request_id, error, 3, 2))


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
    """Goal: notifications stay in order. Method: a new epoch becomes known before delivery."""
    bench, _ = following()
    answer(bench, high_watermark=1, records=record_at(0))
    bench.persist()
    learn_new_epoch(bench)
    assert bench.replica.node.epoch == 2
    assert bench.replica.controller.image.provenance.end_offset == 1


@pytest.mark.interpreted
def test_the_writer_gets_tickets_in_order_when_the_listener_enters_the_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: an epoch never counts as durable before it is written.

    Method: a deferred feature level is applied before the election state of a new epoch is
    submitted. It takes so long that the core, which learns of the level, stores its high watermark.
    """
    bench, _ = following()
    answer(bench, high_watermark=0, records=record_at(0))
    bench.persist()
    level = encode_record(FeatureLevelRecord("kraft.version", 1))
    batch = encode_batch([level], base_offset=1, epoch=1, timestamp=1)
    answer(bench, high_watermark=0, records=batch)
    bench.persist()
    answer(bench, high_watermark=2, records=b"")
    controller = bench.replica.controller
    apply = controller.on_committed

    def slowly(data: bytes, end_offset: int, verified: Sequence[VerifiedBatches]) -> None:
        bench.clock.time_ms += 2 * bench.replica.config.quorum.high_watermark_store_ms
        apply(data, end_offset, verified)

    monkeypatch.setattr(controller, "on_committed", slowly)
    learn_new_epoch(bench)
    assert controller.image.provenance.end_offset == 2
    written = [(type(each), group.ticket) for group in bench.groups for each in group.effects]
    assert [kind for kind, _ in written] == [SaveElectionState, StoreHighWatermark]
    assert [ticket for _, ticket in written] == sorted(ticket for _, ticket in written)
    bench.persist()
    assert last_fetch(bench).epoch == 2


def test_commits_gather_until_they_are_many() -> None:
    """Goal: an image without readers is updated less often, and is never far behind."""
    bench, due = following()
    for offset in range(GATHERED_RECORDS_MAX):
        answer(bench, high_watermark=offset, records=record_at(offset))
        bench.persist()
    assert due == ["due"]
    assert bench.replica.driver.is_delivery_due
    answer(bench, high_watermark=GATHERED_RECORDS_MAX, records=b"")
    assert due == ["due", "at once"]
    bench.replica.deliver()
    assert not bench.replica.driver.is_delivery_due
    assert bench.replica.controller.image.provenance.end_offset == GATHERED_RECORDS_MAX


def test_what_others_wait_for_does_not_gather() -> None:
    """Goal: a read is not kept for commits. Method: one fails, behind a commit that gathers."""
    bench, due = following()
    answer(bench, high_watermark=1, records=record_at(0))
    bench.persist()
    assert due == ["due"]
    values: list[int | None] = []
    bench.replica.controller.confirm_read(values.append)
    bench.replica.turn()
    learn_new_epoch(bench)
    bench.persist()
    assert due[-1] == "at once"


def test_who_waits_for_the_image_does_not_wait_for_more_commits() -> None:
    """Goal: a read on a follower costs no delay. Method: the commit it wants is gathering."""

    async def scenario() -> None:
        bench, _ = following()
        answer(bench, high_watermark=1, records=record_at(0))
        bench.persist()
        assert bench.replica.driver.is_delivery_due
        node = ReplicaNode(
            bench.replica,
            clock=SystemClock(),
            client_address="",
            check_quorum_ms=1_000,
            guard=lambda call: call(),
            meter=CommandMeter(Observer(Families(CollectorRegistry()))),
        )
        applied: list[int] = []
        node.wait_applied(1, lambda: applied.append(node.image.provenance.end_offset))
        assert applied == [1]
        node.wait_applied(2, lambda: applied.append(2))
        assert bench.replica.controller.is_awaited

    asyncio.run(scenario())


def problem(bench: LoneReplica, check: str) -> str | None:
    checks = HealthChecks(bench.replica, ServerConfig()).ready_checks(lambda: False)
    return next(each.probe() for each in checks if each.name == check)


def test_a_follower_is_ready_while_it_writes() -> None:
    """Goal: no probe fails under load. Method: commits come with records that are being written."""
    bench, _ = following()
    answer(bench, high_watermark=1, records=record_at(0))
    bench.persist()
    bench.replica.deliver()
    answer(bench, high_watermark=2, records=record_at(1))
    assert bench.replica.node.high_watermark == 2
    assert bench.replica.controller.image.provenance.end_offset == 1
    assert problem(bench, "caught_up") is None
    bench.persist()
    assert problem(bench, "caught_up") is None


def test_many_commits_are_applied_in_turns() -> None:
    """Goal: peers do not wait for a long delivery. Method: ten batches, two in each turn."""
    bench, due = following()
    bench.delivery_turn_bytes = 2 * len(record_at(0))
    records = b"".join(record_at(offset) for offset in range(10))
    answer(bench, high_watermark=0, records=records)
    bench.persist()
    answer(bench, high_watermark=10, records=b"")
    image = bench.replica.controller
    ends = []
    for _ in range(4):
        bench.replica.deliver()
        ends.append(image.image.provenance.end_offset)
        # New commits ask for no turn of their own, and a node that is behind is not ready.
        assert due.pop() == "at once"
        assert not bench.replica.driver.is_delivery_due
        behind = f"the image is {10 - ends[-1]} records behind the high watermark"
        assert problem(bench, "caught_up") == behind
    assert ends == [2, 4, 6, 8]
    assert last_fetch(bench).fetch_offset == 10
    bench.replica.deliver()
    assert image.image.provenance.end_offset == 10
    assert problem(bench, "caught_up") is None
    assert due == ["due"]


def test_a_stored_high_watermark_does_not_force_the_rest() -> None:
    """Goal: a long delivery stays cut. Method: the core stores its high watermark between turns."""
    bench, _ = following()
    bench.delivery_turn_bytes = 1
    answer(bench, high_watermark=0, records=b"".join(record_at(offset) for offset in range(5)))
    bench.persist()
    answer(bench, high_watermark=5, records=b"")
    bench.replica.deliver()
    bench.groups.clear()
    bench.clock.time_ms += 2 * bench.replica.config.quorum.high_watermark_store_ms
    bench.replica.tick()
    assert StoreHighWatermark in {type(each) for group in bench.groups for each in group.effects}
    assert bench.replica.controller.image.provenance.end_offset == 1


def test_a_new_epoch_comes_behind_the_rest() -> None:
    """Goal: notifications stay in order. Method: a new epoch comes between two turns."""
    bench, _ = following()
    bench.delivery_turn_bytes = 1
    answer(bench, high_watermark=0, records=b"".join(record_at(offset) for offset in range(5)))
    bench.persist()
    answer(bench, high_watermark=5, records=b"")
    bench.replica.deliver()
    learn_new_epoch(bench)
    assert bench.replica.controller.image.provenance.end_offset == 5


def test_a_start_replays_in_turns() -> None:
    """Goal: a starting process answers for its health. Method: five records, one in each turn."""
    bench, _ = following()
    answer(bench, high_watermark=0, records=b"".join(record_at(offset) for offset in range(5)))
    bench.persist()
    answer(bench, high_watermark=5, records=b"")
    bench.replica.deliver()
    bench.clock.time_ms += 2 * bench.replica.config.quorum.high_watermark_store_ms
    bench.replica.tick()
    bench.persist()
    bench.delivery_turn_bytes = 1
    stores = bench.open(bench._log, bench._snapshot)
    replica = bench.run(stores, bench.replica.config)
    turns = 1
    while replica.replay():
        turns += 1
        assert replica.controller.image.provenance.end_offset == turns - 1
    assert turns == 5
    replica.start()
    assert replica.controller.image.provenance.end_offset == 5


def delivered_parts(bench: LoneReplica, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Base offsets of the batches of each delivery whose headers came with them."""
    controller = bench.replica.controller
    apply = controller.on_committed
    found: list[list[int]] = []

    def noting(data: bytes, end_offset: int, verified: Sequence[VerifiedBatches]) -> None:
        found.append([each.base_offset for part in verified for each in part.headers])
        apply(data, end_offset, verified)

    monkeypatch.setattr(controller, "on_committed", noting)
    return found


@pytest.mark.interpreted
def test_headers_read_on_arrival_come_with_the_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a follower reads and verifies each batch once. Method: two answers, one commit."""
    bench, _ = following()
    found = delivered_parts(bench, monkeypatch)
    answer(bench, high_watermark=0, records=record_at(0) + record_at(1))
    bench.persist()
    answer(bench, high_watermark=2, records=record_at(2))
    bench.persist()
    bench.replica.deliver()
    assert found == [[0, 1]]
    assert bench.replica.controller.image.provenance.end_offset == 2


@pytest.mark.interpreted
def test_records_of_a_lost_leader_are_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: what is delivered is what is in the log. Method: a new leader replaces two records."""
    bench, _ = following()
    found = delivered_parts(bench, monkeypatch)
    answer(bench, high_watermark=0, records=b"".join(map(record_at, range(3))))
    bench.persist()
    learn_new_epoch(bench)
    mine, leader = bench.voters[0].key, bench.voters[2].key
    begin = BeginQuorumEpochRequest(2, "cluster", mine, leader, 2, ())
    bench.replica.receive(3, arrived(begin))
    bench.persist()
    fetch = last_fetch(bench)
    diverging = OffsetAndEpoch(1, 1)
    bench.replica.receive(
        3, FetchResponse(fetch.request_id, ErrorCode.NONE, 3, 2, 0, diverging=diverging)
    )
    bench.persist()
    fetch = last_fetch(bench)
    assert fetch.fetch_offset == 1
    level = encode_record(FeatureLevelRecord("kraft.version", 1))
    records = encode_batch([level], base_offset=1, epoch=2, timestamp=2)
    bench.replica.receive(
        3, FetchResponse(fetch.request_id, ErrorCode.NONE, 3, 2, 2, records=records)
    )
    bench.persist()
    bench.replica.deliver()
    assert found == [[0, 1]]
    image = bench.replica.controller.image
    assert (image.provenance.end_offset, image.provenance.epoch) == (2, 2)
    assert image.features.levels["kraft.version"] == 1


def test_committed_batches_are_not_read_again() -> None:
    """Goal: the controller uses the headers it gets. Method: the bytes beside them are damaged."""
    bench, _ = following()
    data = record_at(0)
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    bench.replica.controller.on_committed(damaged, 1, [VerifiedBatches(data, scan_batches(data))])
    assert bench.replica.controller.image.provenance.end_offset == 1
