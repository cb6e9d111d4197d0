"""Register and unregister brokers (KIP-631; requirements 380.*).

A broker epoch identifies one registration of a broker incarnation. It is assigned when the
registration becomes visible, is unique and only rises. A bounced broker (same id, new
incarnation) is handled as a failure, then as a start, however fast it bounced.
"""

from __future__ import annotations

from quorum.errors import CommandError, ErrorCode
from quorum.types import ZERO_UUID, NodeId, Uuid
from statemachine.commands import FeatureRange, RegisterBroker, UnregisterBroker
from statemachine.feature_levels import KRAFT_VERSION
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.lifecycle import removal_records
from statemachine.prepare.replicas import CORDONS_LEVEL, DIRECTORIES_LEVEL
from statemachine.prepare.view import View, is_elr_enabled, registered_brokers
from statemachine.records import (
    METADATA_VERSION,
    ListenerEndpoint,
    MetadataRecord,
    RegisterBrokerRecord,
    SupportedFeature,
    UnregisterBrokerRecord,
)
from statemachine.sections.cluster import BrokerRegistration, is_reserved_directory

BROKER_ID_MAX = 2**31 - 1
ENTRIES_MAX = 1_000
"""Listeners, features or log directories in one registration."""
NAME_LENGTH_MAX = 255
"""Characters of a listener, host, feature or rack name."""


def check_generation(view: View, broker_id: NodeId, broker_epoch: int) -> BrokerRegistration:
    """Return the broker's registration with exactly this epoch.

    Raises:
        CommandError: STALE_BROKER_EPOCH for an unknown id or another epoch (380.2).
    """
    broker = view.cluster.broker(broker_id)
    if broker is None:
        raise CommandError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} is not registered (it gave epoch {broker_epoch})",
        )
    if broker.epoch != broker_epoch:
        raise CommandError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} has epoch {broker.epoch}, the request has {broker_epoch}",
        )
    return broker


def prepare_register_broker(
    view: View, command: RegisterBroker, context: EvaluationContext
) -> Prepared:
    """Return the clean-up of a former incarnation, then the registration as the last record.

    A new incarnation gets a new epoch and starts fenced. The same incarnation keeps epoch,
    fence and shutdown flags; if nothing differs there is no record.

    Raises:
        CommandError: In this order INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION,
            BROKER_ID_NOT_REGISTERED (migrating brokers), INVALID_REGISTRATION,
            UNSUPPORTED_VERSION.
    """
    if command.cluster_id != context.cluster_id:
        raise CommandError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"this is cluster {context.cluster_id!r}, the broker belongs to "
            f"{command.cluster_id[:64]!r}",
        )
    existing = view.cluster.broker(command.broker_id)
    is_same = existing is not None and existing.incarnation_id == command.incarnation_id
    if existing is not None and not is_same:
        _check_session_over(existing, context)
    if command.is_migrating_zk_broker:
        raise CommandError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "migrating brokers are not supported"
        )
    _check_form(command)
    _check_directories(view, command)
    check_broker_features(view, command.features, context.kraft_version)
    if existing is not None and is_same:
        return _amend(view, command, existing)
    records: list[MetadataRecord] = []
    if existing is not None:
        is_unclean = is_elr_enabled(view) and command.previous_broker_epoch != existing.epoch
        records.extend(
            removal_records(
                view,
                existing,
                is_unclean=is_unclean,
                uses_native_codec=context.uses_native_codec,
            )
        )
    epoch = max(context.next_offset, view.cluster.highest_broker_epoch + 1)
    record = _registration(command, epoch, fenced=True, in_controlled_shutdown=False)
    record.cordoned_log_dirs = _cordoned(view, command, existing)
    records.append(record)
    return Prepared(records, {"broker_epoch": epoch})


def _check_session_over(existing: BrokerRegistration, context: EvaluationContext) -> None:
    if context.sessions.is_valid(existing.id, existing.epoch, context.now_ms):
        raise CommandError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker {existing.id} is registered as another incarnation with epoch "
            f"{existing.epoch}, whose session has not run out; retry within "
            f"{context.sessions.timeout_ms} ms",
        )


def _cordoned(
    view: View, command: RegisterBroker, existing: BrokerRegistration | None
) -> tuple[Uuid, ...] | None:
    """Return the cordoned directories: those given, or those known that it still has.

    A cordon outlives the broker's process, so that a restart does not undo what an operator did.
    """
    if view.features.metadata_version < CORDONS_LEVEL:
        return None
    known = None if existing is None else existing.cordoned_log_dirs
    wanted = known if command.cordoned_log_dirs is None else command.cordoned_log_dirs
    if wanted is None:
        return None
    return tuple(sorted(set(wanted).intersection(command.log_dirs)))


def _amend(view: View, command: RegisterBroker, existing: BrokerRegistration) -> Prepared:
    record = _registration(
        command,
        existing.epoch,
        fenced=existing.fenced,
        in_controlled_shutdown=existing.in_controlled_shutdown,
    )
    record.cordoned_log_dirs = _cordoned(view, command, existing)
    is_known = (
        record.end_points == existing.endpoints
        and record.features == existing.features
        and record.rack == existing.rack
        and record.log_dirs == existing.log_dirs
        and (record.cordoned_log_dirs or ()) == (existing.cordoned_log_dirs or ())
        and not existing.is_migrating
    )
    return Prepared([] if is_known else [record], {"broker_epoch": existing.epoch})


