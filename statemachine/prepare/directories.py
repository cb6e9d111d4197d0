"""Evaluate commands about log directories: cordons (KIP-1066) and assignments (KIP-858).

A cordoned directory keeps its replicas and gets no new ones. Its broker gets none at all when all
of its directories are cordoned.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorum.errors import CommandError, ErrorCode
from quorum.types import Uuid, uuid_to_text
from statemachine.commands import AssignReplicasToDirs, CordonLogDirs
from statemachine.election import WantedChange, build_change
from statemachine.prepare.brokers import check_generation
from statemachine.prepare.context import PARTITIONS_PER_COMMAND_MAX, EvaluationContext, Prepared
from statemachine.prepare.replicas import CORDONS_LEVEL, DIRECTORIES_LEVEL, election_rules
from statemachine.prepare.view import View, topic_name
from statemachine.records import BrokerRegistrationChangeRecord, MetadataRecord
from statemachine.sections.cluster import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    BrokerRegistration,
    is_reserved_directory,
)
from statemachine.sections.partitions import PartitionState


def prepare_cordon_log_dirs(
    view: View, command: CordonLogDirs, context: EvaluationContext
) -> Prepared:
    """Return the change of the registration; no record if nothing changes.

    Raises:
        CommandError: UNSUPPORTED_VERSION below metadata.version 4.3-IV0, BROKER_ID_NOT_REGISTERED,
            INVALID_REQUEST for a directory that the broker does not have.
    """
    del context
    level = view.features.metadata_version
    if level < CORDONS_LEVEL:
        raise CommandError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"cordons need metadata.version {CORDONS_LEVEL} or above; it is {level}",
        )
    broker = view.cluster.broker(command.broker_id)
    if broker is None:
        raise CommandError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {command.broker_id} is not registered"
        )
    unknown = [each for each in command.log_dirs if each not in broker.log_dirs]
    if unknown:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"broker {broker.id} has no log directory {uuid_to_text(unknown[0])}; it has "
            f"{', '.join(map(uuid_to_text, broker.log_dirs)) or 'none'}",
        )
    named = set(command.log_dirs or broker.log_dirs)
    known = set(broker.cordoned_log_dirs or ())
    wanted = known - named if command.uncordon else known | named
    records = cordon_records(broker, wanted)
    return Prepared(records, {"cordoned_log_dirs": sorted(wanted)})


def cordon_records(broker: BrokerRegistration, wanted: Iterable[Uuid]) -> list[MetadataRecord]:
    """Return the change of a registration to these cordoned directories, if it is one."""
    cordoned = tuple(sorted(set(wanted)))
    if cordoned == tuple(sorted(broker.cordoned_log_dirs or ())):
        return []
    return [BrokerRegistrationChangeRecord(broker.id, broker.epoch, cordoned_log_dirs=cordoned)]


def prepare_assign_replicas_to_dirs(
    view: View, command: AssignReplicasToDirs, context: EvaluationContext
) -> Prepared:
    """Return one change per replica whose directory is another one; each has its own answer.

    A replica in a directory that is not online leaves the ISR, and another one leads.

    Raises:
        CommandError: UNSUPPORTED_VERSION below metadata.version 3.7-IV2, STALE_BROKER_EPOCH for
            the whole request (380.2), INVALID_REQUEST for a reserved directory or a replica
            named twice, POLICY_VIOLATION for too many of them.
    """
    del context
    level = view.features.metadata_version
    if level < DIRECTORIES_LEVEL:
        raise CommandError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"directories of replicas need metadata.version {DIRECTORIES_LEVEL} or above; it is "
            f"{level}",
        )
    broker = check_generation(view, command.broker_id, command.broker_epoch)
    _check_shape(command)
    records: list[MetadataRecord] = []
    answers: list[dict[str, object]] = []
    for assignment in command.directories:
        topics: list[dict[str, object]] = []
        for topic in assignment.topics:
            name = topic_name(view, topic.topic_id)
            partitions = []
            for number in topic.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_ID
                if name is not None:
                    state = view.topics.partition(topic.topic_id, number)
                    code = _objection(broker, state)
                    if state is not None and code is ErrorCode.NONE:
                        records += _move(
                            view, broker, assignment.directory_id, state, (topic.topic_id, number)
                        )
                partitions.append({"partition": number, "error_code": int(code)})
            topics.append({"topic_id": topic.topic_id, "partitions": partitions})
        answers.append({"directory_id": assignment.directory_id, "topics": topics})
    return Prepared(records, {"directories": answers})


def _check_shape(command: AssignReplicasToDirs) -> None:
    named = [
        (topic.topic_id, number)
        for assignment in command.directories
        for topic in assignment.topics
        for number in topic.partitions
    ]
    if len(named) > PARTITIONS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"{len(named)} partitions in one request exceed {PARTITIONS_PER_COMMAND_MAX}",
        )
    if len(set(named)) != len(named):
        raise CommandError(ErrorCode.INVALID_REQUEST, "a partition is named more than once")
    for assignment in command.directories:
        directory = assignment.directory_id
        if is_reserved_directory(directory) and directory != DIRECTORY_LOST:
            raise CommandError(
                ErrorCode.INVALID_REQUEST, f"the directory id {uuid_to_text(directory)} is reserved"
            )


def _objection(broker: BrokerRegistration, state: PartitionState | None) -> ErrorCode:
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.id in state.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _move(
    view: View,
    broker: BrokerRegistration,
    directory: Uuid,
    state: PartitionState,
    key: tuple[Uuid, int],
) -> list[MetadataRecord]:
    directories = tuple(
        directory if replica == broker.id else state.directory(replica) or DIRECTORY_MIGRATING
        for replica in state.replicas
    )
    isr = state.isr
    if not broker.has_online(directory):
        isr = tuple(member for member in isr if member != broker.id)
    if directories == state.directories and isr == state.isr:
        return []
    topic_id, number = key
    change = build_change(
        state,
        WantedChange(isr=isr, directories=directories),
        election_rules(view, view.topics.name_of(topic_id) or ""),
        topic_id=topic_id,
        partition_id=number,
    )
    return [] if change is None else [change]
