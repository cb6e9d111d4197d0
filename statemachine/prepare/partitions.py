"""Add partitions to a topic; elect leaders on request."""

from __future__ import annotations

from quorum.errors import CommandError, ErrorCode
from quorum.types import METADATA_TOPIC, NodeId, Uuid
from statemachine.commands import CreatePartitions, ElectionType, ElectLeaders
from statemachine.election import Election, WantedChange, build_change
from statemachine.placement import place_replicas
from statemachine.prepare.context import (
    DEFAULT_REPLICATION_FACTOR,
    PARTITIONS_PER_COMMAND_MAX,
    EvaluationContext,
    Prepared,
)
from statemachine.prepare.replicas import (
    check_assignment,
    election_rules,
    new_partitions,
    usable_brokers,
)
from statemachine.prepare.topics import TOPIC_NAME_LENGTH_MAX, check_partition_count
from statemachine.prepare.view import View
from statemachine.records import MetadataRecord


def prepare_create_partitions(
    view: View, command: CreatePartitions, context: EvaluationContext
) -> Prepared:
    """Return one record per new partition; existing partitions are not moved.

    Raises:
        CommandError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS (not above the present
            count), INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, POLICY_VIOLATION.
    """
    topic_id = _existing_topic(view, command.name)
    present = view.topics.partitions_of(topic_id)
    new_count = command.partition_count - len(present)
    if new_count <= 0:
        raise CommandError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {command.name!r} has {len(present)} partitions; "
            f"{command.partition_count} would not be more",
        )
    check_partition_count(new_count)
    first = present.get(min(present)) if present else None
    factor = len(first.replicas) if first is not None else DEFAULT_REPLICATION_FACTOR
    placed = _placement(view, command, context, new_count=new_count, factor=factor)
    first_partition = max(present) + 1 if present else 0
    records = new_partitions(view, context, topic_id, first_partition, placed)
    return Prepared(records, {"topic_id": topic_id, "partition_count": len(present) + len(placed)})


def _placement(
    view: View,
    command: CreatePartitions,
    context: EvaluationContext,
    *,
    new_count: int,
    factor: int,
) -> list[tuple[NodeId, ...]]:
    if not command.assignments:
        return place_replicas(
            usable_brokers(view, context),
            partition_count=new_count,
            replication_factor=factor,
            rng=context.rng,
        )
    if len(command.assignments) != new_count:
        raise CommandError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(command.assignments)} assignments for {new_count} new partitions",
        )
    start = command.partition_count - new_count
    for index, replicas in enumerate(command.assignments):
        check_assignment(view, replicas, start + index, factor)
    return list(command.assignments)


def prepare_elect_leaders(
    view: View, command: ElectLeaders, context: EvaluationContext
) -> Prepared:
    """Elect leaders for one topic's partitions; each partition succeeds or fails by itself.

    A partition that already has the requested leader yields no record and NONE. A partition for
    which no leader is eligible yields PREFERRED_LEADER_NOT_AVAILABLE or BROKER_NOT_AVAILABLE.

    Raises:
        CommandError: UNKNOWN_TOPIC_OR_PARTITION for the topic, INVALID_REQUEST,
            POLICY_VIOLATION for too many partitions.
    """
    del context
    topic_id = _existing_topic(view, command.topic)
    if command.election_type not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        raise CommandError(
            ErrorCode.INVALID_REQUEST, f"unknown election type {command.election_type}"
        )
    is_preferred = command.election_type == ElectionType.PREFERRED
    chosen = sorted(set(command.partitions) or view.topics.partitions_of(topic_id))
    if len(chosen) > PARTITIONS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"{len(chosen)} partitions in one request exceed {PARTITIONS_PER_COMMAND_MAX}",
        )
    records: list[MetadataRecord] = []
    answers: list[dict[str, object]] = []
    for partition in chosen:
        code, leader = _elect(
            view, command.topic, topic_id, partition, records, is_preferred=is_preferred
        )
        answers.append({"partition": partition, "error_code": int(code), "leader_id": leader})
    return Prepared(records, {"partitions": answers})


def _elect(
    view: View,
    topic: str,
    topic_id: Uuid,
    partition_id: int,
    records: list[MetadataRecord],
    *,
    is_preferred: bool,
) -> tuple[ErrorCode, NodeId]:
    state = view.topics.partition(topic_id, partition_id)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1
    rules = election_rules(view, topic)
    if is_preferred:
        if state.leader == state.replicas[0]:
            return ErrorCode.NONE, state.leader
        wanted = WantedChange(election=Election.PREFERRED)
        missed = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        if state.leader >= 0:
            return ErrorCode.NONE, state.leader
        wanted = WantedChange(election=Election.UNCLEAN)
        missed = ErrorCode.BROKER_NOT_AVAILABLE
    change = build_change(state, wanted, rules, topic_id=topic_id, partition_id=partition_id)
    if change is None or change.leader < 0:
        return missed, state.leader
    if is_preferred and change.leader != state.replicas[0]:
        return missed, state.leader
    records.append(change)
    return ErrorCode.NONE, change.leader


def _existing_topic(view: View, name: str) -> Uuid:
    if name == METADATA_TOPIC:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION, f"{METADATA_TOPIC} has one partition, led by the quorum"
        )
    topic_id = view.topics.id_of(name)
    if topic_id is None:
        raise CommandError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no topic {name[:TOPIC_NAME_LENGTH_MAX]!r}",
        )
    return topic_id
