"""Turns over real streams: requests out, responses back on the way they came."""

from __future__ import annotations

import asyncio

import pytest

from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteResponse
from quorum.errors import ErrorCode
from quorum.transport.hello import Hello
from quorum.transport.limits import MESSAGE_BYTES_MAX
from quorum.types import NO_NODE, OffsetAndEpoch, ReplicaKey
from tests.support.peer_harness import (
    CLUSTER,
    PATIENCE_S,
    answer_to,
    fetch,
    key,
    replica,
    run,
    vote,
)

pytestmark = pytest.mark.usefixtures("carrier")


def test_a_fetch_and_a_vote_interleave_and_each_gets_its_answer() -> None:
    """Hold the Fetch, answer the Vote first, then the Fetch with records."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            follower.network.set_peers({1: leader.address, 2: "ignored:1"})
            follower.network.send(1, fetch(2, 10))
            follower.network.send(1, vote(2, 11))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            assert leader.handler.received == [(2, fetch(2, 10)), (2, vote(2, 11))]
            leader.network.send(2, answer_to(vote(2, 11)))
            leader.network.send(2, answer_to(fetch(2, 10), records=b"r" * 1000, high_watermark=7))
            await follower.handler.until(lambda: len(follower.handler.received) == 2)
            (_, first), (sender, second) = follower.handler.received
            assert isinstance(first, VoteResponse)
            assert sender == 1
            assert isinstance(second, FetchResponse)
            assert (second.request_id, second.records) == (10, b"r" * 1000)
            assert [status.peer for status in follower.network.statuses()] == [1]
            assert follower.network.statuses()[0].is_connected

    run(scenario())


def test_snapshot_chunks_of_a_mebibyte_arrive_whole() -> None:
    """Twenty large chunks, each asked when the one before arrived; more than the inline limit."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            chunk = bytes(range(256)) * 4096
            leader.handler.on_request = lambda sender, message: leader.network.send(
                sender, answer_to(message, chunk=chunk, size=len(chunk) * 20, chunk_crc=5)
            )

            def ask(position: int) -> None:
                request = FetchSnapshotRequest(
                    position, CLUSTER, key(2), 1, OffsetAndEpoch(9, 1), position, 1 << 20
                )
                follower.network.send(1, request)

            def on_chunk(_: int, message: object) -> None:
                assert isinstance(message, FetchSnapshotResponse)
                if message.position < 19:
                    ask(message.position + 1)

            follower.handler.on_request = on_chunk
            follower.network.set_peers({1: leader.address})
            ask(0)
            await follower.handler.until(lambda: len(follower.handler.received) == 20)
            assert all(
                isinstance(message, FetchSnapshotResponse) and message.chunk == chunk
                for _, message in follower.handler.received
            )

    run(scenario())


def test_bootstrap_ids_and_node_ids_name_their_own_streams() -> None:
    """Two channels to one server under two ids: each response returns under the id asked."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            leader.echo()
            follower.network.set_peers({-2: leader.address})
            follower.network.set_peers({1: leader.address})
            follower.network.send(-2, fetch(2, 1))
            follower.network.send(1, fetch(2, 2))
            await follower.handler.until(lambda: len(follower.handler.received) == 2)
            seen = {(sender, message.request_id) for sender, message in follower.handler.received}
            assert seen == {(-2, 1), (1, 2)}
            assert {sender for sender, _ in leader.handler.received} == {2}

    run(scenario())


def test_observers_without_an_id_are_distinguished() -> None:
    """Two anonymous observers with equal request ids each get their own answer."""

    async def scenario() -> None:
        anonymous = Hello(CLUSTER, ReplicaKey(NO_NODE), b"")
        async with (
            replica(1) as leader,
            replica(7, hello=anonymous) as one,
            replica(8, hello=anonymous) as other,
        ):
            for observer, wait in ((one, 11), (other, 22)):
                observer.network.set_peers({1: leader.address})
                observer.network.send(1, fetch(-1, 5, replica=ReplicaKey(-1), max_wait_ms=wait))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            senders = {sender for sender, _ in leader.handler.received}
            assert len(senders) == 2
            assert max(senders) < -1000
            for sender, request in leader.handler.received:
                leader.network.send(sender, answer_to(request, high_watermark=request.max_wait_ms))
            for observer, wait in ((one, 11), (other, 22)):
                await observer.handler.until(lambda seen=observer.handler: bool(seen.received))
                assert observer.handler.received[0][1].high_watermark == wait

    run(scenario())


def test_an_unexpected_response_is_dropped_and_counted() -> None:
    """A response to an unknown sender, a second response, and one after the stream ended."""

    async def scenario() -> None:
        async with replica(1) as leader:
            async with replica(2) as follower:
                follower.network.set_peers({1: leader.address})
                follower.network.send(1, fetch(2, 10))
                follower.network.send(1, fetch(2, 11))
                await leader.handler.until(lambda: len(leader.handler.received) == 2)
                leader.network.send(3, answer_to(fetch(3, 1)))
                leader.network.send(2, answer_to(fetch(2, 10)))
                leader.network.send(2, answer_to(fetch(2, 10)))
                await follower.handler.until(lambda: bool(follower.handler.received))
                assert leader.link.counters.responses_unroutable == 2
            while leader.network.service.stream_count:
                await asyncio.sleep(0)
            leader.network.send(2, answer_to(fetch(2, 11)))
            assert leader.link.counters.responses_unroutable == 3

    run(scenario())


def test_a_message_too_large_to_send_fails_its_request_only() -> None:
    """The oversized response is dropped and counted; the stream stays open.

    Method: the deadline passes after everything else is done, however slow the machine is.
    """

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, timeout_s=2 * PATIENCE_S) as follower:
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await leader.handler.until(lambda: bool(leader.handler.received))
            leader.network.send(2, answer_to(fetch(2, 1), records=bytes(MESSAGE_BYTES_MAX)))
            assert leader.link.counters.outbox_dropped == 1
            follower.network.send(1, vote(2, 2))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            leader.network.send(2, answer_to(vote(2, 2)))
            await follower.handler.until(lambda: bool(follower.handler.received))
            follower.expire_requests(1)
            assert follower.handler.failed == [(1, 1)]
            assert [m.request_id for _, m in follower.handler.received] == [2]

    run(scenario())


def test_messages_that_cannot_be_encoded_never_raise() -> None:
    """A number wider than its field: our request fails, our response is dropped."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1, fetch_offset=1 << 70))
            assert follower.handler.failed == []
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            follower.network.send(1, fetch(2, 2))
            await leader.handler.until(lambda: bool(leader.handler.received))
            leader.network.send(2, answer_to(fetch(2, 2), high_watermark=1 << 70))
            assert leader.link.counters.outbox_dropped == 1

    run(scenario())


@pytest.mark.invented_codes
def test_every_error_code_arrives_as_itself() -> None:
    """Half of them in hand-packed responses, half in protobuf ones."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            codes = list(ErrorCode)
            leader.handler.on_request = lambda sender, message: leader.network.send(
                sender, answer_to(message, error=codes[message.request_id])
            )
            follower.network.set_peers({1: leader.address})
            for number in range(len(codes)):
                follower.network.send(1, vote(2, number) if number % 2 else fetch(2, number))
            await follower.handler.until(lambda: len(follower.handler.received) == len(codes))
            assert [m.error for _, m in follower.handler.received] == codes

    run(scenario())
