"""Commands and events as plain documents, topics once with their partitions nested (380.6)."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.broker_agent.commands import (
    BrokerCommand,
    CommandTag,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
    offline_replicas,
)
from quorate.broker_agent.handler import (
    AgentEvent,
    HistoryLost,
    Refused,
    Registered,
    StateChanged,
)
from quorum.types import NodeId, Uuid, uuid_to_text
from statemachine.sections.cluster import BrokerRegistration
from statemachine.sections.partitions import PartitionState


def describe_command(command: BrokerCommand, broker_id: NodeId) -> dict[str, object]:
    """Return a command as a document."""
    document = {"event": type(command).__name__, **_tag(command.tag)}
    if isinstance(command, LeaderAndIsr):
        document["is_full"] = command.is_full
        document["topics"] = [
            {
                **_topic(topic_id, topic.name),
                "partitions": [
                    {**_state(number, each.state, broker_id), "is_new": each.is_new}
                    for number, each in topic.partitions.items()
                ],
            }
            for topic_id, topic in command.topics.items()
        ]
        document["live_leaders"] = {
            str(leader): [f"{each.name}://{each.host}:{each.port}" for each in endpoints]
            for leader, endpoints in command.live_leaders.items()
        }
    elif isinstance(command, StopReplica):
        document["delete_partitions"] = command.delete_partitions
        document["topics"] = [
            {**_topic(topic_id, topic.name), "partitions": list(topic.partitions)}
            for topic_id, topic in command.topics.items()
        ]
    else:
        document |= _metadata(command)
    return document


def describe_event(event: AgentEvent, broker_id: NodeId) -> dict[str, object]:
    """Return an event as a document."""
    name = type(event).__name__
    if isinstance(event, Registered):
        return {"event": name, "broker_id": broker_id, "broker_epoch": event.broker_epoch}
    if isinstance(event, StateChanged):
        state = {"state": event.state.value, "metadata_offset": event.metadata_offset}
        return {"event": name, "broker_id": broker_id, **state}
    if isinstance(event, Refused):
        command = type(event.command).__name__
        tag = _tag(event.command.tag)
        return {"event": name, "command": command, "error": event.code.name, **tag}
    if isinstance(event, HistoryLost):
        return {"event": name, "cause": event.cause}
    return {"event": name, "cause": event.cause}


def _metadata(command: UpdateMetadata) -> dict[str, object]:
    brokers = command.brokers
    return {
        "is_full": command.is_full,
        "topics": [
            {
                **_topic(topic_id, topic.name),
                "partitions": [
                    {
                        "partition": number,
                        "leader": state.leader,
                        "leader_epoch": state.leader_epoch,
                        "isr": list(state.isr),
                        "replicas": list(state.replicas),
                    }
                    | _offline(state, brokers)
                    for number, state in topic.partitions.items()
                ],
            }
            for topic_id, topic in command.topics.items()
        ],
        "deleted_topics": [uuid_to_text(each) for each in command.deleted_topics],
        "brokers": None
        if brokers is None
        else [_broker(brokers[each]) for each in sorted(brokers)],
    }


def _offline(
    state: PartitionState, brokers: Mapping[NodeId, BrokerRegistration] | None
) -> dict[str, object]:
    if brokers is None:
        return {}
    return {"offline_replicas": list(offline_replicas(state, brokers))}


def _broker(broker: BrokerRegistration) -> dict[str, object]:
    return {
        "broker_id": broker.id,
        "broker_epoch": broker.epoch,
        "rack": broker.rack,
        "is_active": broker.is_active,
        "listeners": [f"{each.name}://{each.host}:{each.port}" for each in broker.endpoints],
    }


def _tag(tag: CommandTag) -> dict[str, object]:
    return {
        "broker_epoch": tag.broker_epoch,
        "controller_epoch": tag.controller_epoch,
        "metadata_offset": tag.metadata_offset,
    }


def _topic(topic_id: Uuid, name: str) -> dict[str, object]:
    return {"topic_id": uuid_to_text(topic_id), "name": name}


def _state(number: int, state: PartitionState, broker_id: NodeId) -> dict[str, object]:
    directory = state.directory(broker_id)
    return {
        "partition": number,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "partition_epoch": state.partition_epoch,
        "replicas": list(state.replicas),
        "directory_id": None if directory is None else uuid_to_text(directory),
    }
