"""Watching: state first, then every change, over restarts, gaps and lost history."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import (
    TOPIC,
    Client,
    LogTruncationError,
    OffsetOutOfRangeError,
    ProtocolError,
    UnavailableError,
)
from quorate.client.channels import Nodes
from quorate.client.results import StateChunk
from quorate.client.watch import Watch
from quorum.log_position import LogPosition
from quorum.v1.metadata_pb2 import ChangeBatch as BatchMessage
from quorum.v1.metadata_pb2 import StateChunk as ChunkMessage
from quorum.v1.metadata_pb2 import WatchResponse
from tests.support.served_node import cluster, serving, start, stop


def client_of(nodes) -> Client:
    return Client([node.address for node in nodes], client_id="watcher")


async def take(events, count: int) -> list:
    return [await anext(events) for _ in range(count)]


def test_state_then_changes_with_their_headers():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            await client.set_config(TOPIC, "t", "retention.ms", "1")
            end = log.end
            watch = client.watch()
            events = aiter(watch)
            (state,) = await take(events, 1)
            assert isinstance(state, StateChunk)
            assert (state.offset, state.epoch, state.is_last) == (end, 1, True)
            assert len(state.records) >= 1
            await client.set_config(TOPIC, "t", "retention.ms", "2")
            (change,) = await take(events, 1)
            assert (change.base_offset, change.end_offset, change.epoch) == (end, end + 1, 1)
            headers = {header.name: header.value for header in change.headers}
            assert headers["principal"] == b"unauthenticated:watcher"
            assert (watch.offset, watch.epoch) == (end + 1, 1)
            await events.aclose()

    asyncio.run(scenario())


def test_a_watch_goes_on_where_it_was_over_a_restart():
    async def scenario():
        _log, nodes = cluster(1)
        services = []
        server = await start(nodes[0], services)
        address = nodes[0].address
        async with Client([address]) as client:
            events = aiter(client.watch())
            (state,) = await take(events, 1)
            nodes[0].commit()
            (first,) = await take(events, 1)
            await stop(server)
            nodes[0].commit()
            server = await start(nodes[0], services, address=address)
            nodes[0].commit()
            rest = await take(events, 2)
            offsets = [batch.base_offset for batch in (first, *rest)]
            assert offsets == [state.offset, state.offset + 1, state.offset + 2]
            await events.aclose()
        await stop(server)

    asyncio.run(scenario())


def test_lost_history_is_reported_and_trimmed_history_restarts_the_watch():
    async def scenario():
        log, nodes = cluster(1)
        log.epoch = 8
        for _ in range(4):
            nodes[0].commit()
        async with serving(*nodes), client_of(nodes) as client:
            with pytest.raises(LogTruncationError) as caught:
                await anext(aiter(client.watch(from_offset=3, from_epoch=7)))
            assert caught.value.divergent_offset == 1
            log.trim(4)
            with pytest.raises(OffsetOutOfRangeError):
                await anext(aiter(client.watch(from_offset=1, from_epoch=1, may_restart=False)))
            again = client.watch(from_offset=1, from_epoch=1)
            (state,) = await take(aiter(again), 1)
            assert (state.chunk, state.offset) == (0, 5)

    asyncio.run(scenario())


@pytest.mark.parametrize("may_restart", [True, False])
def test_an_offset_beyond_the_end_is_refused_at_once(may_restart):
    """No state is at or above it, so a watch that begins again would wait for ever."""

    async def scenario():
        _log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            watch = client.watch(from_offset=10**9, may_restart=may_restart)
            async with asyncio.timeout(10):
                with pytest.raises(OffsetOutOfRangeError) as caught:
                    await anext(aiter(watch))
            assert caught.value.bounds is not None
            assert caught.value.bounds.high_watermark == 1

    asyncio.run(scenario())


def test_an_outage_has_an_end():
    async def scenario():
        client = Client(["127.0.0.1:1"])
        with pytest.raises(UnavailableError, match="no watch for"):
            await anext(aiter(client.watch(outage_seconds_max=0.05)))
        await client.close()

    asyncio.run(scenario())


def changes(*ranges) -> WatchResponse:
    response = WatchResponse()
    for base, end in ranges:
        response.changes.batches.append(BatchMessage(base_offset=base, end_offset=end, epoch=1))
    return response


@pytest.mark.parametrize("ranges", [[(6, 7)], [(5, 6), (7, 8)], [(5, 6), (5, 6)], [(3, 5)]])
def test_a_gap_or_a_repetition_is_a_protocol_error(ranges):
    watch = Watch(Nodes(["n:1"]), None, client_id="", position=LogPosition(5))
    with pytest.raises(ProtocolError, match="follow offset"):
        list(watch._events(changes(*ranges)))


def test_progress_ahead_of_the_changes_is_a_protocol_error():
    """Goal: a mark vouches for what came before it. Method: one at, then one beyond the data."""
    watch = Watch(Nodes(["n:1"]), None, client_id="", position=LogPosition(5))
    response = WatchResponse()
    response.progress.offset = 5
    assert list(watch._events(response)) == []
    response.progress.offset = 6
    with pytest.raises(ProtocolError, match="progress to 6"):
        list(watch._events(response))


def test_a_watch_that_begins_again_never_goes_back():
    """Goal: no older state. Method: the log is trimmed, and the next node to answer is behind."""

    class Caller:
        def move_on(self, failure: Exception, address: str) -> None:
            del failure, address

    watch = Watch(Nodes(["n:1"]), Caller(), client_id="", position=LogPosition(5))
    watch._evaluate(OffsetOutOfRangeError("trimmed"), "here")
    response = WatchResponse(state=ChunkMessage(offset=4, chunk=0, is_last=True))
    with pytest.raises(UnavailableError, match="a state at 4"):
        list(watch._events(response))
    assert watch.offset == -1
    response.state.offset = 5
    assert [each.to_message() for each in watch._events(response)] == [response.state]


def test_a_watch_may_be_resumed_inside_a_batch():
    watch = Watch(Nodes(["n:1"]), None, client_id="", position=LogPosition(5))
    assert len(list(watch._events(changes((3, 7), (7, 8))))) == 2
    assert watch.offset == 8


def test_the_position_is_behind_what_was_handed_out_and_no_further():
    """Goal: who stores it with each event misses none. Method: one message with three changes."""

    async def scenario():
        _log, nodes = cluster(1)
        for _ in range(3):
            nodes[0].commit()
        async with serving(*nodes), client_of(nodes) as client:
            watch = client.watch(position=LogPosition(1, 1))
            seen = []
            for _ in range(3):
                # Each time from what was stored, as after a restart; then in the same watch.
                events = aiter(watch)
                seen.append(await anext(events))
                assert watch.position.offset == seen[-1].end_offset
                await events.aclose()
                if len(seen) == 1:
                    watch = client.watch(position=watch.position)
            assert [change.base_offset for change in seen] == [1, 2, 3]

    asyncio.run(scenario())


def test_a_watch_that_begins_in_an_empty_log_has_a_position_that_can_be_committed():
    watch = Watch(Nodes(["n:1"]), None, client_id="")
    assert list(watch._events(WatchResponse(state=ChunkMessage(offset=0, chunk=0, is_last=True))))
    list(watch._events(changes((0, 2))))
    assert watch.position.epochs == ((1, 0, b""),)