def _registration(
    command: RegisterBroker, epoch: int, *, fenced: bool, in_controlled_shutdown: bool
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=command.broker_id,
        incarnation_id=command.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            ListenerEndpoint(entry.name, entry.host, entry.port, entry.security_protocol)
            for entry in command.listeners
        ),
        features=tuple(
            SupportedFeature(entry.name, entry.min_level, entry.max_level)
            for entry in sorted(command.features, key=lambda entry: entry.name)
        ),
        rack=command.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=tuple(sorted(command.log_dirs)),
    )


def _check_form(command: RegisterBroker) -> None:
    """Refuse a command whose values do not fit a record."""
    problem = None
    names = [entry.name for entry in command.listeners]
    texts = [*names, *(entry.host for entry in command.listeners), command.rack or ""]
    texts.extend(entry.name for entry in command.features)
    if not 0 <= command.broker_id <= BROKER_ID_MAX:
        problem = f"broker id {command.broker_id} is not within 0 to {BROKER_ID_MAX}"
    elif len(command.incarnation_id) != 16 or command.incarnation_id == ZERO_UUID:
        problem = "the incarnation id is not a uuid"
    elif max(len(names), len(command.features), len(command.log_dirs)) > ENTRIES_MAX:
        problem = f"more than {ENTRIES_MAX} listeners, features or log directories"
    elif any(len(text) > NAME_LENGTH_MAX for text in texts):
        problem = f"a name of more than {NAME_LENGTH_MAX} characters"
    elif len(set(names)) != len(names):
        problem = "a listener name is used twice"
    elif not all(
        0 <= entry.port <= 65_535 and 0 <= entry.security_protocol <= 32_767
        for entry in command.listeners
    ):
        problem = "a listener's port or security protocol is out of range"
    elif not all(
        -32_768 <= entry.min_level <= entry.max_level <= 32_767 for entry in command.features
    ):
        problem = "a feature's range is empty or out of bounds"
    elif any(len(directory) != 16 for directory in command.log_dirs):
        problem = "a log directory id is not a uuid"
    elif not set(command.cordoned_log_dirs or ()) <= set(command.log_dirs):
        problem = "a cordoned directory is none of the broker's"
    if problem is not None:
        raise CommandError(ErrorCode.INVALID_REGISTRATION, problem)


def _check_directories(view: View, command: RegisterBroker) -> None:
    if view.features.metadata_version < DIRECTORIES_LEVEL:
        return
    directories = command.log_dirs
    problem = None
    if not directories:
        problem = "no log directories are given"
    elif any(is_reserved_directory(directory) for directory in directories):
        problem = "a log directory has a reserved id"
    elif len(set(directories)) != len(directories):
        problem = "a log directory is given twice"
    else:
        wanted = set(directories)
        owners = [
            broker.id
            for broker in registered_brokers(view)
            if broker.id != command.broker_id and not wanted.isdisjoint(broker.log_dirs)
        ]
        if owners:
            problem = f"a log directory belongs to broker {owners[0]}"
    if problem is not None:
        raise CommandError(ErrorCode.INVALID_REGISTRATION, f"broker {command.broker_id}: {problem}")


def check_broker_features(
    view: View, offered: tuple[FeatureRange, ...], kraft_version: int
) -> None:
    """Check that every finalised level is within the broker's range.

    Raises:
        CommandError: INVALID_REGISTRATION without metadata.version or with a feature twice;
            UNSUPPORTED_VERSION naming the feature, its level and the broker's range.
    """
    ranges = {entry.name: entry for entry in offered}
    if METADATA_VERSION not in ranges or len(ranges) != len(offered):
        raise CommandError(
            ErrorCode.INVALID_REGISTRATION,
            f"each feature must be offered once, and {METADATA_VERSION} among them",
        )
    levels = {name: view.features.level(name) for name in (*view.features.levels, *ranges)}
    levels[KRAFT_VERSION] = kraft_version
    for name, level in sorted(levels.items()):
        entry = ranges.get(name)
        if entry is None:
            if level:
                raise CommandError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    f"{name} is finalised at {level}, the broker does not support it",
                )
        elif not entry.min_level <= level <= entry.max_level:
            raise CommandError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{name} is finalised at {level}, the broker supports "
                f"{entry.min_level} to {entry.max_level}",
            )


def prepare_unregister_broker(
    view: View, command: UnregisterBroker, context: EvaluationContext
) -> Prepared:
    """Return the changes of the broker's partitions, then the removal of its registration.

    Raises:
        CommandError: BROKER_ID_NOT_REGISTERED.
    """
    broker = view.cluster.broker(command.broker_id)
    if broker is None:
        raise CommandError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {command.broker_id} is not registered"
        )
    records = removal_records(
        view, broker, is_unclean=True, uses_native_codec=context.uses_native_codec
    )
    records.append(UnregisterBrokerRecord(broker.id, broker.epoch))
    return Prepared(records)
