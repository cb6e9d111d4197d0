"""The state that a watch begins with: in messages that add up, and none of them in a hurry."""

from __future__ import annotations

import asyncio

import grpc

from quorate.services import change_feed, watch, watch_cursor
from quorum.v1.metadata_pb2 import RECORD_FORM_TYPED, WatchRequest
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.codec import decode_record, encode_record
from statemachine.records import ConfigRecord
from tests.support.served_node import cluster, serving


def with_stub(scenario):
    async def run():
        log, made = cluster(1, leader=1)
        async with serving(*made) as servers:
            async with grpc.aio.insecure_channel(made[0].address) as channel:
                await scenario(log, made, MetadataServiceStub(channel), servers)

    asyncio.run(run())


def test_the_state_comes_in_chunks_that_add_up(monkeypatch):
    monkeypatch.setattr(watch_cursor, "STATE_BYTES_MAX", 200)

    async def scenario(log, nodes, stub, servers):
        records = [ConfigRecord(2, f"t{n}", "k", "v" * 50) for n in range(20)]
        nodes[0].commit(*(encode_record(record) for record in records))
        stream = stub.Watch(WatchRequest())
        chunks = []
        while not chunks or not chunks[-1].is_last:
            chunks.append((await stream.read()).state)
        assert [chunk.chunk for chunk in chunks] == list(range(len(chunks)))
        assert len(chunks) > 5
        assert {(chunk.offset, chunk.epoch) for chunk in chunks} == {(log.end, 1)}
        state = [decode_record(value) for chunk in chunks for value in chunk.records]
        named = [r for r in state if isinstance(r, ConfigRecord)]
        assert sorted(r.resource_name for r in named) == sorted(r.resource_name for r in records)
        stream.cancel()

    with_stub(scenario)


def test_typed_records_come_in_as_many_messages(monkeypatch):
    monkeypatch.setattr(watch_cursor, "STATE_BYTES_MAX", 200)

    async def scenario(log, nodes, stub, servers):
        nodes[0].commit(*(encode_record(ConfigRecord(2, f"t{n}", "k", "v" * 50)) for n in range(9)))
        counts = []
        for form in (0, RECORD_FORM_TYPED):
            stream = stub.Watch(WatchRequest(record_form=form))
            chunks = []
            while not chunks or not chunks[-1].is_last:
                chunks.append((await stream.read()).state)
            counts.append([len(each.records) + len(each.typed_records) for each in chunks])
            assert bool(chunks[0].typed_records) == bool(form)
            stream.cancel()
        assert counts[0] == counts[1]
        assert len(counts[0]) == 3

    with_stub(scenario)


def test_the_event_loop_has_other_work_between_two_messages(monkeypatch):
    monkeypatch.setattr(watch_cursor, "STATE_BYTES_MAX", 200)
    monkeypatch.setattr(watch, "STATE_PAUSE_SECONDS", 0.05)

    async def scenario(log, nodes, stub, servers):
        nodes[0].commit(
            *(encode_record(ConfigRecord(2, f"t{n}", "k", "v" * 50)) for n in range(20))
        )
        began = asyncio.get_running_loop().time()
        stream = stub.Watch(WatchRequest())
        count = 1
        while not (await stream.read()).state.is_last:
            count += 1
        assert count > 5
        assert asyncio.get_running_loop().time() - began >= (count - 1) * 0.05
        stream.cancel()

    with_stub(scenario)


def test_changes_for_a_typed_watch_are_made_in_that_form_only(monkeypatch):
    made = []
    message_of = change_feed.message_of

    def recorded(*arguments, **form):
        made.append(form)
        return message_of(*arguments, **form)

    monkeypatch.setattr(change_feed, "message_of", recorded)

    async def scenario(log, nodes, stub, servers):
        stream = stub.Watch(WatchRequest(from_offset=log.end, record_form=RECORD_FORM_TYPED))
        while not servers[1].services.metadata.watches._feed._waiting:
            await asyncio.sleep(0.01)
        nodes[0].commit(encode_record(ConfigRecord(2, "t", "k", "v")))
        response = await stream.read()
        assert response.changes.batches[0].typed_records
        assert made == [{"is_typed": True, "with_secrets": False}]
        stream.cancel()

    with_stub(scenario)
