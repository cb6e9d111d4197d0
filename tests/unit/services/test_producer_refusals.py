"""The table of KIP-360's errors, as clients get it: the code, and what the cluster still knows.

Goal: every row with its typed detail, in the answer of a stream and in the status of a call.
Method: one command under each kind of producer that is refused.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import grpc
import pytest

from quorate.client.errors import from_rpc
from quorate.services.answers import ANSWERS, COMMAND_CODES
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.fingerprint import owner_digest
from statemachine.records import (
    ExpireProducerRecord,
    InitProducerRecord,
    MetadataRecord,
    ProducerStateRecord,
    RemoveTransactionalIdRecord,
    TransactionalIdRecord,
)
from tests.support.controller_bench import foreign_batch
from tests.support.evaluated_node import EvaluatedNode
from tests.support.served_node import serving

CLIENT = "me"
MINE = owner_digest(f"unauthenticated:{CLIENT}")
UNKNOWN = ErrorCode.UNKNOWN_PRODUCER_ID
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@dataclass(frozen=True)
class Row:
    """Records that make a situation, a command in it, and how that is refused."""

    what: str
    records: tuple[MetadataRecord, ...]
    claim: tuple[int, int, int]
    """Producer id, epoch and sequence; the sequence is the oldest open one."""
    code: ErrorCode
    known: dict[str, object]
    is_ordered: bool = False


def named(producer_id: int, epoch: int, **more: int) -> TransactionalIdRecord:
    return TransactionalIdRecord("n", producer_id=producer_id, producer_epoch=epoch, **more)


def mine(producer_id: int, epoch: int, last: int = -1) -> ProducerStateRecord:
    return ProducerStateRecord(producer_id, epoch, last, owner=MINE, last_timestamp_ms=10**15)


NOTHING = {"producer_epoch": -1, "current_producer_id": -1, "current_producer_epoch": -1}
ROWS = (
    Row("an id that was never assigned", (), (9_000, 0, 0), UNKNOWN,
        {**NOTHING, "was_assigned": False, "last_sequence": -1}),
    Row("sequence 0 proves nothing: the producer has expired",
        (InitProducerRecord(50, 0), ExpireProducerRecord(50)), (50, 0, 0), UNKNOWN,
        {**NOTHING, "was_assigned": True}),
    Row("expired, and its name is kept",
        (InitProducerRecord(50, 4), named(50, 4), ExpireProducerRecord(50)), (50, 4, 9), UNKNOWN,
        {"producer_epoch": -1, "was_assigned": True, "transactional_id": "n",
         "current_producer_id": 50, "current_producer_epoch": 4}),
    Row("expired with its name",
        (InitProducerRecord(50, 4), named(50, 4), ExpireProducerRecord(50),
         RemoveTransactionalIdRecord("n")), (50, 4, 9), UNKNOWN,
        {**NOTHING, "was_assigned": True, "transactional_id": ""}),
    Row("another principal's: nothing but that it is assigned",
        (InitProducerRecord(50, 4),
         ProducerStateRecord(50, 4, 7, owner=b"x" * 16, last_timestamp_ms=10**15)),
        (50, 4, 8), MAPPING,
        {**NOTHING, "was_assigned": True, "last_sequence": -1, "transactional_id": ""}),
    Row("a newer process has the name",
        (InitProducerRecord(50, 5), named(50, 5), mine(50, 5, 2)), (50, 4, 8), FENCED,
        {"producer_epoch": 5, "last_sequence": 2, "transactional_id": "n",
         "current_producer_id": 50, "current_producer_epoch": 5}),
    Row("a newer process has the name, under the next id",
        (InitProducerRecord(50, 32_766), mine(50, 32_766), named(50, 32_766),
         InitProducerRecord(51, 0, 50), named(51, 0, previous_producer_id=50)),
        (50, 32_766, 8), FENCED,
        {"producer_epoch": 32_767, "transactional_id": "n",
         "current_producer_id": 51, "current_producer_epoch": 0}),
    Row("the epoch that is kept for fencing",
        (InitProducerRecord(50, 32_766), mine(50, 32_766), InitProducerRecord(51, 0, 50)),
        (50, 32_767, 0), FENCED, {"producer_epoch": 32_767, "current_producer_id": 51}),
    Row("an epoch that no InitProducerId gave to the name",
        (InitProducerRecord(50, 5), named(50, 5), mine(50, 5)), (50, 6, 0), FENCED,
        {"producer_epoch": 5, "transactional_id": "n", "current_producer_epoch": 5}),
    Row("an epoch that its own client has raised",
        (InitProducerRecord(50, 5), mine(50, 5, 2)), (50, 4, 8), FENCED,
        {"producer_epoch": 5, "transactional_id": "", "current_producer_epoch": 5}),
    Row("a new epoch does not begin at 0",
        (InitProducerRecord(50, 5), mine(50, 5, 2)), (50, 6, 3), ORDER,
        {"producer_epoch": 5, "last_sequence": 2}),
    Row("a hole of an ordered producer",
        (InitProducerRecord(50, 5), mine(50, 5, 2)), (50, 5, 5), ORDER,
        {"producer_epoch": 5, "last_sequence": 2, "oldest_open": 0}, is_ordered=True),
)  # fmt: skip


def command(sequence: int) -> wire.Command:
    change = wire.ConfigAlteration(name="retention.ms", operation=1, value="1")
    return wire.Command(
        sequence=sequence,
        incremental_alter_configs=wire.IncrementalAlterConfigs(
            resource_type=2, resource_name="t", alterations=[change]
        ),
    )


def checked(row: Row, found: object) -> None:
    assert found is not None
    fields = {"producer_id": row.claim[0], **row.known}
    assert {name: getattr(found, name) for name in fields} == fields, row.what


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_a_refusal_says_what_the_cluster_still_knows(row: Row) -> None:
    async def scenario() -> None:
        node = EvaluatedNode()
        if row.records:
            node.bench.log.depose()
            node.bench.log.append_foreign(foreign_batch(*row.records), len(row.records))
            node.bench.log.settle()
            node.bench.activate()
        before = node.bench.controller.image.provenance.end_offset
        producer_id, epoch, sequence = row.claim
        who = metadata_pb2.WriterIdentity(client_id=CLIENT)
        async with serving(node), grpc.aio.insecure_channel(node.address) as channel:
            stub = MetadataServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Write(
                    metadata_pb2.WriteRequest(
                        writer=who, producer_id=producer_id, producer_epoch=epoch,
                        oldest_open=sequence, command=command(sequence),
                        is_ordered=row.is_ordered,
                    ),
                    timeout=10,
                )  # fmt: skip
            error = from_rpc(caught.value)
            assert error.code == row.code
            checked(row, error.producer)

            group = metadata_pb2.ProducerCommands(
                producer_id=producer_id, producer_epoch=epoch, oldest_open=sequence,
                commands=[command(sequence)], is_ordered=row.is_ordered,
            )  # fmt: skip
            call = stub.WriteStream()
            await call.write(metadata_pb2.WriteStreamRequest(hello=who, groups=[group]))
            answers = []
            while not answers:
                answers = list((await call.read()).answers)
            call.cancel()
            assert answers[0].error_code == row.code
            checked(row, answers[0].producer)
        assert node.bench.controller.image.provenance.end_offset == before, "nothing was written"

    asyncio.run(scenario())


def test_other_answers_have_no_producer() -> None:
    async def scenario() -> None:
        node = EvaluatedNode()
        who = metadata_pb2.WriterIdentity(client_id=CLIENT)
        async with serving(node), grpc.aio.insecure_channel(node.address) as channel:
            missing = command(0)
            missing.incremental_alter_configs.resource_name = "nothing"
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await MetadataServiceStub(channel).Write(
                    metadata_pb2.WriteRequest(writer=who, command=missing), timeout=10
                )
            assert from_rpc(caught.value).producer is None

    asyncio.run(scenario())


def test_no_node_sends_producer_fenced() -> None:
    """ADR 68: a node answers INVALID_PRODUCER_EPOCH (360.1); the client knows more."""
    assert ErrorCode.PRODUCER_FENCED == 90
    assert ErrorCode.PRODUCER_FENCED not in COMMAND_CODES
    for method, each in ANSWERS.items():
        assert ErrorCode.PRODUCER_FENCED not in each.statuses | each.answers | each.parts, method
