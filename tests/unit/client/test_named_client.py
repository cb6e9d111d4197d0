"""Clients with a writer's name, against a production controller (360.1, 360.4, 360.8)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quorate.client import (
    TOPIC,
    BlockingClient,
    Client,
    OutcomeUnknownError,
    ProducerFencedError,
    RefusedError,
)
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from statemachine.records import (
    ExpireProducerRecord,
    InitProducerRecord,
    RemoveTransactionalIdRecord,
)
from tests.support.controller_bench import foreign_batch, set_config
from tests.support.evaluated_node import EvaluatedNode
from tests.support.served_node import serving


class Node(EvaluatedNode):
    """Keeps the context of each numbered command, and may lose answers or hold commands back."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.numbered = []
        self.lost = 0
        self.held = []
        self.holds = False

    def take(self, command, context, on_answer):
        if context.producer_id >= 0:
            self.numbered.append(context)
            if self.holds:
                self.held.append((command, context, on_answer))
                return
            if self.lost:
                self.lost -= 1
                super().take(command, context, lambda _answer: None)
                return
        super().take(command, context, on_answer)

    def release(self):
        self.holds = False
        for each in self.held:
            super().take(*each)

    def append(self, *records):
        """Let another leader write records, and lead again."""
        self.bench.log.depose()
        self.bench.log.append_foreign(foreign_batch(*records), len(records))
        self.bench.log.settle()
        self.bench.activate()

    @property
    def producers(self):
        return self.bench.controller.image.producers


def setting(value):
    change = wire.ConfigAlteration(name="retention.ms", operation=1, value=str(value))
    return wire.Command(
        incremental_alter_configs=wire.IncrementalAlterConfigs(
            resource_type=TOPIC, resource_name="t", alterations=[change]
        )
    )


def named(node, name="deploy", **options):
    return Client([node.address], writer=name, **options)


async def write(client, value, request_id=""):
    return await client.write(setting(value), request_id=request_id)


def test_a_new_process_takes_the_name_and_fences_the_former_one():
    """Goal: 360.1. Method: two clients of one name; the former one goes on writing."""

    async def scenario():
        node = Node()
        async with serving(node), named(node) as old, named(node) as new:
            await write(old, 1)
            await write(new, 2)
            for value in (3, 4):
                with pytest.raises(ProducerFencedError, match="'deploy'") as caught:
                    await write(old, value)
                assert caught.value.code == ErrorCode.PRODUCER_FENCED
                assert str(caught.value).startswith("PRODUCER_FENCED: writer 'deploy'")
                assert caught.value.writer == "deploy"
                known = caught.value.producer
                assert (known.transactional_id, known.current_producer_epoch) == ("deploy", 1)
            await write(new, 5)
        assert node.bench.value() == "5"
        numbered = [(each.producer_epoch, each.sequence) for each in node.numbered]
        assert numbered == [(0, 0), (1, 0), (0, 1), (1, 1)], "a fenced client sends nothing more"

    asyncio.run(scenario())


def test_all_open_writes_of_a_former_process_end_as_fenced():
    async def scenario():
        node = Node()
        async with serving(node), named(node) as old, named(node) as new:
            await write(old, 1)
            node.holds = True
            writes = [asyncio.ensure_future(write(old, value)) for value in range(10, 50)]
            while len(node.held) < 32:
                await asyncio.sleep(0)
            held, node.held, node.holds = node.held, [], False
            await write(new, 2)
            node.held = held
            node.release()
            ends = await asyncio.gather(*writes, return_exceptions=True)
            assert {type(each) for each in ends} == {ProducerFencedError}
            assert node.bench.value() == "2"

    asyncio.run(scenario())


def test_a_fenced_write_that_was_sent_twice_has_an_unknown_outcome():
    """Its first copy may have been applied before the name was taken."""

    async def scenario():
        node = Node()
        async with serving(node), named(node) as new:
            async with named(node, stall_seconds=0.05) as old:
                await write(old, 1)
                node.holds = True
                pending = asyncio.ensure_future(write(old, 7))
                while not node.held:
                    await asyncio.sleep(0)
                # The first copy is applied, its answer is lost, and another process takes the name.
                command, context, _ = node.held.pop(0)
                node.holds = False
                EvaluatedNode.take(node, command, context, lambda _answer: None)
                await write(new, 2)
                with pytest.raises(OutcomeUnknownError) as caught:
                    await pending
                assert isinstance(caught.value.__cause__, ProducerFencedError)
                with pytest.raises(ProducerFencedError):
                    await write(old, 8)
            assert node.bench.value() == "2"

    asyncio.run(scenario())


def test_a_request_is_applied_once_over_processes():
    """Goal: 360.8. Method: a process gets no answer and ends; the next one repeats the request."""

    async def scenario():
        node = Node()
        async with serving(node):
            first = named(node, stall_seconds=60)
            await write(first, 1, "r1")
            node.lost = 1
            pending = asyncio.ensure_future(write(first, 2, "r2"))
            while node.lost:
                await asyncio.sleep(0)
            await first.close()
            with pytest.raises(OutcomeUnknownError):
                await pending
            end = node.bench.controller.image.provenance.end_offset
            async with named(node) as second:
                answer = await write(second, 2, "r2")
                assert answer.offset == end
                await write(second, 3, "r3")
                assert (await write(second, 2, "r2")) == answer
                with pytest.raises(RefusedError, match="another command"):
                    await write(second, 9, "r2")
        assert node.bench.value() == "3"

    asyncio.run(scenario())


