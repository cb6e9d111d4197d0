"""Converts operations of a history to calls of the client library, and answers to results."""

from __future__ import annotations

from history.operation import Action, Level, Operation, Value
from quorate.client.client import Client
from quorate.client.pending import Applied
from quorate.client.queries import LINEARIZABLE, LOCAL, at_least
from quorate.client.results import (
    ConfigSource,
    ErrorCode,
    ReadPosition,
    ResourceConfigs,
    TopicDescription,
)
from quorate.client.results.commands import CreateTopicResult
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2

TOPIC = "topic:"
METRICS = "metrics:"
"""Client metrics subscriptions: they need not be created before they are configured."""
CONFIGS = {TOPIC: "quorate.note", METRICS: "metrics"}
"""The configuration key that histories use, by sort of resource."""
BROKERS = (1001, 1002, 1003)
_RESOURCES = {
    TOPIC: wire.CONFIG_RESOURCE_TYPE_TOPIC,
    METRICS: wire.CONFIG_RESOURCE_TYPE_CLIENT_METRICS,
}
_WAYS = {
    "set": wire.CONFIG_OPERATION_SET,
    "delete": wire.CONFIG_OPERATION_DELETE,
    "append": wire.CONFIG_OPERATION_APPEND,
}


def resource(key: str) -> tuple[str, str]:
    """Split a key into its sort (with the colon) and the name."""
    sort, colon, name = key.partition(":")
    return sort + colon, name


def command(operation: Operation) -> wire.Command:
    """Return a write as a command."""
    sort, name = resource(operation.key)
    arguments = operation.arguments
    made = wire.Command()
    if operation.action is Action.CREATE:
        made.create_topic.name = name
        made.create_topic.assignments.extend(_assignments(0, int(str(arguments["partitions"]))))
    elif operation.action is Action.DELETE:
        made.delete_topic.name = name
        given = arguments.get("topic_id")
        if given:
            made.delete_topic.topic_id = bytes.fromhex(str(given))
    elif operation.action is Action.GROW:
        made.create_partitions.topic_name = name
        made.create_partitions.partition_count = int(str(arguments["partitions"]))
    else:
        change = made.incremental_alter_configs
        change.resource_type = _RESOURCES[sort]
        change.resource_name = name
        for config, route, value in arguments["changes"]:
            alteration = change.alterations.add(name=config, operation=_WAYS[route])
            if value is not None:
                alteration.value = value
    return made


def _assignments(first: int, end: int) -> list[wire.ReplicaAssignment]:
    return [
        wire.ReplicaAssignment(partition=each, broker_ids=BROKERS) for each in range(first, end)
    ]


def written(operation: Operation, applied: Applied) -> dict[str, Value]:
    """Return the result of a write."""
    if operation.action is Action.CREATE:
        return {"topic_id": applied.yielded(CreateTopicResult).topic_id.hex()}
    return {}


def read_options(operation: Operation) -> metadata_pb2.ReadOptions:
    if operation.level is Level.LINEARIZABLE:
        return LINEARIZABLE
    return LOCAL if operation.level is Level.LOCAL else at_least(operation.at_least)


async def read(
    client: Client, operation: Operation, *, configs: bool
) -> tuple[ReadPosition, dict[str, Value]]:
    """Read the operation's key: a configuration value, or the topic itself."""
    sort, name = resource(operation.key)
    options = read_options(operation)
    if configs or sort != TOPIC:
        answer = await client.describe_configs([(_RESOURCES[sort], name)], read=options)
        return answer.position, _configs_seen(answer.resources[0], CONFIGS[sort])
    described = await client.describe_topics([name], read=options)
    (topic,) = described.topics
    return described.position, _topic_seen(topic)


def _configs_seen(found: ResourceConfigs, name: str) -> dict[str, Value]:
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return {"exists": False}
    value = next(
        (
            entry.value
            for entry in found.entries
            if entry.name == name and entry.source == ConfigSource.RESOURCE
        ),
        None,
    )
    return {"exists": True, "configs": {name: value}}


def _topic_seen(found: TopicDescription) -> dict[str, Value]:
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return {"exists": False}
    return {
        "exists": True,
        "topic_id": found.topic_id.hex(),
        "partitions": len(found.partitions),
    }
