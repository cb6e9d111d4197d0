"""The metadata log for consumers: epochs, times, bounds and what may be seen."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from quorate.client import Client, OffsetOutOfRangeError, RefusedError
from quorate.client.errors import from_rpc
from quorate.services import log_reads
from quorum.errors import QuorumUsageError
from quorum.types import SnapshotId
from quorum.v1.metadata_pb2 import (
    FetchLogRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord
from tests.support.served_node import cluster, serving


def with_client(scenario, *, nodes=1, leader=1, ask=None):
    """Run ``scenario(log, nodes, client)``; the client knows the nodes of ``ask``."""

    async def run():
        log, made = cluster(nodes, leader=leader)
        async with serving(*made):
            addresses = [made[n - 1].address for n in ask or range(1, nodes + 1)]
            async with Client(addresses, timeout_seconds=30) as client:
                await scenario(log, made, client)

    asyncio.run(run())


async def refused(client, method: str, request) -> RefusedError:
    """The refusal of a single call, which the client would repeat until its deadline."""
    stub = client._nodes.node(client._nodes.addresses[0]).metadata
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await getattr(stub, method)(request, timeout=30)
    error = from_rpc(caught.value)
    assert isinstance(error, RefusedError)
    return error


def test_offset_for_epoch_is_the_largest_epoch_at_or_below():
    async def scenario(log, nodes, client):
        log.epoch, log.epoch_start = 4, log.end
        nodes[0].commit()
        nodes[0].commit()
        log.epoch = 9
        for asked, expected in [(0, (-1, -1)), (1, (1, 1)), (3, (1, 1)), (4, (4, 3)), (9, (4, 3))]:
            answer = await client.offset_for_leader_epoch(asked)
            assert (answer.leader_epoch, answer.end_offset) == expected
        beyond = await refused(
            client, "OffsetForLeaderEpoch", OffsetForLeaderEpochRequest(leader_epoch=10)
        )
        assert beyond.code_name == "UNKNOWN_LEADER_EPOCH"
        assert beyond.leader.leader_epoch == 9

    with_client(scenario)


def test_the_epoch_before_the_log_start_ends_there():
    """Also where every record of it is gone: a consumer at the log start has lost nothing."""

    async def scenario(log, nodes, client):
        log.epoch, log.epoch_start = 4, log.end
        log.trim(log.end)
        log.batches.clear()
        nodes[0].commit()
        assert log.start.epoch == 1
        for asked, expected in [(0, (-1, -1)), (1, (1, log.start.offset)), (4, (4, log.end))]:
            answer = await client.offset_for_leader_epoch(asked)
            assert (answer.leader_epoch, answer.end_offset) == expected

    with_client(scenario)


def test_offsets_by_time_carry_their_epoch():
    async def scenario(log, nodes, client):
        start = log.clock
        for n in range(1, 20):
            log.clock = start + n * 10
            if n == 10:
                log.epoch, log.epoch_start = 2, log.end
            nodes[0].commit(*[encode_record(ConfigRecord(2, "t", "k", str(n)))] * 2)
        log.clock = start + 200
        for time, expected in [
            (start - 1, (0, 1, start)),
            (start + 1, (1, 1, start + 10)),
            (start + 10, (1, 1, start + 10)),
            (start + 95, (19, 2, start + 100)),
            (start + 190, (37, 2, start + 190)),
            (start + 191, (-1, -1, -1)),
            (-1, (log.end, 2, -1)),
            (-2, (0, 1, -1)),
            (-3, (log.end - 1, 2, start + 190)),
        ]:
            answer = await client.list_offsets(time)
            assert (answer.offset, answer.leader_epoch, answer.timestamp) == expected, time
        with pytest.raises(RefusedError, match="unknown time -4"):
            await client.list_offsets(-4)

    with_client(scenario)


def test_nothing_is_latest_before_the_leaders_own_epoch_is_committed():
    async def scenario(log, nodes, client):
        log.epoch_start = log.end
        assert (await client.list_offsets(-2)).offset == 0
        error = await refused(client, "ListOffsets", ListOffsetsRequest(timestamp=-1))
        assert error.code_name == "OFFSET_NOT_AVAILABLE"

    with_client(scenario)


def test_fetching_without_a_known_high_watermark_has_to_wait():
    async def scenario(log, nodes, client):
        nodes[0].knows_high_watermark = False
        error = await refused(client, "FetchLog", FetchLogRequest(offset=0))
        assert error.code_name == "OFFSET_NOT_AVAILABLE"

    with_client(scenario)


def test_fetch_checks_the_epoch_unless_it_is_negative():
    async def scenario(log, nodes, client):
        log.epoch = 5
        with pytest.raises(RefusedError, match="FENCED_LEADER_EPOCH") as caught:
            await client.fetch_log(FetchLogRequest(offset=0, current_leader_epoch=4))
        assert caught.value.leader.leader_epoch == 5
        request = FetchLogRequest(offset=0, current_leader_epoch=6)
        assert (await refused(client, "FetchLog", request)).code_name == "UNKNOWN_LEADER_EPOCH"
        for request in (FetchLogRequest(), FetchLogRequest(current_leader_epoch=-1)):
            answer = await client.fetch_log(request)
            assert (answer.leader_epoch, answer.high_watermark) == (5, log.end)
            assert answer.records == b"".join(log.batches)

    with_client(scenario)


def test_an_epoch_without_a_leader_fences_no_client():
    async def scenario(log, nodes, client):
        log.leader, log.epoch = None, 5
        answer = await client.fetch_log(FetchLogRequest(current_leader_epoch=4))
        assert (answer.leader_id, answer.leader_epoch) == (-1, 5)
        request = FetchLogRequest(offset=0, current_leader_epoch=6)
        assert (await refused(client, "FetchLog", request)).code_name == "UNKNOWN_LEADER_EPOCH"

    with_client(scenario)


@pytest.mark.parametrize(
    ("method", "request_type"),
    [("ListOffsets", ListOffsetsRequest), ("OffsetForLeaderEpoch", OffsetForLeaderEpochRequest)],
)
def test_lookups_are_fenced_by_the_leader_epoch_and_by_leadership(method, request_type):
    """Goal: 320.1 for both lookups. Method: an older, a newer and no epoch; then a follower."""

    async def scenario(log, nodes, client):
        log.epoch = 5
        for epoch, code in ((4, "FENCED_LEADER_EPOCH"), (6, "UNKNOWN_LEADER_EPOCH")):
            request = request_type(current_leader_epoch=epoch)
            assert (await refused(client, method, request)).code_name == code
        stub = client._nodes.node(client._nodes.addresses[0]).metadata
        for request in (request_type(), request_type(current_leader_epoch=-1)):
            await getattr(stub, method)(request, timeout=30)
        log.leader = 2
        request = request_type(current_leader_epoch=5)
        error = await refused(client, method, request)
        assert error.code_name == "NOT_LEADER_OR_FOLLOWER"
        assert (error.leader.leader_id, error.leader.leader_epoch) == (2, 5)

    with_client(scenario, nodes=2)


def test_a_lagging_follower_reports_no_divergence():
    async def scenario(log, nodes, client):
        nodes[1].applied_limit = 1
        for _ in range(3):
            nodes[0].commit()
        request = FetchLogRequest(offset=3, last_fetched_epoch=1)
        assert (await refused(client, "FetchLog", request)).code_name == "OFFSET_NOT_AVAILABLE"

    with_client(scenario, nodes=2, leader=1, ask=[2])


@pytest.mark.parametrize("offset", [1, 99])
def test_a_deposed_leader_reports_no_divergence(offset):
    """A client with records of a newer epoch knows a later leader than this node."""

    async def scenario(log, nodes, client):
        request = FetchLogRequest(offset=offset, last_fetched_epoch=log.epoch + 1)
        assert (await refused(client, "FetchLog", request)).code_name == "UNKNOWN_LEADER_EPOCH"

    with_client(scenario)


def test_an_offset_beyond_the_end_is_out_of_range_with_the_bounds():
    async def scenario(log, nodes, client):
        nodes[0].snapshot = SnapshotId(1, 1)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            await client.fetch_log(FetchLogRequest(offset=99))
        bounds = caught.value.bounds
        assert (bounds.high_watermark, bounds.snapshot_end_offset, bounds.snapshot_epoch) == (
            1,
            1,
            1,
        )

    with_client(scenario)


def test_a_log_trimmed_while_it_is_read_is_out_of_range(monkeypatch):
    """Goal: the consumer gets the new log start. Method: trim during the read."""

    async def scenario(log, nodes, client):
        for _ in range(5):
            nodes[0].commit()

        async def trimmed_meanwhile(offset, max_bytes, end_offset):
            log.trim(4)
            raise QuorumUsageError("read at 2, below log start 4")

        monkeypatch.setattr(nodes[0], "read_log", trimmed_meanwhile)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            await client.fetch_log(FetchLogRequest(offset=2))
        assert caught.value.bounds.earliest_offset == 4

    with_client(scenario)


@pytest.mark.parametrize(("time", "expected"), [(-2, 4), (0, 4)])
def test_offsets_are_listed_anew_when_the_log_is_trimmed_meanwhile(monkeypatch, time, expected):
    """Goal: an answer that holds for the log as it is. Method: trim inside the first read.

    Asked for the earliest record, and for the first one at or after the year 1970.
    """

    async def scenario(log, nodes, client):
        for _ in range(5):
            nodes[0].commit()
        read = nodes[0].read_log

        async def trimmed_meanwhile(offset, max_bytes, end_offset):
            if log.start.offset < 4:
                log.trim(4)
                raise QuorumUsageError(f"read at {offset}, below log start 4")
            return await read(offset, max_bytes, end_offset)

        monkeypatch.setattr(nodes[0], "read_log", trimmed_meanwhile)
        assert (await client.list_offsets(time)).offset == expected

    with_client(scenario)


def test_fetch_names_the_point_of_divergence_instead_of_records():
    """Epoch 1 ends at 2 here; a reader that has more of it, or an epoch in between, differs."""

    async def scenario(log, nodes, client):
        nodes[0].commit()
        log.epoch, log.epoch_start = 4, log.end
        for _ in range(3):
            nodes[0].commit()
        for offset, epoch, expected in [(4, 1, (1, 2)), (3, 2, (1, 2)), (4, 3, (1, 2))]:
            request = FetchLogRequest(offset=offset, last_fetched_epoch=epoch)
            answer = await client.fetch_log(request)
            assert (answer.diverging.epoch, answer.diverging.offset) == expected
            assert answer.records == b""
        for offset, epoch in [(2, 1), (1, 1), (5, 4), (4, -1)]:
            request = FetchLogRequest(offset=offset, last_fetched_epoch=epoch)
            answer = await client.fetch_log(request)
            assert answer.diverging is None

    with_client(scenario)


def test_a_held_fetch_ends_with_its_time_or_a_record_and_leaves_no_timer():
    async def scenario(log, nodes, client):
        fetch = client._nodes.node(client._nodes.addresses[0]).metadata.FetchLog
        answer = await fetch(FetchLogRequest(offset=log.end, max_wait_ms=20), timeout=10)
        assert not answer.records
        held = asyncio.ensure_future(
            fetch(FetchLogRequest(offset=log.end, max_wait_ms=29_000), timeout=30)
        )
        while not timers():
            await asyncio.sleep(0.01)
        nodes[0].commit()
        assert (await held).records
        assert not timers()

    def timers():
        scheduled = asyncio.get_running_loop()._scheduled
        return [each for each in scheduled if each._callback is log_reads._end]

    with_client(scenario)
