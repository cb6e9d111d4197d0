"""A node whose commands the production controller evaluates, behind services that tests call."""

from __future__ import annotations

from quorate.controller.requests import OnAnswer, RequestContext
from statemachine.commands import Command
from statemachine.records import (
    FeatureLevelRecord,
    InitProducerRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    TransactionalIdRecord,
)
from statemachine.records_cluster import SupportedFeature
from tests.support.controller_bench import Bench
from tests.support.served_node import FakeNode
from tests.support.shared_log import SharedLog

TOPIC = b"t" * 16
WRITER = 7
"""A producer in epoch 3 whose transactional id "busy" has an open transaction."""


def _broker(node_id: int, *, fenced: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=bytes([node_id]) * 16,
        broker_epoch=node_id,
        features=(SupportedFeature("metadata.version", 7, 33),),
        fenced=fenced,
        log_dirs=(bytes([64 + node_id]) * 16,),
    )


def _partition(
    number: int, replicas: tuple[int, ...], leader: int, **more: object
) -> PartitionRecord:
    return PartitionRecord(
        number,
        TOPIC,
        replicas=replicas,
        isr=(leader,) if leader > 0 else replicas,
        leader=leader,
        leader_epoch=5,
        partition_epoch=7,
        directories=(bytes(15) + b"\1",) * len(replicas),
        **more,  # type: ignore[arg-type]
    )


IN_USE: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord("metadata.version", 33),
    _broker(1),
    _broker(2),
    _broker(3, fenced=True),
    TopicRecord("t", TOPIC),
    _partition(0, (1, 2), 1),
    _partition(1, (3,), -1),
    _partition(2, (3, 1), 1, eligible_leader_replicas=(3,)),
    _partition(3, (2, 1), 1, removing_replicas=(1,), adding_replicas=(2,)),
    InitProducerRecord(WRITER, 3),
    TransactionalIdRecord("busy", producer_id=WRITER, producer_epoch=3, status=1),
)
"""Brokers 1 and 2 are active and 3 is fenced, so partition 1 has no leader and 2 not the preferred
one; partition 3 is moving away from its leader."""


class EvaluatedNode(FakeNode):
    """Commits every command at once. With ``loses`` leadership is lost before the commit."""

    def __init__(self, **settings: object) -> None:
        super().__init__(SharedLog(leader=1))
        self.bench = Bench(**{"bootstrap": IN_USE, **settings})  # type: ignore[arg-type]
        self.loses = False

    def take(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        self.bench.controller.submit(command, context, on_answer)
        self.bench.flush()
        if self.loses:
            self.bench.log.depose()
            return
        self.bench.log.settle()
        self.bench.log.confirm_reads()
