"""Where a consumer goes when its position is not in the log, and if that fails on the way."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import Client, LogPosition, LogTruncationError, ResetPolicy, UnavailableError
from quorum.log_position import EpochEntry
from quorum.types import SnapshotId
from tests.support.served_node import cluster, serving
from tests.unit.client.test_log_consumer import client_of, new_epoch, value
from tests.unit.client.test_truncation import NEXT, read_all


@pytest.mark.parametrize("policy", ResetPolicy)
def test_a_plain_seek_is_not_compared_with_a_new_incarnation(policy):
    """Goal: no false alarm (320.3). Method: seek without an epoch, and the log is recovered."""

    async def scenario():
        _log, nodes = cluster(1)
        for text in "ab":
            nodes[0].commit(value(text))
        async with serving(*nodes), client_of(nodes) as client:
            consumer = await read_all(client, policy)
            nodes[0].incarnation = NEXT
            nodes[0].commit(value("later"))
            consumer.seek(2)
            got = []
            while len(got) < 2:
                got += await consumer.poll()
            assert [r.offset for r in got] == [2, 3]
            assert consumer.position.log_incarnation == NEXT.id

    asyncio.run(scenario())


def test_a_seek_beyond_the_end_begins_at_a_state_if_the_log_was_trimmed():
    """Goal: EARLIEST after a seek out of range. No state is at or above that offset."""

    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        log.trim(2)
        nodes[0].snapshot = SnapshotId(2, 1)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer()
            consumer.seek(100)
            assert all(record.is_state for record in await consumer.poll())
            assert (consumer.state.offset, consumer.position) == (4, LogPosition(4, 1))

    asyncio.run(scenario())


def lost_below_the_start(log, nodes):
    """A log in which nothing of epoch 3 is left, and that begins behind what replaced it."""
    for text in "abc":
        nodes[0].commit(value(text))
    log.epoch = 5
    nodes[0].commit(value("d"))
    log.trim(5)
    nodes[0].commit(value("e"))
    nodes[0].snapshot = SnapshotId(5, 5)


@pytest.mark.parametrize("failing", ["list_offsets", "read_state"])
def test_a_state_that_replaces_lost_records_is_not_forgotten(failing, monkeypatch):
    """Goal: never a silent gap. Method: the request before the state, or in it, fails once."""

    async def scenario():
        log, nodes = cluster(1)
        lost_below_the_start(log, nodes)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(position=LogPosition(6, 3))
            whole = client.read_state

            async def no_offsets(*_, **__):
                monkeypatch.setattr(client, "list_offsets", offsets)
                raise UnavailableError("the node is gone")

            async def no_state(**_):
                monkeypatch.setattr(client, "read_state", whole)
                raise UnavailableError("the node is gone")
                yield

            offsets = client.list_offsets
            monkeypatch.setattr(
                client, failing, no_offsets if failing == "list_offsets" else no_state
            )
            with pytest.raises(UnavailableError):  # noqa: PT012 - after some polls
                while True:
                    await consumer.poll(max_wait_ms=0)
            assert consumer.position == LogPosition(6, 3)
            got = []
            while not got:
                got = await consumer.poll()
            assert all(record.is_state for record in got)
            assert consumer.position == LogPosition(6, 5)

    asyncio.run(scenario())


def test_a_mark_inside_a_batch_of_the_log_differs():
    """Goal: honest bounds. Method: the log has one batch where the reader has read two."""

    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(value("a"), value("b"))
        new_epoch(log, nodes, "c", "d", "e")
        async with serving(*nodes), client_of(nodes) as client:
            marks = (EpochEntry(1, 0), EpochEntry(2, 2, b"m" * 16))
            stored = LogPosition(9, 2, marks)
            consumer = client.consumer(reset=ResetPolicy.NONE, position=stored)
            with pytest.raises(LogTruncationError) as caught:  # noqa: PT012 - after a poll
                for _ in range(2):
                    await consumer.poll(max_wait_ms=0)
            assert caught.value.truncation_offsets() == {("__cluster_metadata", 0): (2, 2, False)}

    asyncio.run(scenario())


def test_an_epoch_that_begins_above_the_position_is_no_epoch_of_it():
    """Goal: a position kept elsewhere, with a newer epoch than its record has, is found wrong."""

    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        new_epoch(log, nodes, "d", "e")
        async with serving(*nodes), client_of(nodes) as client:
            right = client.consumer(reset=ResetPolicy.NONE)
            for offset, epoch in ((4, 1), (5, 2), (6, 2), (1, 1)):
                right.seek(offset, epoch)
                await right.poll(max_wait_ms=0)
            for offset in (1, 3, 4):
                right.seek(offset, 2)
                for _ in range(2):
                    with pytest.raises(LogTruncationError) as caught:
                        await right.poll(max_wait_ms=0)
                found = caught.value
                assert (found.divergent_offset, found.is_exact) == (offset - 1, offset == 1)
            # With the epochs that were read, it is known where.
            read = LogPosition(4, 2, (EpochEntry(1, 0), EpochEntry(2, 2)))
            strict = client.consumer(reset=ResetPolicy.NONE, position=read)
            with pytest.raises(LogTruncationError) as caught:
                await strict.poll(max_wait_ms=0)
            assert (caught.value.divergent_offset, caught.value.is_exact) == (2, True)

    asyncio.run(scenario())


def test_a_state_that_no_node_has_is_waited_for_and_then_reported():
    async def scenario():
        _log, nodes = cluster(1)
        async with serving(*nodes), Client([nodes[0].address], timeout_seconds=0.3) as client:
            with pytest.raises(UnavailableError, match="100 was known before"):
                async for _ in client.read_state(at_least_offset=100):
                    pass

    asyncio.run(scenario())
