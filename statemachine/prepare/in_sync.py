"""Evaluate AlterPartition: a partition leader's ISR changes (KIP-497, KIP-903).

statemachine/DESIGN.md has the checks and their order.
"""

from __future__ import annotations

from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId, Uuid
from statemachine.commands import AlterPartition, PartitionAlteration
from statemachine.election import WantedChange, build_change
from statemachine.prepare.brokers import check_generation
from statemachine.prepare.context import PARTITIONS_PER_COMMAND_MAX, EvaluationContext, Prepared
from statemachine.prepare.replicas import election_rules
from statemachine.prepare.view import View, topic_name
from statemachine.records import RECOVERED, RECOVERING, MetadataRecord
from statemachine.sections.partitions import PartitionState, changed_state


def prepare_alter_partition(
    view: View, command: AlterPartition, context: EvaluationContext
) -> Prepared:
    """Return one change per partition that changes; an identical ISR yields none.

    Partitions are evaluated one by one. Each answer has its own error code, and the state
    after the change if that is NONE. NEW_LEADER_ELECTED means that the change was made and
    gave the partition another leader.

    Raises:
        CommandError: STALE_BROKER_EPOCH for the whole request (380.2), INVALID_REQUEST for a
            duplicate partition, POLICY_VIOLATION for too many partitions.
    """
    del context
    check_generation(view, command.broker_id, command.broker_epoch)
    _check_shape(command)
    records: list[MetadataRecord] = []
    topics: list[dict[str, object]] = []
    for topic in command.topics:
        name = topic_name(view, topic.topic_id)
        answers: list[dict[str, object]] = []
        for wanted in topic.partitions:
            if name is None:
                answers.append(_refusal(wanted.partition, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                answers.append(
                    _alter(view, command.broker_id, topic.topic_id, name, wanted, records)
                )
        topics.append({"topic_id": topic.topic_id, "partitions": answers})
    return Prepared(records, {"topics": topics})


def _check_shape(command: AlterPartition) -> None:
    named = [
        (topic.topic_id, wanted.partition)
        for topic in command.topics
        for wanted in topic.partitions
    ]
    if len(named) > PARTITIONS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"{len(named)} partitions in one request exceed {PARTITIONS_PER_COMMAND_MAX}",
        )
    if len(set(named)) != len(named):
        raise CommandError(ErrorCode.INVALID_REQUEST, "a partition is named more than once")


def _alter(
    view: View,
    broker_id: NodeId,
    topic_id: Uuid,
    name: str,
    wanted: PartitionAlteration,
    records: list[MetadataRecord],
) -> dict[str, object]:
    state = view.topics.partition(topic_id, wanted.partition)
    if state is None:
        return _refusal(wanted.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = check_alteration(view, broker_id, state, wanted)
    if code is not ErrorCode.NONE:
        return _refusal(wanted.partition, code)
    members = {member.broker_id for member in wanted.isr}
    change = build_change(
        state,
        WantedChange(
            isr=tuple(replica for replica in state.replicas if replica in members),
            leader_recovery_state=wanted.leader_recovery_state,
        ),
        election_rules(view, name),
        topic_id=topic_id,
        partition_id=wanted.partition,
    )
    if change is None:
        return _outcome(wanted.partition, ErrorCode.NONE, state)
    records.append(change)
    after = changed_state(state, change)
    if after.leader != broker_id:
        return _outcome(wanted.partition, ErrorCode.NEW_LEADER_ELECTED, after)
    return _outcome(wanted.partition, ErrorCode.NONE, after)


def check_alteration(
    view: View, broker_id: NodeId, state: PartitionState, wanted: PartitionAlteration
) -> ErrorCode:
    """Return the first objection to an ISR change of one existing partition, NONE for none."""
    if wanted.leader_epoch > state.leader_epoch or wanted.partition_epoch > state.partition_epoch:
        # The sender has seen a later state: this controller is behind.
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member.broker_id for member in wanted.isr]
    if (
        len(set(members)) != len(members)
        or not set(members) <= set(state.replicas)
        or broker_id not in members
    ):
        return ErrorCode.INVALID_REQUEST
    recovery = wanted.leader_recovery_state
    if recovery not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if recovery == RECOVERING and (len(members) > 1 or state.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    for member in wanted.isr:
        broker = view.cluster.broker(member.broker_id)
        if broker is None or not broker.is_active or member.broker_epoch not in (-1, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _refusal(partition: int, code: ErrorCode) -> dict[str, object]:
    return {"partition": partition, "error_code": int(code)}


def _outcome(partition: int, code: ErrorCode, state: PartitionState) -> dict[str, object]:
    return {
        "partition": partition,
        "error_code": int(code),
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "leader_recovery_state": state.leader_recovery_state,
        "partition_epoch": state.partition_epoch,
    }
