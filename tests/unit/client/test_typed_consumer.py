"""A consumer of typed records: positions, states and truncations as with encoded records."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import Client, LogPosition, LogTruncationError, ProtocolError, ResetPolicy
from quorate.client.fetched_batches import fetched_batches
from quorate.client.results.metadata import AuditHeader, ChangeBatch, FetchLogResponse
from quorate.client.results.records import TypedRecord
from quorum.types import SnapshotId
from statemachine.codec import decode_record, encode_record
from statemachine.records import ConfigRecord, TopicRecord, UserScramCredentialRecord
from tests.support.served_node import cluster, serving
from tests.unit.client.test_former_voters import NEXT, two_histories

TOPIC_ID = b"t" * 16
USER = UserScramCredentialRecord("u", 2, b"SALT" * 4, b"STORED" * 7, b"SERVER" * 7, 4096)


def value(text):
    return encode_record(ConfigRecord(2, "t", "k", text))


def client_of(nodes):
    return Client([node.address for node in nodes], timeout_seconds=30)


async def both_to_the_end(client, end, **options):
    """Poll encoded and typed records in turn; return what both read."""
    pair = [client.consumer(typed=each, **options) for each in (False, True)]
    read = ([], [])
    while pair[0].position is None or pair[0].position.offset < end:
        for records, consumer in zip(read, pair, strict=True):
            records += await consumer.poll(max_wait_ms=0)
        assert pair[0].position.to_json() == pair[1].position.to_json()
    return pair, read


@pytest.mark.parametrize("max_bytes", [0, 1])
def test_typed_records_have_the_same_positions_and_digests_as_encoded_ones(max_bytes):
    """Method: one batch of an answer, or all; one of them comes without its secrets."""

    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(encode_record(TopicRecord("orders", TOPIC_ID)), value("a"))
        nodes[0].commit(encode_record(USER))
        log.epoch = 2
        nodes[0].commit(value("b"))
        async with serving(*nodes), client_of(nodes) as client:
            pair, (encoded, typed) = await both_to_the_end(client, log.end, max_bytes=max_bytes)
            assert pair[1].position.log_digest == await nodes[0].log_digest(log.end)
            assert [each[:3] for each in encoded] == [each[:3] for each in typed]
            assert {each.value for each in typed} == {None}
            assert {each.typed for each in encoded} == {None}
            assert [type(each.typed.record).__name__ for each in typed] == [
                type(decode_record(each.value)).__name__ for each in encoded
            ]
            assert typed[1].typed.topic_record.name == "orders"
            assert typed[-1].typed.config_record.value == "b"

    asyncio.run(scenario())


def test_the_records_of_a_batch_above_the_position_alone_are_handed_out():
    async def scenario():
        log, nodes = cluster(1)
        nodes[0].commit(value("a"), value("b"), value("c"))
        async with serving(*nodes), client_of(nodes) as client:
            _, (encoded, typed) = await both_to_the_end(client, log.end, position=LogPosition(2, 1))
            assert [each.offset for each in encoded] == [each.offset for each in typed] == [2, 3]
            assert [each.typed.config_record.value for each in typed] == ["b", "c"]

    asyncio.run(scenario())


async def read_lost(former):
    """Read all of the lost history as typed records; return the position."""
    async with Client([former.address]) as client:
        consumer = client.consumer(position=LogPosition(0), typed=True)
        while consumer.position.offset < former.log.end:
            read = await consumer.poll(max_wait_ms=0)
        assert read[-1].typed.config_record.value == "lost"
        return consumer.position


def test_a_truncation_moves_a_consumer_of_typed_records_to_the_first_lost_one():
    async def scenario():
        former, leader = two_histories()
        async with serving(former), serving(leader):
            position = await read_lost(former)
            async with Client([leader.address]) as client:
                again = client.consumer(position=position, typed=True)
                read = []
                while again.position.offset < leader.log.end:
                    read += await again.poll(max_wait_ms=0)
                assert [each.typed.config_record.value for each in read] == list("new")

    asyncio.run(scenario())


def test_the_digest_of_typed_batches_finds_a_truncation_where_epochs_are_equal():
    async def scenario():
        (_, (former,)), (log, (leader,)) = cluster(1), cluster(1)
        for node, last in (former, "lost"), (leader, "kept"):
            for text in ("a", "b", last):
                node.commit(value(text))
        former.log.leader, leader.incarnation = None, NEXT
        assert log.end == former.log.end
        async with serving(former), serving(leader):
            position = await read_lost(former)
            async with Client([leader.address]) as client:
                again = client.consumer(position=position, reset=ResetPolicy.NONE, typed=True)
                assert await again.poll(max_wait_ms=0) == []
                with pytest.raises(LogTruncationError) as caught:
                    await again.poll(max_wait_ms=0)
                assert (caught.value.divergent_offset, caught.value.is_exact) == (4, False)

    asyncio.run(scenario())


def test_a_state_in_place_of_trimmed_records_is_typed():
    async def scenario():
        log, nodes = cluster(1)
        for text in "ab":
            nodes[0].commit(value(text))
        image = nodes[0].image
        nodes[0].commit(value("c"))
        end = image.provenance.end_offset
        log.trim(end)
        nodes[0].snapshot, nodes[0].checkpoint = SnapshotId(end, 1), image
        async with serving(*nodes), client_of(nodes) as client:
            consumer = client.consumer(position=LogPosition(0), typed=True)
            got = []
            while not got:
                got = await consumer.poll()
            assert [(each.is_state, each.value) for each in got] == [(True, None)]
            assert got[0].typed.config_record.value == "b"
            assert [each.typed.config_record.value for each in await consumer.poll()] == ["c"]

    asyncio.run(scenario())


def test_the_headers_of_a_batch_are_those_of_its_first_record():
    batch = ChangeBatch(
        base_offset=4,
        end_offset=6,
        timestamp_ms=9,
        headers=(AuditHeader(name="principal", value=b"me"),),
        typed_records=(TypedRecord(), TypedRecord()),
    )
    (found,) = fetched_batches(FetchLogResponse(batches=(batch,)), b"", verify_checksums=True)
    assert [each.headers for each in found.records] == [(("principal", b"me"),), ()]
    assert [each.timestamp_ms for each in found.records] == [9, 9]


def test_a_node_of_a_former_release_names_no_digest_behind_a_batch():
    """The position has none then, and the next answer names that below its first batch."""
    batches = (ChangeBatch(base_offset=4, end_offset=5, epoch=1),)
    answer = FetchLogResponse(batches=batches, log_digest=b"d" * 16)
    (found,) = fetched_batches(answer, b"", verify_checksums=True)
    assert (found.digest_below, found.digest_behind) == (b"d" * 16, b"")


@pytest.mark.parametrize("ends", [(5, 5), (6, 7), (4, 5)])
def test_batches_that_do_not_follow_one_another_are_no_log(ends):
    first, second = ends
    batches = (
        ChangeBatch(base_offset=4, end_offset=first),
        ChangeBatch(base_offset=5, end_offset=second),
    )
    with pytest.raises(ProtocolError):
        list(fetched_batches(FetchLogResponse(batches=batches), b"", verify_checksums=True))
