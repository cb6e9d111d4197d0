"""Ordered clients, against a production controller: one failure fails all later writes (360.6)."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import (
    TOPIC,
    Client,
    ClientError,
    OutcomeUnknownError,
    PrecedingWriteFailedError,
    ProducerFencedError,
    RefusedError,
)
from quorate.client.limits import COMMAND_BYTES_MAX
from quorate.client.producer_sessions import ProducerSession
from quorate.controller.requests import Answer
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from statemachine.records import ExpireProducerRecord, InitProducerRecord
from tests.support.controller_bench import records_of
from tests.support.served_node import serving
from tests.unit.client.test_named_client import Node, setting


class Refusing(Node):
    """Refuses the values in ``refuses`` once, before anything else evaluates them."""

    def __init__(self):
        super().__init__()
        self.refuses = {}

    def take(self, command, context, on_answer):
        changes = getattr(command, "changes", ())
        code = self.refuses.pop(changes[0].value, None) if changes else None
        if code is not None:
            on_answer(Answer(code, "told to"))
            return
        super().take(command, context, on_answer)


def ordered(node, **options):
    return Client([node.address], ordered=True, **options)


async def write(client, value):
    return await client.write(setting(value))


async def ends_of(client, values):
    """What became of writes that were submitted at once."""
    found = await asyncio.gather(
        *(write(client, value) for value in values), return_exceptions=True
    )
    return [type(each).__name__ for each in found]


def values_written(node):
    """The values in the order in which they were applied."""
    return [
        record.value
        for batch in node.bench.log.batches
        for record in records_of(batch[2])
        if type(record).__name__ == "ConfigRecord"
    ]


def test_writes_are_applied_in_the_order_of_their_submission():
    """More than one window of them, and a full queue in the middle."""

    async def scenario():
        node = Refusing()
        node.refuses = {"7": ErrorCode.QUEUE_FULL, "8": ErrorCode.QUEUE_FULL}
        async with serving(node), ordered(node) as client:
            assert set(await ends_of(client, range(100))) == {"Applied"}
        assert values_written(node) == [str(value) for value in range(100)]
        assert len({each.producer_id for each in node.numbered}) == 1

    asyncio.run(scenario())


def test_the_first_refusal_fails_every_later_write():
    """Goal: 360.6. Method: a pipeline with one refusal; then more; then the next epoch."""

    async def scenario():
        node = Node()
        async with serving(node), ordered(node) as client:
            ends = await ends_of(client, [1, 2, "x", 4, 5])
            assert ends == ["Applied"] * 2 + ["RefusedError"] + ["PrecedingWriteFailedError"] * 2
            sent = len(node.numbered)
            with pytest.raises(PrecedingWriteFailedError) as caught:
                await write(client, 6)
            assert caught.value.cause.code == ErrorCode.INVALID_CONFIG
            assert (len(node.numbered), node.bench.value()) == (sent, "2")
            await client.begin_epoch()
            await write(client, 7)
            first, last = node.numbered[0], node.numbered[-1]
            assert (last.producer_epoch, last.sequence) == (first.producer_epoch + 1, 0)
            assert last.producer_id == first.producer_id
        assert values_written(node) == ["1", "2", "7"]

    asyncio.run(scenario())


def test_without_order_the_writes_after_a_refusal_go_on():
    """Today's way, which stays the default."""

    async def scenario():
        node = Node()
        async with serving(node), Client([node.address]) as client:
            ends = await ends_of(client, [1, "x", 3])
            assert ends == ["Applied", "RefusedError", "Applied"]
            with pytest.raises(ClientError, match="ordered"):
                await client.begin_epoch()

    asyncio.run(scenario())


def test_an_unknown_outcome_fails_later_writes_and_says_which_are_unknown():
    """Goal: no write behind an unknown one is reported as failed if it may be applied."""

    async def scenario():
        node = Node()
        async with serving(node), ordered(node, stall_seconds=60) as client:
            await write(client, 1)
            node.holds = True
            first = asyncio.ensure_future(write(client, 2))
            later = [asyncio.ensure_future(write(client, value)) for value in (3, 4)]
            while len(node.held) < 3:
                await asyncio.sleep(0)
            fresh = [asyncio.ensure_future(write(client, value)) for value in range(10, 60)]
            # Its deadline passes.
            next(iter(client._writer._open.sent.values())).deadline = 0.0
            ends = await asyncio.gather(first, *later, *fresh, return_exceptions=True)
            assert [type(each) for each in ends[:3]] == [OutcomeUnknownError] * 3
            assert type(ends[-1]) is PrecedingWriteFailedError
            node.release()
            await client.begin_epoch()
            await write(client, 99)
            written = values_written(node)
            assert written[:4] == ["1", "2", "3", "4"]
            assert written[-1] == "99"

    asyncio.run(scenario())


def test_a_cancelled_write_leaves_no_hole():
    async def scenario():
        node = Node()
        async with serving(node), ordered(node, stall_seconds=5) as client:
            await write(client, 1)
            node.holds = True
            cancelled = asyncio.ensure_future(write(client, 2))
            while not node.held:
                await asyncio.sleep(0)
            cancelled.cancel()
            later = asyncio.ensure_future(write(client, 3))
            while len(node.held) < 2:
                await asyncio.sleep(0)
            node.release()
            await later
            await write(client, 4)
        assert values_written(node) == ["1", "2", "3", "4"]

    asyncio.run(scenario())


def test_a_hole_that_nothing_fills_is_reported():
    """Goal: OUT_OF_ORDER_SEQUENCE_NUMBER for the oldest open write. Method: a node says so."""

    async def scenario():
        node = Refusing()
        async with serving(node), ordered(node) as client:
            await write(client, 1)
            node.refuses["2"] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            with pytest.raises(RefusedError) as caught:
                await write(client, 2)
            assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            with pytest.raises(PrecedingWriteFailedError):
                await write(client, 3)

    asyncio.run(scenario())


