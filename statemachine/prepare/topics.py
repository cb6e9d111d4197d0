"""Create and delete topics; refuse commands that would touch the metadata topic."""

from __future__ import annotations

import re
from itertools import product

from quorum.errors import CommandError, ErrorCode
from quorum.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, NodeId, Uuid, uuid_to_text
from statemachine.commands import (
    DEFAULT_COUNT,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    ResourceType,
)
from statemachine.placement import place_replicas
from statemachine.prepare.configs import check_topic_configs
from statemachine.prepare.context import (
    DEFAULT_PARTITION_COUNT,
    DEFAULT_REPLICATION_FACTOR,
    PARTITIONS_PER_COMMAND_MAX,
    EvaluationContext,
    Prepared,
)
from statemachine.prepare.replicas import check_assignment, new_partitions, usable_brokers
from statemachine.prepare.view import View
from statemachine.records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord

TOPIC_NAME_LENGTH_MAX = 249
COLLIDING_NAMES_TRIED_MAX = 1024
"""Bound on spellings of a name with '.' or '_'; above it, all topics are scanned instead."""
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def prepare_create_topic(view: View, command: CreateTopic, context: EvaluationContext) -> Prepared:
    """Return the records in this order: the topic, its configuration, its partitions.

    Raises:
        CommandError: INVALID_TOPIC, TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_PARTITIONS,
            INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST (counts
            and assignments together), POLICY_VIOLATION (too many partitions, or the name of
            the metadata topic).
    """
    name = command.name
    check_topic_name(name)
    if view.topics.id_of(name) is not None:
        raise CommandError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} exists already")
    other = _colliding_name(view, name)
    if other is not None:
        raise CommandError(
            ErrorCode.INVALID_TOPIC,
            f"topic {name!r} collides with {other!r}: metric names use '_' for '.'",
        )
    check_topic_configs(command.configs)
    placed = _manual_placement(view, command) or _automatic_placement(view, command, context)
    topic_id = _new_topic_id(view, context)
    records: list[MetadataRecord] = [TopicRecord(name, topic_id)]
    records.extend(
        ConfigRecord(int(ResourceType.TOPIC), name, key, value)
        for key, value in command.configs
        if value is not None
    )
    records += new_partitions(view, context, topic_id, 0, placed)
    return Prepared(
        records,
        {
            "topic_id": topic_id,
            "partition_count": len(placed),
            "replication_factor": len(placed[0]),
        },
    )


def check_topic_name(name: str) -> None:
    """Refuse an invalid topic name.

    Raises:
        CommandError: INVALID_TOPIC, or POLICY_VIOLATION for the metadata topic.
    """
    if name == METADATA_TOPIC:
        raise _is_protected("created")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise CommandError(
            ErrorCode.INVALID_TOPIC,
            f"a topic name of {len(name)} characters exceeds {TOPIC_NAME_LENGTH_MAX}",
        )
    if name in (".", "..") or not TOPIC_NAME.fullmatch(name):
        raise CommandError(
            ErrorCode.INVALID_TOPIC,
            f"{name!r} is no topic name: letters, digits, '.', '_' and '-' make one",
        )


def _colliding_name(view: View, name: str) -> str | None:
    """Return a topic whose name differs from ``name`` only in '.' for '_'; None for none.

    Brokers use '_' for '.' in the metric names of a topic, and refuse such pairs too.
    """
    if "." not in name and "_" not in name:
        return None
    parts = re.split("[._]", name)
    if 2 ** (len(parts) - 1) > COLLIDING_NAMES_TRIED_MAX:
        wanted = name.replace(".", "_")
        return next((each for each in view.topics.ids if each.replace(".", "_") == wanted), None)
    for marks in product("._", repeat=len(parts) - 1):
        other = parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:]))
        if view.topics.id_of(other) is not None:
            return other
    return None


def _manual_placement(view: View, command: CreateTopic) -> list[tuple[NodeId, ...]]:
    if not command.assignments:
        return []
    if command.partition_count != DEFAULT_COUNT or command.replication_factor != DEFAULT_COUNT:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"assignments are given together with partition count {command.partition_count} "
            f"and replication factor {command.replication_factor}; both must be -1",
        )
    check_partition_count(len(command.assignments))
    ordered = sorted(command.assignments, key=lambda assignment: assignment.partition)
    if [assignment.partition for assignment in ordered] != list(range(len(ordered))):
        raise CommandError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "assigned partitions must be numbered consecutively from 0",
        )
    factor = len(ordered[0].replicas)
    for assignment in ordered:
        check_assignment(view, assignment.replicas, assignment.partition, factor)
    return [assignment.replicas for assignment in ordered]


