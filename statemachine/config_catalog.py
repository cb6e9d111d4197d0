"""Known configuration keys of resources: their types, ranges and defaults.

It defines which keys exist and which values they accept; ``statemachine.prepare.configs``
evaluates changes. Names mirror Kafka's. Values are stored as the client's text, unchanged.

``cleanup.policy`` of the metadata topic itself is not stored anywhere: it is always
``snapshot`` and read-only (requirement 630.7).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import ResourceType

VALUE_LENGTH_MAX = 32_767
"""Characters of one configuration value."""

METADATA_TOPIC_CONFIGS: Mapping[str, str] = MappingProxyType({"cleanup.policy": "snapshot"})
"""Result of describing the metadata topic; every change of it is refused."""

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
_SUGGESTIONS_MAX = 3
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
_REPLICA_LIST = re.compile(r"\*|([0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?")
_LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")

Check = Callable[[str], str | None]
"""Returns a value's problem in words, None for a valid value."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One known key. ``default`` is the text a client would write, None for "not set"."""

    name: str
    default: str | None
    check: Check
    is_list: bool = False


def _integer(low: int, high: int) -> Check:
    def check(value: str) -> str | None:
        if not _WHOLE_NUMBER.fullmatch(value):
            return "is not a whole number"
        number = int(value)
        return None if low <= number <= high else f"is not within {low} to {high}"

    return check


def _number(low: float, high: float) -> Check:
    def check(value: str) -> str | None:
        try:
            number = float(value)
        except ValueError:
            return "is not a number"
        return None if low <= number <= high else f"is not within {low} to {high}"

    return check


def _choice(*allowed: str) -> Check:
    return lambda value: None if value in allowed else f"is none of {', '.join(allowed)}"


def _choices(*allowed: str) -> Check:
    def check(value: str) -> str | None:
        wrong = [item for item in split_list(value) if item not in allowed]
        return f"has {wrong[0]!r}, which is none of {', '.join(allowed)}" if wrong else None

    return check


def _replica_list(value: str) -> str | None:
    if _REPLICA_LIST.fullmatch(value):
        return None
    return "is neither * nor a list of partition:broker"


def _any_text(value: str) -> str | None:  # noqa: ARG001 - every text passes
    return None


def split_list(value: str) -> list[str]:
    """Return the items of a list value; empty for an empty text."""
    return [item.strip() for item in value.split(",")] if value else []


def _boolean_key(name: str, default: str) -> ConfigKey:
    return ConfigKey(name, default, _choice("true", "false"))


def _int_key(name: str, default: str, low: int = 0) -> ConfigKey:
    return ConfigKey(name, default, _integer(low, _INT_MAX))


def _long_key(name: str, default: str, low: int = 0) -> ConfigKey:
    return ConfigKey(name, default, _integer(low, _LONG_MAX))


def _list_key(name: str, default: str, check: Check) -> ConfigKey:
    return ConfigKey(name, default, check, is_list=True)


_COMPRESSION = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_NOTE = ConfigKey("quorate.note", None, _any_text)
"""Our own key: free text that operators keep with a resource."""

_TOPIC_KEYS = (
    _NOTE,
    _list_key("cleanup.policy", "delete", _choices("delete", "compact")),
    ConfigKey("compression.type", "producer", _choice(*_COMPRESSION)),
    ConfigKey("compression.gzip.level", "-1", _integer(-1, 9)),
    ConfigKey("compression.lz4.level", "9", _integer(1, 17)),
    ConfigKey("compression.zstd.level", "3", _integer(-131_072, 22)),
    _long_key("delete.retention.ms", "86400000"),
    _long_key("file.delete.delay.ms", "60000"),
    _long_key("flush.messages", str(_LONG_MAX), 1),
    _long_key("flush.ms", str(_LONG_MAX)),
    _list_key("follower.replication.throttled.replicas", "", _replica_list),
    _int_key("index.interval.bytes", "4096"),
    _list_key("leader.replication.throttled.replicas", "", _replica_list),
    _long_key("local.retention.bytes", "-2", -2),
    _long_key("local.retention.ms", "-2", -2),
    _long_key("max.compaction.lag.ms", str(_LONG_MAX), 1),
    _int_key("max.message.bytes", "1048588"),
    _long_key("message.timestamp.after.max.ms", "3600000"),
    _long_key("message.timestamp.before.max.ms", str(_LONG_MAX)),
    ConfigKey("message.timestamp.type", "CreateTime", _choice("CreateTime", "LogAppendTime")),
    ConfigKey("min.cleanable.dirty.ratio", "0.5", _number(0.0, 1.0)),
    _long_key("min.compaction.lag.ms", "0"),
    _int_key(MIN_INSYNC_REPLICAS, "1", 1),
    _boolean_key("preallocate", "false"),
    _boolean_key("remote.log.copy.disable", "false"),
    _boolean_key("remote.log.delete.on.disable", "false"),
    _boolean_key("remote.storage.enable", "false"),
    _long_key("retention.bytes", "-1", -1),
    _long_key("retention.ms", "604800000", -1),
    _int_key("segment.bytes", "1073741824", 1_048_576),
    _int_key("segment.index.bytes", "10485760", 4),
    _long_key("segment.jitter.ms", "0"),
    _long_key("segment.ms", "604800000", 1),
    _boolean_key(UNCLEAN_LEADER_ELECTION, "false"),
)