def test_a_write_that_is_too_large_is_a_failure_as_well():
    async def scenario():
        node = Node()
        async with serving(node), ordered(node) as client:
            with pytest.raises(RefusedError):
                await write(client, "9" * (COMMAND_BYTES_MAX + 1))
            with pytest.raises(PrecedingWriteFailedError):
                await write(client, 2)
            await client.begin_epoch()
            await write(client, 3)
        assert node.bench.value() == "3"

    asyncio.run(scenario())


def test_dry_runs_have_no_part_in_the_order():
    async def scenario():
        node = Node()
        async with serving(node), ordered(node) as client:
            alteration = wire.ConfigAlteration(name="retention.ms", operation=1, value="x")
            await write(client, 1)
            with pytest.raises(RefusedError):
                await client.alter_configs(TOPIC, "t", [alteration], dry_run=True)
            await client.create_topic("u", partitions=1, replication_factor=1, dry_run=True)
            await write(client, 2)
        assert [each.sequence for each in node.numbered] == [0, 1]

    asyncio.run(scenario())


def test_a_forgotten_producer_stops_the_order_and_the_next_epoch_has_another_one():
    """Goal: UNKNOWN_PRODUCER_ID with what the cluster still knows, then 360.6 goes on."""

    async def scenario():
        node = Node()
        async with serving(node), ordered(node) as client:
            await write(client, 1)
            producer_id = node.numbered[-1].producer_id
            node.append(ExpireProducerRecord(producer_id))
            with pytest.raises(RefusedError) as caught:
                await write(client, 2)
            assert caught.value.code == ErrorCode.UNKNOWN_PRODUCER_ID
            known = caught.value.producer
            assert (known.producer_id, known.was_assigned) == (producer_id, True)
            assert (known.producer_epoch, known.current_producer_id) == (-1, -1)
            await client.begin_epoch()
            await write(client, 3)
            assert node.numbered[-1].producer_id == producer_id + 1
        assert values_written(node)[-2:] == ["1", "3"]

    asyncio.run(scenario())


def test_an_identity_that_somebody_else_raised_is_given_up():
    async def scenario():
        node = Node()
        async with serving(node), ordered(node) as client:
            await write(client, 1)
            first = node.numbered[-1].producer_id
            node.append(InitProducerRecord(first, 9))
            for value in (2, 3):
                # The write is refused, and then the request for the epoch after ours.
                with pytest.raises(RefusedError) as caught:
                    await write(client, value)
                assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
                await client.begin_epoch()
            await write(client, 4)
            assert node.numbered[-1].producer_id != first
        assert values_written(node)[-1] == "4"

    asyncio.run(scenario())


@pytest.mark.parametrize(("epoch", "raises_itself"), [(32_765, True), (32_766, False)])
def test_the_last_epoch_is_followed_by_another_producer_id(epoch, raises_itself):
    """Goal: 360.3 without a name. Method: the client's producer is in its last epoch but one."""

    async def scenario():
        node = Node()
        async with serving(node), ordered(node) as client:
            producers = client._writer._producer_sessions
            node.append(InitProducerRecord(50, epoch))
            producers.add(ProducerSession(50, epoch))
            await write(client, 1)
            with pytest.raises(RefusedError):
                await write(client, "x")
            await client.begin_epoch()
            await write(client, 2)
            seen = node.numbered[-1]
            expected = (50, 32_766) if raises_itself else (51, 0)
            assert (seen.producer_id, seen.producer_epoch) == expected
            old = node.producers.states.get(50)
            assert (old.epoch, old.successor_id) == (
                (32_766, -1) if raises_itself else (32_767, 51)
            )

    asyncio.run(scenario())


def test_a_named_ordered_client_begins_its_epoch_through_its_name():
    """Goal: 360.6 for a named producer: the coordinator bumps, and a former process is fenced."""

    async def scenario():
        node = Node()
        async with serving(node), ordered(node, writer="deploy") as client:
            assert await ends_of(client, [1, "x", 3]) == [
                "Applied", "RefusedError", "PrecedingWriteFailedError",
            ]  # fmt: skip
            await client.begin_epoch()
            await write(client, 4)
            assert node.numbered[-1].producer_epoch == 1
            known = node.producers.transactional_ids.get("deploy")
            assert (known.producer_epoch, known.last_producer_epoch) == (1, 0)
            assert "RefusedError" in await ends_of(client, ["x"])
            async with ordered(node, writer="deploy") as new:
                await write(new, 5)
                with pytest.raises(ProducerFencedError, match="'deploy'"):
                    await client.begin_epoch()
                with pytest.raises(ProducerFencedError):
                    await write(client, 6)
                with pytest.raises(ProducerFencedError):
                    await client.begin_epoch()
        assert values_written(node)[-1] == "5"

    asyncio.run(scenario())


def test_the_order_survives_a_change_of_leader():
    """Goal: open writes keep their order over a new stream. Method: a node that stalls."""

    async def scenario():
        node = Node()
        async with serving(node), ordered(node, stall_seconds=0.2) as client:
            await write(client, 0)
            node.holds = True
            writes = [asyncio.ensure_future(write(client, value)) for value in range(1, 40)]
            while len(node.held) < 32:
                await asyncio.sleep(0)
            node.held.clear()
            node.holds = False
            assert {type(each).__name__ for each in await asyncio.gather(*writes)} == {"Applied"}
        assert values_written(node) == [str(value) for value in range(40)]

    asyncio.run(scenario())