@pytest.mark.parametrize("keeps_name", [True, False])
def test_a_forgotten_named_producer_goes_on_if_nobody_took_its_name(keeps_name):
    """Goal: 360.4. Method: expire the producer, with its name and without it."""

    async def scenario():
        node = Node()
        async with serving(node), named(node) as client:
            await write(client, 1)
            producer_id = node.numbered[-1].producer_id
            gone = [ExpireProducerRecord(producer_id)]
            node.append(*gone, *([] if keeps_name else [RemoveTransactionalIdRecord("deploy")]))
            await write(client, 2)
            assert node.numbered[-1].producer_id > producer_id
        assert node.bench.value() == "2"

    asyncio.run(scenario())


def test_a_forgotten_named_producer_is_fenced_if_another_process_took_its_name():
    async def scenario():
        node = Node()
        async with serving(node), named(node) as old, named(node) as new:
            await write(old, 1)
            node.append(ExpireProducerRecord(node.numbered[-1].producer_id))
            await write(new, 2)
            with pytest.raises(ProducerFencedError, match="'deploy'"):
                await write(old, 3)
            assert node.bench.value() == "2"

    asyncio.run(scenario())


def test_a_name_whose_epochs_are_used_up_goes_on_under_another_id():
    """Goal: 360.3. Method: raise the epoch to the last one; then two processes."""

    async def scenario():
        node = Node()
        async with serving(node):
            async with named(node) as old:
                await write(old, 1)
                first = node.numbered[-1].producer_id
                node.append(InitProducerRecord(first, 32_766))
                async with named(node) as new:
                    await write(new, 2)
                    assert node.numbered[-1].producer_id == first + 1
                    with pytest.raises(ProducerFencedError, match="'deploy'"):
                        await write(old, 3)
        assert node.bench.value() == "2"

    asyncio.run(scenario())


def test_a_command_about_another_producer_is_refused_and_fences_nobody():
    """Goal: INVALID_PRODUCER_EPOCH of a request that the program itself made is only its answer."""

    async def scenario():
        node = Node()
        async with serving(node), named(node) as client:
            other = wire.InitProducerId(transactional_id="other")
            await client.init_producer_id(other)
            stale = wire.InitProducerId(transactional_id="other", producer_id=99, producer_epoch=4)
            with pytest.raises(RefusedError) as caught:
                await client.init_producer_id(stale)
            assert type(caught.value) is RefusedError
            assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
            assert caught.value.producer.producer_id == 99
            await write(client, 1)

    asyncio.run(scenario())


def test_a_stranger_under_our_number_takes_no_name_away():
    """Goal: this process raises its own epoch; its open writes must not count as fenced."""

    async def scenario():
        node = Node()
        async with serving(node), named(node) as client:
            await write(client, 1)
            seen = node.numbered[-1]
            node.bench.ask(
                set_config(9, "segment.ms"),
                producer_id=seen.producer_id,
                producer_epoch=seen.producer_epoch,
                sequence=1,
                oldest_open=1,
                principal=seen.principal,
            )
            done = await asyncio.gather(*(write(client, value) for value in range(20, 30)))
            assert len({each.offset for each in done}) == 10
            await write(client, 3)
        assert node.bench.value() == "3"

    asyncio.run(scenario())


def test_the_blocking_client_has_the_same_names():
    """Goal: `BlockingClient(writer=...)`. Method: a former one is fenced."""
    ready, done = threading.Event(), threading.Event()
    addresses = []

    def serve():
        async def run():
            node = Node()
            async with serving(node):
                addresses.append(node.address)
                ready.set()
                await asyncio.to_thread(done.wait)

        asyncio.run(run())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert ready.wait(10)
        with (
            BlockingClient(addresses, writer="b") as old,
            BlockingClient(addresses, writer="b") as new,
        ):
            first = old.write(setting(1), request_id="r")
            assert new.write(setting(1), request_id="r").offset == first.offset
            with pytest.raises(ProducerFencedError, match="'b'"):
                old.set_config(TOPIC, "t", "retention.ms", "3")
    finally:
        done.set()
        thread.join()


def test_a_name_has_a_maximum_length():
    async def scenario():
        with pytest.raises(ValueError, match="255"):
            Client(["localhost:1"], writer="n" * 256)

    asyncio.run(scenario())


def test_a_name_can_be_taken_before_the_first_write():
    """Goal: no former process writes once a position was read. Method: read behind begin_epoch."""

    async def scenario():
        node = Node()
        async with serving(node), named(node) as old, named(node) as new:
            await old.begin_epoch()
            await write(old, 1)
            await new.begin_epoch()
            await new.begin_epoch()
            assert node.producers.transactional_ids.get("deploy").producer_epoch == 1
            with pytest.raises(ProducerFencedError):
                await write(old, 2)
            with pytest.raises(ProducerFencedError):
                await old.begin_epoch()
            await write(new, 3)
            assert (node.numbered[-1].producer_epoch, node.numbered[-1].sequence) == (1, 0)
        assert node.bench.value() == "3"

    asyncio.run(scenario())
