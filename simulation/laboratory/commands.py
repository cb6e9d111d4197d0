"""Commands of the controller to a broker, derived from two images (KIP-380).

Each names the broker epoch that it was decided for. Topics are named once, with their partitions
nested (380.6).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.types import NodeId, Uuid
from statemachine.image import MetadataImage
from statemachine.sections.partitions import PartitionState

TopicPartition = tuple[Uuid, int]


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The states of partitions that the broker has a replica of, by topic and number."""

    broker_epoch: int
    topics: dict[Uuid, dict[int, PartitionState]]


@dataclass(frozen=True, slots=True)
class StopReplica:
    """Partitions that the broker no longer has a replica of: its log of them is removed."""

    broker_epoch: int
    topics: dict[Uuid, tuple[int, ...]]


BrokerCommand = LeaderAndIsr | StopReplica


def commands_for(
    broker_id: NodeId, before: MetadataImage, after: MetadataImage
) -> list[BrokerCommand]:
    """Return what the change from ``before`` to ``after`` tells a registered broker.

    A registration that is new in ``after`` gets the state of all its partitions (380.5).
    """
    broker = after.cluster.broker(broker_id)
    if broker is None:
        return []
    known = before.cluster.broker(broker_id)
    is_new = known is None or known.epoch != broker.epoch
    had = {} if is_new else _replicas_of(broker_id, before)
    has = _replicas_of(broker_id, after)
    changed: dict[Uuid, dict[int, PartitionState]] = {}
    for (topic_id, number), state in has.items():
        if had.get((topic_id, number)) != state:
            changed.setdefault(topic_id, {})[number] = state
    gone: dict[Uuid, tuple[int, ...]] = {}
    for topic_id, number in had.keys() - has.keys():
        gone[topic_id] = (*gone.get(topic_id, ()), number)
    commands: list[BrokerCommand] = []
    if changed or is_new:
        commands.append(LeaderAndIsr(broker.epoch, changed))
    if gone:
        commands.append(StopReplica(broker.epoch, gone))
    return commands


def _replicas_of(broker_id: NodeId, image: MetadataImage) -> dict[TopicPartition, PartitionState]:
    return {
        (topic_id, number): state
        for topic_id in image.topics.names
        for number, state in image.topics.partitions_of(topic_id).items()
        if broker_id in state.replicas
    }
