"""Truncation of what a consumer has read: what it reports, and what its policy does about it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from quorate.client import (
    Client,
    LogPosition,
    LogTruncationError,
    ResetPolicy,
    UnavailableError,
    Watch,
)
from quorate.client import watch as watch_module
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.incarnation import LogIncarnation
from quorum.log_position import FIRST_INCARNATION_ID
from tests.support.served_node import cluster, serving
from tests.unit.client.test_log_consumer import client_of, new_epoch, truncated, value


async def read_all(client: Client, policy: ResetPolicy = ResetPolicy.NONE):
    consumer = client.consumer(reset=policy, position=LogPosition(0))
    while await consumer.poll(max_wait_ms=0):
        pass
    return consumer


def test_the_error_names_the_first_lost_record_by_partition_and_only_a_seek_ends_it():
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        async with serving(*nodes), client_of(nodes) as client:
            consumer = await read_all(client)
            truncated(log, nodes)
            assert await consumer.poll() == []  # fenced
            for _ in range(2):
                with pytest.raises(LogTruncationError) as caught:
                    await consumer.poll()
                lost = caught.value.truncation_offsets()
                assert lost == {("__cluster_metadata", 0): (2, 1, True)}
            consumer.seek(2, 1)
            assert [r.offset for r in await consumer.poll()] == [2, 3, 4]

    asyncio.run(scenario())


def test_a_position_has_the_digest_of_what_was_read_wherever_reading_began():
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        new_epoch(log, nodes, "d", "e")
        async with serving(*nodes), client_of(nodes) as client:
            whole = (await read_all(client)).position
            digest = EMPTY_LOG_DIGEST
            for batch in log.batches:
                digest = fold(digest, batch)
            assert whole.log_digest == digest
            assert whole.epochs[1] == (2, 4, log.digest_at(4))
            later = client.consumer(position=LogPosition(2, 1))
            await later.poll()
            assert later.position.log_digest == digest
            watch = client.watch(position=LogPosition(2, 1))
            async for change in watch:
                if change.end_offset == log.end:
                    break
            assert watch.position == whole
            events = aiter(client.watch())
            assert (await anext(events)).log_digest == digest
            await events.aclose()

    asyncio.run(scenario())


def test_digests_that_contradict_the_epochs_make_the_offset_a_bound():
    """Other records under the same epochs, as two recoveries could write."""

    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(value("a"))
        new_epoch(log, nodes, "b", "c")
        async with serving(*nodes), client_of(nodes) as client:
            consumer = await read_all(client)
            log.truncate(1)
            log.epoch = 1
            nodes[0].commit(value("other"))
            new_epoch(log, nodes, "b")
            log.epoch = 3
            log.epoch_start = log.end
            nodes[0].commit(value("x"))
            with pytest.raises(LogTruncationError, match="at the latest from offset 2") as caught:  # noqa: PT012 - after a poll
                for _ in range(3):
                    await consumer.poll()
            assert caught.value.truncation_offsets() == {("__cluster_metadata", 0): (2, 2, False)}

    asyncio.run(scenario())


NEXT = LogIncarnation(1, b"2" * 16)


def begin_incarnation(log, node, *, is_kept: bool) -> None:
    """Other records under the same epoch, unless all are kept: epochs prove nothing."""
    if not is_kept:
        log.truncate(2)
        node.commit(value("other"))
    node.incarnation = NEXT


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_new_incarnation_is_compared_by_digest(is_kept):
    async def scenario():
        log, nodes = cluster(1)
        for text in "ab":
            nodes[0].commit(value(text))
        async with serving(*nodes), client_of(nodes) as client:
            stored = (await read_all(client)).position
            assert stored.log_incarnation == FIRST_INCARNATION_ID
            begin_incarnation(log, nodes[0], is_kept=is_kept)
            nodes[0].commit(value("later"))
            consumer = client.consumer(reset=ResetPolicy.NONE, position=stored)
            if is_kept:
                assert await consumer.poll(max_wait_ms=0) == []
                assert [r.offset for r in await consumer.poll()] == [3]
                assert consumer.position.log_incarnation == NEXT.id
                return
            assert await consumer.poll() == []
            for _ in range(2):
                with pytest.raises(LogTruncationError) as caught:
                    await consumer.poll()
                assert (caught.value.divergent_offset, caught.value.is_exact) == (3, False)
            assert consumer.position == stored
            # Who seeks after that goes on in the new log, and not at a former voter.
            consumer.seek(2, 1)
            assert consumer.position.log_incarnation == NEXT.id

    asyncio.run(scenario())


def test_a_plain_seek_says_nothing_about_epochs_so_no_incarnation_contradicts_it():
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        async with serving(*nodes), client_of(nodes) as client:
            consumer = await read_all(client)
            consumer.seek(1)
            begin_incarnation(log, nodes[0], is_kept=True)
            assert await consumer.poll(max_wait_ms=0) == []
            assert [r.offset for r in await consumer.poll()] == [1, 2, 3]
            assert consumer.position.log_incarnation == NEXT.id

    asyncio.run(scenario())


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_watch_is_compared_with_a_new_incarnation_too(is_kept):
    async def scenario():
        log, nodes = cluster(1)
        for text in "ab":
            nodes[0].commit(value(text))
        async with serving(*nodes), client_of(nodes) as client:
            watch = client.watch()
            events = aiter(watch)
            await anext(events)
            await events.aclose()
            assert watch.position.log_incarnation == FIRST_INCARNATION_ID
            begin_incarnation(log, nodes[0], is_kept=is_kept)
            nodes[0].commit(value("later"))
            again = aiter(client.watch(position=watch.position))
            if is_kept:
                assert (await anext(again)).base_offset == 3
            else:
                with pytest.raises(LogTruncationError, match="at the latest from offset 3"):
                    await anext(again)
            await again.aclose()

    asyncio.run(scenario())


def test_a_watch_waits_for_a_leader_that_confirms_a_truncation(monkeypatch):
    """Without one the watch goes on; it ended with UnavailableError."""
    monkeypatch.setattr(watch_module, "SILENCE_SECONDS_MAX", 0.3)
    ask, failed = Watch._ask, []

    async def scenario():
        log, nodes = cluster(1)
        for text in "ab":
            nodes[0].commit(value(text))

        async def ask_in_vain_once(watch, request):
            try:
                return await ask(watch, request)
            except UnavailableError as error:
                failed.append(error)
                log.leader = nodes[0].node_id
                raise

        monkeypatch.setattr(Watch, "_ask", ask_in_vain_once)
        async with serving(*nodes), client_of(nodes) as client:
            watch = client.watch()
            events = aiter(watch)
            await anext(events)
            await events.aclose()
            begin_incarnation(log, nodes[0], is_kept=False)
            nodes[0].commit(value("later"))
            log.leader = None
            again = aiter(client.watch(position=watch.position))
            with pytest.raises(LogTruncationError, match="at the latest from offset 3"):
                await anext(again)
            assert failed

    asyncio.run(scenario())


def test_a_state_that_breaks_off_is_read_again_from_its_beginning(monkeypatch):
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        log.trim(2)
        async with serving(*nodes), client_of(nodes) as client:
            read_state = client.read_state

            async def broken(**options):
                async for chunk in read_state(**options):
                    yield replace(chunk, is_last=False)
                    raise ConnectionError("the node is gone")

            consumer = client.consumer(position=LogPosition(0))
            monkeypatch.setattr(client, "read_state", broken)
            assert await consumer.poll()
            with pytest.raises(ConnectionError):
                await consumer.poll()
            assert consumer.position == LogPosition(0)
            monkeypatch.setattr(client, "read_state", read_state)
            assert await consumer.poll()
            assert (consumer.state.chunk, consumer.position) == (0, LogPosition(4, 1))

    asyncio.run(scenario())
