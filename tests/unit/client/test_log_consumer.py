"""Consuming the log over leader changes, truncation and trimming (KIP-320)."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import (
    Client,
    LogPosition,
    LogState,
    LogTruncationError,
    OffsetOutOfRangeError,
    RefusedError,
    ResetPolicy,
    UnavailableError,
)
from quorum.types import SnapshotId
from statemachine.codec import decode_record, encode_record
from statemachine.records import ConfigRecord
from tests.support.served_node import cluster, serving


def value(text: str) -> bytes:
    return encode_record(ConfigRecord(2, "t", "k", text))


def client_of(nodes) -> Client:
    return Client([node.address for node in nodes], timeout_seconds=30)


def new_epoch(log, nodes, *texts: str, leader: int = 1) -> None:
    log.epoch += 1
    log.epoch_start = log.end
    log.leader = leader
    for text in texts:
        nodes[0].commit(value(text))


def test_records_come_in_order_with_their_epoch():
    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(value("a"), value("b"))
        new_epoch(log, nodes, "c")
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer()
            records = await consumer.poll()
            assert [(r.offset, r.leader_epoch) for r in records] == [(0, 1), (1, 1), (2, 1), (3, 2)]
            assert consumer.position == LogPosition(4, 2)
            assert consumer.high_watermark == 4
            assert await consumer.poll(max_wait_ms=0) == []
            wait = asyncio.create_task(consumer.poll(max_wait_ms=5000))
            # The feed of the watches listens too.
            await nodes[0].has_listeners(2)
            nodes[0].commit(value("d"))
            assert [r.offset for r in await wait] == [4]

    asyncio.run(scenario())


def test_only_what_is_committed_is_seen():
    async def scenario():
        _log, nodes = cluster(1)
        nodes[0].applied_limit = 1
        nodes[0].commit(value("a"))
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer()
            assert [r.offset for r in await consumer.poll()] == [0]
            assert await consumer.poll(max_wait_ms=0) == []

    asyncio.run(scenario())


def test_seeking_into_a_batch_hands_out_only_what_was_asked_for():
    async def scenario():
        _, nodes = cluster(1)
        nodes[0].commit(value("a"), value("b"), value("c"))
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer()
            consumer.seek(2)
            assert [r.offset for r in await consumer.poll()] == [2, 3]

    asyncio.run(scenario())


def test_a_new_leader_makes_the_position_be_validated_and_nothing_is_lost():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))
            await consumer.poll()
            new_epoch(log, nodes, "a")
            fenced = await consumer.poll()
            assert fenced == []
            assert [r.offset for r in await consumer.poll()] == [1]
            assert consumer.position == LogPosition(2, 2)

    asyncio.run(scenario())


def test_an_epoch_without_a_leader_does_not_block_a_consumer():
    """A candidate raised the epoch and died; the leader of the earlier epoch continues."""

    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))
            await consumer.poll()
            log.leader, log.epoch = None, 7
            assert await consumer.poll(max_wait_ms=0) == []
            log.leader, log.epoch = 1, 1
            nodes[0].commit(value("a"))
            assert [r.offset for r in await consumer.poll()] == [1]

    asyncio.run(scenario())


def truncated(log, nodes) -> None:
    """The log loses [2, 4) of epoch 1 and continues in epoch 2."""
    log.truncate(2)
    new_epoch(log, nodes, "x", "y", "z")


def test_truncation_without_a_policy_names_the_first_divergent_offset():
    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(value("a"))
        nodes[0].commit(value("b"))
        nodes[0].commit(value("c"))
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))
            assert len(await consumer.poll()) == 4
            truncated(log, nodes)
            with pytest.raises(LogTruncationError) as caught:  # noqa: PT012 - after some polls
                for _ in range(3):
                    await consumer.poll()
            assert isinstance(caught.value, OffsetOutOfRangeError)
            assert (caught.value.divergent_offset, caught.value.divergent_epoch) == (2, 1)

    asyncio.run(scenario())


def test_a_stored_position_finds_truncation_after_a_restart():
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        truncated(log, nodes)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(4, 1))
            with pytest.raises(LogTruncationError):
                await consumer.poll()
            blind = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(4))
            assert [r.offset for r in await blind.poll()] == [4]

    asyncio.run(scenario())


@pytest.mark.parametrize("policy", [ResetPolicy.EARLIEST, ResetPolicy.LATEST])
def test_truncation_with_a_policy_moves_to_the_divergence(policy, caplog):
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        truncated(log, nodes)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(reset=policy, position=LogPosition(4, 1))
            got = []
            while len(got) < 3:
                got += await consumer.poll()
            assert [(r.offset, r.leader_epoch) for r in got] == [(2, 2), (3, 2), (4, 2)]

    asyncio.run(scenario())
    assert "history changed" in caplog.text


def test_a_reset_asks_no_leader_older_than_the_newest_known(monkeypatch):
    """A replaced leader would name an end that is long behind, and what follows came twice."""

    async def scenario():
        log, nodes = cluster(1)
        new_epoch(log, nodes, "a")
        async with serving(*nodes), client_of(nodes) as client:
            asked = []
            list_offsets = client.list_offsets

            async def listening(time, *, leader_epoch):
                asked.append(leader_epoch)
                return await list_offsets(time, leader_epoch=leader_epoch)

            monkeypatch.setattr(client, "list_offsets", listening)
            consumer = client.consumer(reset=ResetPolicy.LATEST, position=LogPosition(0))
            await consumer.poll()
            consumer.seek(100)
            assert await consumer.poll() == []
            assert consumer.position == LogPosition(2, 2)
            log.trim(1)
            restarted = client.consumer(reset=ResetPolicy.LATEST, position=LogPosition(0, 1))
            await restarted.poll()
            await restarted.poll()
            assert asked == [2, 1, 2]

    asyncio.run(scenario())


def test_nothing_of_what_was_read_is_left_and_the_log_begins_above():
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        log.epoch = 5
        nodes[0].commit(value("d"))
        log.trim(5)
        nodes[0].commit(value("e"))
        nodes[0].snapshot = SnapshotId(5, 5)
        async with serving(*nodes), client_of(nodes) as client:
            strict = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(6, 3))
            with pytest.raises(LogTruncationError, match="at the latest from offset 5") as caught:
                await strict.poll()
            assert (caught.value.divergent_offset, caught.value.divergent_epoch) == (5, -1)
            assert not caught.value.is_exact
            lenient = client.consumer(position=LogPosition(6, 3))
            got = []
            while not got:
                got = await lenient.poll()
            # What replaced the lost records was trimmed: only the state has it.
            assert lenient.state == LogState(6, 5, 0, is_last=True)
            assert lenient.position == LogPosition(6, 5)

    asyncio.run(scenario())


def test_below_the_log_start_the_policy_decides():
    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        log.trim(2)
        nodes[0].snapshot = SnapshotId(2, 1)
        async with serving(*nodes), client_of(nodes) as client:
            strict = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))
            with pytest.raises(OffsetOutOfRangeError) as caught:
                await strict.poll()
            bounds = caught.value.bounds
            assert (bounds.earliest_offset, bounds.snapshot_end_offset) == (2, 2)
            assert not isinstance(caught.value, LogTruncationError)
            lenient = client.consumer(position=LogPosition(0))
            got = []
            while not got:
                got = await lenient.poll()
            assert lenient.state == LogState(4, 1, 0, is_last=True)
            assert all(record.is_state for record in got)
            assert [decode_record(r.value) for r in got] == [ConfigRecord(2, "t", "k", "c")]
            nodes[0].commit(value("d"))
            assert [r.offset for r in await lenient.poll()] == [4]
            assert lenient.state is None
            latest = client.consumer(reset=ResetPolicy.LATEST)
            await latest.poll(max_wait_ms=0)
            assert latest.position == LogPosition(5, 1)

    asyncio.run(scenario())


def test_below_the_log_start_comes_the_state_of_the_checkpoint_and_each_record_behind_it():
    """Goal: a state as of the checkpoint's offset, then the records from exactly that offset.
    Method: a node that has applied more."""

    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(value("a"))
        nodes[0].commit(value("b"))
        at_checkpoint = nodes[0].image
        nodes[0].commit(value("c"))
        nodes[0].commit(value("d"))
        end = at_checkpoint.provenance.end_offset
        log.trim(end)
        nodes[0].snapshot, nodes[0].checkpoint = SnapshotId(end, 1), at_checkpoint
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(position=LogPosition(0))
            got = []
            while not got:
                got = await consumer.poll()
            assert consumer.state == LogState(end, 1, 0, is_last=True)
            assert [decode_record(r.value) for r in got] == [ConfigRecord(2, "t", "k", "b")]
            read = await consumer.poll()
            assert (consumer.state, [r.offset for r in read]) == (None, [end, end + 1])

    asyncio.run(scenario())


def test_what_was_trimmed_away_was_not_cut():
    """Goal: no false alarm. Method: a new leader whose log begins above the read position, in its
    own epoch; none of the read records is there for a comparison."""

    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        async with serving(*nodes), client_of(nodes) as client:
            strict = client.consumer(reset=ResetPolicy.NONE)
            strict.seek(0)
            assert [r.offset for r in await strict.poll()] == [0, 1, 2, 3]
            new_epoch(log, nodes, "d", "e")
            log.trim(5)
            nodes[0].snapshot = SnapshotId(5, 2)
            strict._meet_leader(1, 2)
            with pytest.raises(OffsetOutOfRangeError) as caught:
                await strict.poll()
            assert not isinstance(caught.value, LogTruncationError)

    asyncio.run(scenario())


def test_without_a_position_and_policy_nothing_is_guessed():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            with pytest.raises(OffsetOutOfRangeError, match="no position"):
                await client.consumer(reset=ResetPolicy.NONE).poll()

    asyncio.run(scenario())


def test_an_epoch_the_leader_does_not_know_yet_is_waited_for():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            log.epoch = 9
            with pytest.raises(RefusedError, match="FENCED_LEADER_EPOCH"):
                await client.list_offsets(-1, leader_epoch=1)
            client._query_timeout = 0.2
            with pytest.raises(UnavailableError, match="UNKNOWN_LEADER_EPOCH"):
                await client.list_offsets(-1, leader_epoch=10)

    asyncio.run(scenario())


def test_every_fetch_is_checked_by_the_server_too():
    """The position was found valid before; the log changes between that and the fetch."""

    async def scenario():
        log, nodes = cluster(1)
        for text in "abc":
            nodes[0].commit(value(text))
        truncated(log, nodes)
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(4, 1))
            consumer._must_validate = False
            with pytest.raises(LogTruncationError) as caught:
                await consumer.poll()
            assert (caught.value.divergent_offset, caught.value.divergent_epoch) == (2, 1)

    asyncio.run(scenario())
