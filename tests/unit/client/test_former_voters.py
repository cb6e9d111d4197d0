"""Readers that meet a former voter of a recovered cluster: it has lost records, and no leader."""

from __future__ import annotations

import asyncio
import re

import pytest

from quorate.client import Client, LogTruncationError, UnavailableError
from quorate.client.log_consumer import ResetPolicy
from quorate.client.positions import committed, position_message
from quorate.client.queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from quorate.client.results import ChangeBatch
from quorate.services import change_feed, log_reads
from quorum.incarnation import LogIncarnation
from quorum.log_position import FIRST_INCARNATION_ID, LogPosition
from quorum.v1.metadata_pb2 import CommittedPosition as PositionMessage
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord
from tests.support.served_node import cluster, serving

NEXT = LogIncarnation(1, b"2" * 16)


def value(text):
    return encode_record(ConfigRecord(2, "t", "retention.ms", text))


def two_histories(*, is_lost=True):
    """A former voter with "ab" and a lost record, and the leader of the recovered cluster."""
    (_, (former,)), (log, (leader,)) = cluster(1), cluster(1)
    for node in former, leader:
        for text in "ab":
            node.commit(value(text))
    if is_lost:
        former.commit(value("lost"))
    former.log.leader = None
    log.epoch, leader.incarnation = 1001, NEXT
    for text in "new":
        leader.commit(value(text))
    return former, leader


async def served_positions(leader):
    """What a consumer and a watch of the recovered cluster store behind "ab"."""
    async with Client([leader.address]) as client:
        consumer = client.consumer(position=LogPosition(3, 1))
        await consumer.poll(max_wait_ms=0)
        digest = await leader.log_digest(3)
        return LogPosition(3, 1, (), digest, NEXT.id, consumer.position.newest_incarnation)


