"""The write side of the client against in-process servers: exactly once, fail-over, deadlines."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import (
    TOPIC,
    Client,
    OutcomeUnknownError,
    RefusedError,
    UnavailableError,
)
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2, common_pb2
from tests.support.served_node import cluster, serving


def client_of(nodes, **options) -> Client:
    return Client([node.address for node in nodes], client_id="test", **options)


async def write_many(client: Client, count: int) -> list[int]:
    applied = await asyncio.gather(
        *(client.set_config(TOPIC, f"t{n}", "retention.ms", str(n)) for n in range(count))
    )
    return [each.offset for each in applied]


def test_a_write_returns_its_position_and_leaves_an_audit_trail():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes, reason="because") as client:
            applied = await client.set_config(TOPIC, "orders", "retention.ms", "5")
            assert (applied.offset, applied.epoch) == (log.end, 1)
            assert nodes[0].image.configs.value(2, "orders", "retention.ms") == "5"
        context = nodes[0].contexts[-1]
        assert context.principal == "unauthenticated:test"
        assert (context.client_id, context.reason) == ("test", "because")
        assert (context.producer_id, context.sequence, context.oldest_open) == (1000, 0, 0)

    asyncio.run(scenario())


def test_many_writers_share_messages_and_spread_over_producers():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            # Nothing is answered before all is sent: else a producer may be free again, and serve.
            nodes[0].held = []
            writes = asyncio.create_task(write_many(client, 300))
            # The first producer is requested alone, the others beside what it takes.
            for requests, held in ((1, 1), (9, 32 + 9)):
                await nodes[0].holds(held)
                asked = [context.producer_id == -1 for context in nodes[0].contexts[-held:]]
                assert sum(asked) == requests
                evaluations, nodes[0].held = nodes[0].held, []
                for evaluate, is_request in zip(evaluations, asked, strict=True):
                    if is_request:
                        evaluate()
                    else:
                        nodes[0].held.append(evaluate)
            await nodes[0].holds(300)
            nodes[0].release()
            offsets = await writes
        assert len(set(offsets)) == 300
        assert len(log.applied) == 300
        producers = {context.producer_id for context in nodes[0].contexts} - {-1}
        assert len(producers) == 10
        for context in nodes[0].contexts:
            assert context.sequence < context.oldest_open + 32 or context.producer_id == -1

    asyncio.run(scenario())


def test_a_redirect_is_followed_to_a_node_that_was_not_given():
    async def scenario():
        _, nodes = cluster(3, leader=3)
        async with serving(*nodes), client_of(nodes[:1]) as client:
            await client.set_config(TOPIC, "t", "retention.ms", "1")
            assert client.leader == nodes[2].address

    asyncio.run(scenario())


def test_every_write_is_applied_once_over_a_fail_over_with_open_commands():
    """Half the commands are applied but their answers lost; the server then dies."""

    async def scenario():
        log, nodes = cluster(3)
        async with serving(*nodes) as servers, client_of(nodes) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].held = []
            writes = asyncio.create_task(write_many(client, 100))
            await nodes[0].holds(32)
            # Some reach the log, but their answers do not leave before the server is gone.
            for evaluate in nodes[0].held[:16]:
                evaluate()
            log.leader, log.epoch = 2, 2
            await servers[1].stop(None)
            offsets = await writes
        assert len(set(offsets)) == 100
        assert len(log.applied) == 101
        assert len({c.resource_name for c in log.applied}) == 101

    asyncio.run(scenario())


def test_an_unknown_outcome_is_asked_again_under_the_same_sequence():
    async def scenario():
        log, nodes = cluster(2)
        async with serving(*nodes), client_of(nodes) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            outcomes = [ErrorCode.OUTCOME_UNKNOWN, ErrorCode.NOT_LEADER_OR_FOLLOWER, None]
            nodes[0].after_submit = lambda command: outcomes.pop(0)
            await client.set_config(TOPIC, "once", "retention.ms", "1")
        assert [c.resource_name for c in log.applied] == ["warm", "once"]
        numbered = [c for c in nodes[0].contexts if c.producer_id >= 0]
        assert [c.sequence for c in numbered] == [0, 1, 1, 1]
        assert [c.is_repeat for c in numbered] == [False, False, True, True]

    asyncio.run(scenario())


def test_a_refusal_is_reported_with_its_name():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].refuse = ErrorCode.INVALID_CONFIG
            with pytest.raises(RefusedError, match="INVALID_CONFIG: told to refuse") as caught:
                await client.set_config(TOPIC, "t", "no.such", "1")
            assert caught.value.code == common_pb2.ERROR_CODE_INVALID_CONFIG
            nodes[0].refuse = None
            await client.set_config(TOPIC, "t", "retention.ms", "1")

    asyncio.run(scenario())


def test_an_overloaded_leader_is_asked_again():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            codes = [ErrorCode.QUEUE_FULL, ErrorCode.RESOURCE_EXHAUSTED]
            nodes[0].after_submit = lambda command: codes.pop(0) if codes else None
            await client.set_config(TOPIC, "t", "retention.ms", "1")
        assert [c.resource_name for c in log.applied] == ["warm", "t"]

    asyncio.run(scenario())


def test_a_deadline_reports_sent_writes_as_unknown_and_others_as_never_sent():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes, producer_sessions_max=1) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].held = []
            writes = [
                asyncio.ensure_future(
                    client.set_config(
                        TOPIC, f"t{n}", "retention.ms", "1", timeout=3.0 if n < 32 else 0.5
                    )
                )
                for n in range(40)
            ]
            results = await asyncio.gather(*writes, return_exceptions=True)
            sent = [r for r in results if isinstance(r, OutcomeUnknownError)]
            unsent = [r for r in results if isinstance(r, UnavailableError)]
            assert (len(sent), len(unsent)) == (32, 8)
            assert "unknown" in str(sent[0])
            assert "never sent" in str(unsent[0])
            # The lane moves on: its numbers were given up, not lost.
            nodes[0].release()
            await client.set_config(TOPIC, "after", "retention.ms", "1")

    asyncio.run(scenario())


def test_no_reachable_node_is_not_an_unknown_outcome():
    async def scenario():
        _, nodes = cluster(1, leader=None)
        async with serving(*nodes), client_of(nodes) as client:
            with pytest.raises(UnavailableError, match="never sent"):
                await client.set_config(TOPIC, "t", "retention.ms", "1", timeout=0.1)
            nodes[0].log.leader = 1
            await client.set_config(TOPIC, "t", "retention.ms", "1")

    asyncio.run(scenario())


def test_a_hung_leader_is_left_when_it_owes_answers():
    async def scenario():
        log, nodes = cluster(2)
        async with serving(*nodes), client_of(nodes, stall_seconds=0.1) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].held = []
            write = asyncio.ensure_future(client.set_config(TOPIC, "t", "retention.ms", "1"))
            await nodes[0].holds(1)
            log.leader, log.epoch = 2, 2
            assert (await write).epoch == 2
            assert client.leader == nodes[1].address

    asyncio.run(scenario())


def test_a_forgotten_producer_is_replaced_when_nothing_was_at_risk():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            log.known_producers.clear()
            await client.set_config(TOPIC, "t", "retention.ms", "1")
            assert not client._writer.is_in_doubt
        assert [c.resource_name for c in log.applied] == ["warm", "t"]

    asyncio.run(scenario())


def test_a_forgotten_producer_leaves_a_repeat_unknown():
    async def scenario():
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")

            def forget(command):
                log.known_producers.clear()
                nodes[0].after_submit = None
                return ErrorCode.OUTCOME_UNKNOWN

            nodes[0].after_submit = forget
            assert not client._writer.is_in_doubt
            with pytest.raises(OutcomeUnknownError, match="producer is gone"):
                await client.set_config(TOPIC, "t", "retention.ms", "1")
            assert client._writer.is_in_doubt

    asyncio.run(scenario())


def test_a_cancelled_write_frees_its_number():
    async def scenario():
        """Its number is open no longer, so that the window of the only producer moves on."""
        log, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes, producer_sessions_max=1) as client:
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].held = []
            stuck = asyncio.ensure_future(client.set_config(TOPIC, "never", "retention.ms", "1"))
            await nodes[0].holds(1)
            stuck.cancel()
            nodes[0].held = None
            offsets = await write_many(client, 100)
            with pytest.raises(asyncio.CancelledError):
                await stuck
            configs = nodes[0].image.configs
            assert configs.value(2, "never", "retention.ms") is None
            assert [configs.value(2, f"t{n}", "retention.ms") for n in range(100)] == [
                str(n) for n in range(100)
            ]
        assert len(set(offsets)) == 100
        assert len(log.applied) == 101
        numbered = [each for each in nodes[0].contexts if each.producer_id != -1]
        assert len({each.producer_id for each in numbered}) == 1
        cancelled = numbered[1].sequence
        assert max(each.oldest_open for each in numbered) > cancelled

    asyncio.run(scenario())


def test_results_and_origins_travel():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            answer = await client.init_producer_id(commands_pb2.InitProducerId())
            assert answer.result.init_producer_id.producer_id >= 1000
            command = commands_pb2.Command(
                unregister_broker=commands_pb2.UnregisterBroker(broker_id=7)
            )
            await client.write(
                command,
                origin=commands_pb2.CommandOrigin(
                    request_id="r1", reason="why", traceparent="00-1"
                ),
            )
        context = nodes[0].contexts[-1]
        assert (context.request_id, context.reason, context.traceparent) == ("r1", "why", "00-1")

    asyncio.run(scenario())


def test_an_oversized_command_is_refused_before_it_is_sent():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes), client_of(nodes) as client:
            with pytest.raises(RefusedError, match="MESSAGE_TOO_LARGE"):
                await client.set_config(TOPIC, "t", "retention.ms", "x" * (1 << 20))
        assert nodes[0].contexts == []

    asyncio.run(scenario())


def test_a_deposed_leader_that_does_not_know_it_yet_is_not_believed():
    async def scenario():
        _, (deposed,) = cluster(1)
        log, (current,) = cluster(1)
        log.epoch = 2
        async with serving(deposed), serving(current):
            async with client_of([deposed, current]) as client:
                client._nodes.leader_epoch = 2
                for n in range(5):
                    await client.set_config(TOPIC, f"t{n}", "retention.ms", "1")
        assert deposed.contexts == []
        assert len(log.applied) == 5

    asyncio.run(scenario())