def _automatic_placement(
    view: View, command: CreateTopic, context: EvaluationContext
) -> list[tuple[NodeId, ...]]:
    count = command.partition_count
    if count == DEFAULT_COUNT:
        count = DEFAULT_PARTITION_COUNT
    factor = command.replication_factor
    if factor == DEFAULT_COUNT:
        factor = DEFAULT_REPLICATION_FACTOR
    check_partition_count(count)
    return place_replicas(
        usable_brokers(view, context),
        partition_count=count,
        replication_factor=factor,
        rng=context.rng,
    )


def check_partition_count(count: int) -> None:
    """Refuse a number of new partitions outside the range of one command.

    Raises:
        CommandError: INVALID_PARTITIONS below 1, POLICY_VIOLATION above the maximum.
    """
    if count < 1:
        raise CommandError(ErrorCode.INVALID_PARTITIONS, f"{count} partitions are not above 0")
    if count > PARTITIONS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"{count} partitions in one request exceed {PARTITIONS_PER_COMMAND_MAX}; "
            "create the topic smaller and add partitions in steps",
        )


def _new_topic_id(view: View, context: EvaluationContext) -> Uuid:
    while True:
        topic_id = context.rng.randbytes(16)
        # Ids that begin with a dash in text form confuse command lines.
        if topic_id[0] >> 2 == 0b111110 or topic_id in (ZERO_UUID, METADATA_TOPIC_ID):
            continue
        if view.topics.name_of(topic_id) is None:
            return topic_id


def prepare_delete_topic(view: View, command: DeleteTopic, context: EvaluationContext) -> Prepared:
    """Return one record that deletes the topic, its partitions and its configuration.

    Raises:
        CommandError: INVALID_REQUEST (neither name nor id), UNKNOWN_TOPIC_OR_PARTITION,
            UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID, POLICY_VIOLATION for the metadata topic.
    """
    del context
    name, topic_id = command.name, command.topic_id
    if name == METADATA_TOPIC or topic_id == METADATA_TOPIC_ID:
        raise _is_protected("deleted")
    if name:
        known_id = view.topics.id_of(name)
        if known_id is None:
            raise CommandError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no topic {name[:TOPIC_NAME_LENGTH_MAX]!r}",
            )
        if topic_id not in (ZERO_UUID, known_id):
            raise CommandError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"topic {name!r} has id {uuid_to_text(known_id)}, not {uuid_to_text(topic_id)}",
            )
        return _removal(known_id, name)
    if topic_id == ZERO_UUID:
        raise CommandError(ErrorCode.INVALID_REQUEST, "name the topic to delete, or give its id")
    known_name = view.topics.name_of(topic_id)
    if known_name is None:
        raise CommandError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {uuid_to_text(topic_id)}"
        )
    return _removal(topic_id, known_name)


def _removal(topic_id: Uuid, name: str) -> Prepared:
    return Prepared([RemoveTopicRecord(topic_id)], {"topic_id": topic_id, "name": name})


def prepare_delete_records(
    view: View, command: DeleteRecords, context: EvaluationContext
) -> Prepared:
    """Always refuse: checkpoints alone trim the metadata log (630.7), brokers keep topic records.

    Raises:
        CommandError: POLICY_VIOLATION for the metadata topic, NOT_LEADER_OR_FOLLOWER for an
            existing topic, UNKNOWN_TOPIC_OR_PARTITION otherwise.
    """
    del context
    if command.topic == METADATA_TOPIC:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"records of {METADATA_TOPIC} cannot be deleted: its cleanup.policy is snapshot",
        )
    if view.topics.id_of(command.topic) is not None:
        raise CommandError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"records of {command.topic!r} are kept by its brokers",
        )
    raise CommandError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"there is no topic {command.topic[:TOPIC_NAME_LENGTH_MAX]!r}",
    )


def _is_protected(verb: str) -> CommandError:
    return CommandError(ErrorCode.POLICY_VIOLATION, f"{METADATA_TOPIC} cannot be {verb}")
