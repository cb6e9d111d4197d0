"""The client and a production controller, while a stranger uses the client's producers."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from quorate.client import TOPIC, Client, OutcomeUnknownError
from quorate.controller.requests import Answer
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2, metadata_pb2
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from tests.support.evaluated_node import EvaluatedNode
from tests.support.served_node import serving


class SpiedNode(EvaluatedNode):
    """Keeps what came under producers, and refuses the next with the codes in ``refusals``."""

    def __init__(self) -> None:
        super().__init__()
        self.numbered = []
        self.refusals = []

    def take(self, command, context, on_answer):
        if context.producer_id >= 0:
            self.numbered.append(context)
            if self.refusals:
                on_answer(Answer(self.refusals.pop(0), "told to"))
                return
        super().take(command, context, on_answer)


def setting(name, value):
    change = commands_pb2.ConfigAlteration(name=name, operation=1, value=value)
    return commands_pb2.IncrementalAlterConfigs(
        resource_type=TOPIC, resource_name="t", alterations=[change]
    )


def test_a_stranger_with_the_next_number_takes_nothing_away():
    """Goal: an acknowledged write was applied. Method: the stranger has the client's own name."""

    async def scenario():
        node = SpiedNode()
        async with serving(node), Client([node.address], client_id="honest") as client:
            await client.set_config(TOPIC, "t", "retention.ms", "1")
            seen = node.numbered[-1]
            async with grpc.aio.insecure_channel(node.address) as channel:
                theirs = await MetadataServiceStub(channel).Write(
                    metadata_pb2.WriteRequest(
                        writer=metadata_pb2.WriterIdentity(client_id="honest"),
                        producer_id=seen.producer_id,
                        producer_epoch=seen.producer_epoch,
                        oldest_open=seen.sequence + 1,
                        command=commands_pb2.Command(
                            sequence=seen.sequence + 1,
                            incremental_alter_configs=setting("segment.ms", "9"),
                        ),
                    ),
                    timeout=10,
                )
            mine = await client.set_config(TOPIC, "t", "retention.ms", "2")
            assert mine.offset > theirs.answer.offset
            assert node.bench.value() == "2"
        assert node.numbered[-1].producer_id != seen.producer_id

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ],
)
def test_a_producer_that_others_have_used_is_replaced(code):
    async def scenario():
        node = SpiedNode()
        async with serving(node), Client([node.address]) as client:
            await client.set_config(TOPIC, "t", "retention.ms", "1")
            node.refusals = [code]
            await client.set_config(TOPIC, "t", "retention.ms", "2")
            assert node.bench.value() == "2"
            producers = [context.producer_id for context in node.numbered]
            assert producers[0] == producers[1] != producers[2]
            node.refusals = [ErrorCode.QUEUE_FULL, code]
            with pytest.raises(OutcomeUnknownError, match=code.name):
                await client.set_config(TOPIC, "t", "retention.ms", "3")

    asyncio.run(scenario())


def test_a_command_that_came_before_an_older_one_is_asked_again():
    async def scenario():
        node = SpiedNode()
        async with serving(node), Client([node.address], producer_sessions_max=1) as client:
            await client.set_config(TOPIC, "t", "retention.ms", "0")
            # The first is not taken, so the ones behind it are out of order for a while.
            node.refusals = [ErrorCode.QUEUE_FULL]
            values = ("retention.ms", "segment.ms", "max.message.bytes", "segment.bytes")
            await asyncio.gather(
                *(client.set_config(TOPIC, "t", name, "5000000") for name in values)
            )
            configs = node.bench.controller.image.configs
            assert {configs.value(2, "t", name) for name in values} == {"5000000"}
            batches = [each.sequence for each in node.numbered]
        assert len(batches) > 5
        state = node.bench.controller.image.producers.states.get(node.numbered[0].producer_id)
        assert [entry.sequence for entry in state.applied] == sorted(
            entry.sequence for entry in state.applied
        )
        offsets = [entry.offset for entry in state.applied]
        assert offsets == sorted(offsets)

    asyncio.run(scenario())