_BROKER_KEYS = (
    _NOTE,
    _int_key("background.threads", "10", 1),
    ConfigKey("compression.type", "producer", _choice(*_COMPRESSION)),
    _long_key("follower.replication.throttled.rate", str(_LONG_MAX)),
    _long_key("leader.replication.throttled.rate", str(_LONG_MAX)),
    _long_key("replica.alter.log.dirs.io.max.bytes.per.second", str(_LONG_MAX)),
    _long_key("log.cleaner.backoff.ms", "15000"),
    _long_key("log.cleaner.dedupe.buffer.size", "134217728"),
    _long_key("log.cleaner.delete.retention.ms", "86400000"),
    _int_key("log.cleaner.threads", "1"),
    _list_key("log.cleanup.policy", "delete", _choices("delete", "compact")),
    _long_key("log.flush.interval.messages", str(_LONG_MAX), 1),
    _long_key("log.flush.interval.ms", str(_LONG_MAX)),
    _int_key("log.index.interval.bytes", "4096"),
    _long_key("log.local.retention.bytes", "-2", -2),
    _long_key("log.local.retention.ms", "-2", -2),
    _boolean_key("log.preallocate", "false"),
    _long_key("log.retention.bytes", "-1", -1),
    _long_key("log.retention.ms", "604800000", -1),
    _long_key("log.roll.ms", "604800000", 1),
    _int_key("log.segment.bytes", "1073741824", 1_048_576),
    _int_key("max.connection.creation.rate", str(_INT_MAX)),
    _int_key("max.connections", str(_INT_MAX)),
    _int_key("max.connections.per.ip", str(_INT_MAX)),
    _int_key("message.max.bytes", "1048588"),
    _int_key(MIN_INSYNC_REPLICAS, "1", 1),
    _int_key("num.io.threads", "8", 1),
    _int_key("num.network.threads", "3", 1),
    _int_key("num.recovery.threads.per.data.dir", "2", 1),
    _int_key("num.replica.fetchers", "1", 1),
    _int_key("producer.id.expiration.ms", "86400000", 1),
    _boolean_key(UNCLEAN_LEADER_ELECTION, "false"),
)

_CLIENT_METRICS_KEYS = (
    _int_key("interval.ms", "300000", 10),
    _list_key("match", "", _any_text),
    _list_key("metrics", "", _any_text),
)

_GROUP_KEYS = (
    _int_key("consumer.heartbeat.interval.ms", "5000", 1),
    _int_key("consumer.session.timeout.ms", "45000", 1),
    _int_key("share.heartbeat.interval.ms", "5000", 1),
    _int_key("share.record.lock.duration.ms", "30000", 1000),
    _int_key("share.session.timeout.ms", "45000", 1),
    ConfigKey("share.auto.offset.reset", "latest", _choice("earliest", "latest")),
)

_LOGGER_LEVEL = ConfigKey("(any logger)", "INFO", _choice(*_LOG_LEVELS))

CATALOG: Mapping[int, Mapping[str, ConfigKey]] = MappingProxyType(
    {
        int(ResourceType.TOPIC): {key.name: key for key in _TOPIC_KEYS},
        int(ResourceType.BROKER): {key.name: key for key in _BROKER_KEYS},
        int(ResourceType.CLIENT_METRICS): {key.name: key for key in _CLIENT_METRICS_KEYS},
        int(ResourceType.GROUP): {key.name: key for key in _GROUP_KEYS},
    }
)
"""Known keys by resource type and name. For broker loggers every name is valid."""


def find_key(resource_type: int, name: str) -> ConfigKey:
    """Return the key of that name.

    Raises:
        CommandError: INVALID_CONFIG for an unknown name, with the closest known ones.
            INVALID_REQUEST for a resource type that carries no configuration.
    """
    keys = CATALOG.get(resource_type)
    if keys is not None:
        key = keys.get(name)
        if key is not None:
            return key
        close = difflib.get_close_matches(name[:200], keys, n=_SUGGESTIONS_MAX)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        kind = ResourceType(resource_type).name.lower().replace("_", " ")
        raise CommandError(
            ErrorCode.INVALID_CONFIG, f"unknown {kind} configuration {name[:200]!r}{hint}"
        )
    if resource_type == ResourceType.BROKER_LOGGER:
        return _LOGGER_LEVEL
    raise CommandError(
        ErrorCode.INVALID_REQUEST, f"resource type {resource_type} carries no configuration"
    )


def check_value(key: ConfigKey, name: str, value: str) -> None:
    """Refuse a value that is invalid for the key.

    Raises:
        CommandError: INVALID_CONFIG with the value and the valid range.
    """
    if len(value) > VALUE_LENGTH_MAX:
        raise CommandError(
            ErrorCode.INVALID_CONFIG,
            f"{name}: a value of {len(value)} characters exceeds {VALUE_LENGTH_MAX}",
        )
    problem = key.check(value)
    if problem is not None:
        raise CommandError(ErrorCode.INVALID_CONFIG, f"{name}={value[:200]!r} {problem}")
