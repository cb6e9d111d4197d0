"""Change the configuration of one resource, key by key (KIP-339).

The hot path of the whole system is one key of one topic that is set to a new value.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.errors import CommandError, ErrorCode
from quorum.types import METADATA_TOPIC
from statemachine.commands import (
    ConfigChange,
    ConfigOperation,
    IncrementalAlterConfigs,
    ResourceType,
)
from statemachine.config_catalog import (
    METADATA_TOPIC_CONFIGS,
    MIN_INSYNC_REPLICAS,
    VALUE_LENGTH_MAX,
    ConfigKey,
    check_value,
    find_key,
    split_list,
)
from statemachine.prepare.context import CONFIG_CHANGES_PER_COMMAND_MAX, EvaluationContext, Prepared
from statemachine.prepare.view import View, is_elr_enabled
from statemachine.records import ClearElrRecord, ConfigRecord, MetadataRecord

RESOURCE_NAME_LENGTH_MAX = 32_767
BROKER_ID_MAX = 2**31 - 1

_SET = int(ConfigOperation.SET)
_DELETE = int(ConfigOperation.DELETE)
_APPEND = int(ConfigOperation.APPEND)
_SUBTRACT = int(ConfigOperation.SUBTRACT)
_TOPIC = int(ResourceType.TOPIC)
_BROKER = int(ResourceType.BROKER)


def prepare_incremental_alter_configs(
    view: View,
    command: IncrementalAlterConfigs,
    context: EvaluationContext,  # noqa: ARG001 - every evaluate takes the same three
) -> Prepared:
    """Return records for the keys whose value changes. All changes take effect, or none does.

    Raises:
        CommandError: INVALID_CONFIG (unknown name with the closest ones, or a value out of
            range), INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED,
            POLICY_VIOLATION for the metadata topic (630.7) or too many changes.
    """
    resource_type = command.resource_type
    resource_name = command.resource_name
    changes = command.changes
    _check_resource(view, resource_type, resource_name, changes)
    records: list[MetadataRecord] = []
    for change in changes:
        key = find_key(resource_type, change.name)
        old = view.configs.value(resource_type, resource_name, change.name)
        new = _new_value(key, change, old)
        if new != old:
            records.append(ConfigRecord(resource_type, resource_name, change.name, new))
            if change.name == MIN_INSYNC_REPLICAS and is_elr_enabled(view):
                topic = resource_name if resource_type == _TOPIC else ""
                records.append(ClearElrRecord(topic))
    return Prepared(records)


def _check_resource(
    view: View, resource_type: int, resource_name: str, changes: Sequence[ConfigChange]
) -> None:
    if resource_type == _TOPIC:
        # Unknown names include the metadata topic's: it is not a topic of the image.
        if view.topics.id_of(resource_name) is None:
            _refuse_topic(resource_name)
    elif resource_type in (_BROKER, ResourceType.BROKER_LOGGER):
        _check_broker(view, resource_type, resource_name)
    elif len(resource_name) > RESOURCE_NAME_LENGTH_MAX:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"a resource name of {len(resource_name)} characters exceeds "
            f"{RESOURCE_NAME_LENGTH_MAX}",
        )
    if len(changes) > 1:
        if len(changes) > CONFIG_CHANGES_PER_COMMAND_MAX:
            raise CommandError(
                ErrorCode.POLICY_VIOLATION,
                f"{len(changes)} changes in one command exceed {CONFIG_CHANGES_PER_COMMAND_MAX}",
            )
        if len({change.name for change in changes}) != len(changes):
            raise CommandError(
                ErrorCode.INVALID_REQUEST, "a key is named more than once in one command"
            )


def _refuse_topic(name: str) -> None:
    if name == METADATA_TOPIC:
        fixed = ", ".join(f"{key}={value}" for key, value in METADATA_TOPIC_CONFIGS.items())
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"the configuration of {METADATA_TOPIC} is fixed ({fixed}) and cannot be changed",
        )
    raise CommandError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name[:249]!r}")


def _check_broker(view: View, resource_type: int, resource_name: str) -> None:
    if resource_name == "":
        if resource_type == _BROKER:
            return
        raise CommandError(ErrorCode.INVALID_REQUEST, "loggers belong to one broker: name it")
    if not (resource_name.isascii() and resource_name.isdigit()) or len(resource_name) > 10:
        raise CommandError(ErrorCode.INVALID_REQUEST, f"{resource_name[:50]!r} is not a broker id")
    broker_id = int(resource_name)
    # Only one spelling per broker: two would be two resources of the same broker.
    if str(broker_id) != resource_name or broker_id > BROKER_ID_MAX:
        raise CommandError(ErrorCode.INVALID_REQUEST, f"{resource_name!r} is not a broker id")
    if view.cluster.broker(broker_id) is None:
        raise CommandError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered"
        )


def _new_value(key: ConfigKey, change: ConfigChange, old: str | None) -> str | None:
    operation = change.operation
    value = change.value
    if operation == _SET:
        if value is None:
            raise CommandError(ErrorCode.INVALID_CONFIG, f"{change.name}: setting needs a value")
        # The stored value was checked when it was set: check only a different value.
        if value != old:
            check_value(key, change.name, value)
        return value
    if operation == _DELETE:
        return None
    if operation not in (_APPEND, _SUBTRACT):
        raise CommandError(
            ErrorCode.INVALID_REQUEST, f"{change.name}: unknown operation {operation}"
        )
    if not key.is_list:
        raise CommandError(
            ErrorCode.INVALID_CONFIG, f"{change.name} is not a list: it can only be set or deleted"
        )
    if value is None or len(value) > VALUE_LENGTH_MAX:
        raise CommandError(
            ErrorCode.INVALID_CONFIG,
            f"{change.name}: items of at most {VALUE_LENGTH_MAX} characters are needed",
        )
    return _edit_list(key, change, value, old)


def _edit_list(key: ConfigKey, change: ConfigChange, value: str, old: str | None) -> str | None:
    present = split_list(old if old is not None else key.default or "")
    named = split_list(value)
    if change.operation == _APPEND:
        items = list(dict.fromkeys((*present, *named)))
    else:
        items = [item for item in present if item not in named]
    if items == present:
        return old
    new = ",".join(items)
    check_value(key, change.name, new)
    return new


def check_topic_configs(configs: Sequence[tuple[str, str | None]]) -> None:
    """Validate the configuration of a new topic.

    Raises:
        CommandError: INVALID_CONFIG or INVALID_REQUEST.
    """
    if len({name for name, _ in configs}) != len(configs):
        raise CommandError(ErrorCode.INVALID_REQUEST, "a key is named more than once")
    for name, value in configs:
        key = find_key(_TOPIC, name)
        if value is not None:
            check_value(key, name, value)