def test_a_consumer_goes_on_to_a_node_with_a_leader_and_learns_what_was_lost():
    async def scenario():
        former, leader = two_histories()
        async with serving(former), serving(leader):
            async with Client([former.address, leader.address]) as client:
                consumer = client.consumer(position=LogPosition(0), reset=ResetPolicy.EARLIEST)
                read = {}
                while consumer.position.offset < leader.log.end:
                    for each in await consumer.poll(max_wait_ms=0):
                        read[each.offset] = each.value
                assert read[3] == value("n")
                stored = LogPosition.from_json(consumer.position.to_json())
                assert (stored.log_incarnation, stored.newest_incarnation) == (NEXT.id, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_reset_is_not_answered_by_a_former_voter_that_leads(monkeypatch, is_checked):
    """Goal: neither end of a lost log counts. Method: it leads its old log, and is asked first.

    Nodes of former releases do not look at the number.
    """

    async def scenario():
        former, leader = two_histories()
        former.log.leader = leader.log.leader
        async with serving(former), serving(leader):
            position = await served_positions(leader)
            async with Client([former.address, leader.address]) as client:
                client.watch(position=position)  # So the client knows the incarnation.
                if is_checked:
                    found = await client.list_offsets(LATEST_TIMESTAMP)
                    assert (found.offset, found.leader_epoch) == (leader.log.end, 1001)
                    return
                monkeypatch.setattr(log_reads, "check_reader", lambda *_: None)
                with pytest.raises(UnavailableError, match="a former voter"):
                    await client.list_offsets(LATEST_TIMESTAMP)

    asyncio.run(scenario())


def as_committed(position):
    """A position as its group fetches it from a former voter: no number says what is newest."""
    sent = position_message("copier", position, "")
    found = committed(
        PositionMessage(
            offset=sent.offset,
            leader_epoch=sent.leader_epoch,
            epochs=sent.epochs,
            log_digest=sent.log_digest,
            log_incarnation=sent.log_incarnation,
        ),
        0,
    )
    assert found.position.newest_incarnation == 0
    return found.position


@pytest.mark.parametrize("read_in", [FIRST_INCARNATION_ID, NEXT.id])
@pytest.mark.parametrize("is_former_first", [True, False])
def test_a_committed_position_loses_and_repeats_nothing_over_a_recovery(read_in, is_former_first):
    """Method: a new process of the group meets a former voter, before or after the leader.

    What it reads of the lost history it can never commit: those positions name that incarnation.
    """

    async def scenario():
        former, leader = two_histories()
        async with serving(former), serving(leader):
            stored = LogPosition(3, 1, (), await leader.log_digest(3), read_in)
            first = [former.address, leader.address]
            async with Client(first if is_former_first else first[::-1]) as client:
                consumer = client.consumer(position=as_committed(stored), reset=ResetPolicy.NONE)
                kept = []
                while consumer.position.offset < leader.log.end:
                    try:
                        records = await consumer.poll(max_wait_ms=0)
                    except LogTruncationError as error:
                        lost = error.truncation_offsets()["__cluster_metadata", 0]
                        assert (lost.offset, lost.is_exact) == (3, True)
                        kept = [each for each in kept if each.offset < lost.offset]
                        consumer.seek(error.divergent_offset, error.divergent_epoch)
                        continue
                    kept += records
                    if value("lost") in {each.value for each in kept}:
                        assert consumer.position.log_incarnation == FIRST_INCARNATION_ID
                assert [(each.offset, each.value) for each in kept] == [
                    (3 + place, value(text)) for place, text in enumerate("new")
                ]
                assert consumer.position.log_incarnation == NEXT.id

    asyncio.run(scenario())


async def refused_by_name(ask):
    """The client asks until its time is up; more time if no answer came in it."""
    for seconds in (0.5, 5.0, 60.0):
        with pytest.raises(UnavailableError) as ended:
            await ask(seconds)
        if "MISMATCH" in str(ended.value):
            break
    assert re.search(r"LOG_INCARNATION_MISMATCH.*former", str(ended.value))


def test_a_former_voter_refuses_a_reader_of_the_recovered_cluster_by_name():
    async def scenario():
        former, leader = two_histories()
        async with serving(former), serving(leader):
            position = await served_positions(leader)
            assert position.newest_incarnation == 1

            async def poll(seconds):
                async with Client([former.address], timeout_seconds=seconds) as client:
                    consumer = client.consumer(position=position)
                    try:
                        await consumer.poll(max_wait_ms=0)
                    finally:
                        assert consumer.position == position

            async def lookup(seconds):
                async with Client([former.address], timeout_seconds=seconds) as client:
                    client.watch(position=position)  # So the client knows the incarnation.
                    await client.offset_for_leader_epoch(1)

            async def listed(seconds):
                async with Client([former.address], timeout_seconds=seconds) as client:
                    client.watch(position=position)
                    await client.list_offsets(EARLIEST_TIMESTAMP)

            async def watched(seconds):
                async with Client([former.address], timeout_seconds=seconds) as client:
                    events = client.watch(position=position, outage_seconds_max=seconds)
                    await anext(aiter(events))

            for ask in (poll, lookup, listed, watched):
                await refused_by_name(ask)

    asyncio.run(scenario())


@pytest.mark.parametrize("newest", [1, 0])
def test_a_watch_of_the_recovered_cluster_reads_nothing_of_a_former_voter(newest):
    """Goal: no lost record, no false alarm. Method: its address comes first.

    A position of a former release has no number: then the leader's digest decides.
    """

    async def scenario():
        former, leader = two_histories()
        async with serving(former), serving(leader):
            digest = await leader.log_digest(4)
            position = LogPosition(4, 1001, (), digest, NEXT.id, newest)
            async with Client([former.address, leader.address]) as client:
                events = aiter(client.watch(position=position))
                batch = await anext(events)
                assert isinstance(batch, ChangeBatch)
                assert list(batch.records) == [value("e")]
                await events.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize(("offset", "epoch", "lost_from"), [(4, 1001, None), (4, 1, 3)])
def test_without_a_digest_the_leaders_epochs_decide(offset, epoch, lost_from):
    """A position inside a message has no digest. Former voters have elected one of them since."""

    async def scenario():
        former, leader = two_histories()
        former.log.epoch = 1002
        former.commit(value("lost as well"))
        async with serving(former), serving(leader):
            nodes = [former.address, leader.address]
            if lost_from is not None:
                nodes.reverse()
            async with Client(nodes) as client:
                events = aiter(client.watch(position=LogPosition(offset, epoch)))
                if lost_from is None:
                    assert list((await anext(events)).records) == [value("e")]
                else:
                    with pytest.raises(LogTruncationError) as caught:
                        await anext(events)
                    assert (caught.value.divergent_offset, caught.value.is_exact) == (3, True)
                await events.aclose()

    asyncio.run(scenario())


def test_a_watch_leaves_a_node_that_knows_no_leader(monkeypatch):
    """Goal: it meets the recovered cluster. Method: the former voter has nothing new to send."""
    monkeypatch.setattr(change_feed, "PROGRESS_SECONDS", 0.05)

    async def scenario():
        former, leader = two_histories(is_lost=False)
        async with serving(former), serving(leader):
            position = LogPosition(3, 1, (), await leader.log_digest(3))
            async with Client([former.address, leader.address]) as client:
                events = aiter(client.watch(position=position))
                assert list((await anext(events)).records) == [value("n")]
                await events.aclose()

    asyncio.run(scenario())
