"""Convert protobuf commands to the state machine's command values, by table.

A command and its message have the same name, and so have their fields; this module describes the
exceptions. ``statemachine.prepare`` validates commands. Only the length of uuids is checked here.

The configuration change is the hot path: at most ~3 µs for one key.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast, get_args

from quorum.errors import CommandError, ErrorCode
from quorum.protobuf_table import EMPTY, CodecTable, Converter
from quorum.types import ZERO_UUID
from quorum.v1 import commands_pb2 as wire
from statemachine import commands
from statemachine.commands import Command
from statemachine.import_state import SourcePosition

Convert: TypeAlias = Callable[[Any], Command]
"""From one alternative of ``Command.kind``; protobuf's stubs have no common type for them."""


def to_command(message: wire.Command) -> Command:
    """Return the command that a message describes.

    Raises:
        CommandError: INVALID_REQUEST if it names none, or a uuid does not have 16 bytes.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        raise CommandError(ErrorCode.INVALID_REQUEST, "the command is empty or of an unknown kind")
    command = CONVERTERS[kind](getattr(message, kind))
    if message.HasField("with_position"):
        position = COMMANDS[commands.CommitPosition].from_pb(message.with_position)
        # The message has one kind, so the command is a single one.
        return commands.WithPosition(cast("commands.SingleCommand", command), position)
    return command


COMMANDS: Final = CodecTable(
    lambda text: CommandError(ErrorCode.INVALID_REQUEST, text),
    # A client cannot register a broker that migrates from ZooKeeper.
    local=("is_migrating_zk_broker",),
)
"""Every command and its parts."""

_ONE_ABOVE: Final = Converter(above=1)
"""The message's enum begins one above Kafka's, because 0 must mean "unspecified"."""

_BROKERS_ONLY: Final = Converter(
    lambda lists: [wire.ReplicaAssignment(broker_ids=brokers) for brokers in lists],
    lambda found: tuple([tuple(each.broker_ids) for each in found]),
)
"""Assignments of new partitions; the order gives the partition numbers."""

_TIMEOUT: Final = Converter(None, lambda given: given or commands.InitProducerId().timeout_ms)
_IS_IN_LOG: Final = Converter(operator.not_, operator.not_)


def _directories(found: wire.LogDirectories) -> tuple[bytes, ...]:
    if any(len(each) != len(ZERO_UUID) for each in found.log_dirs):
        raise CommandError(ErrorCode.INVALID_REQUEST, "a log directory id is not a uuid")
    return tuple(found.log_dirs)


_DIRECTORIES: Final = Converter(lambda ids: wire.LogDirectories(log_dirs=ids), _directories)
"""A list that may be absent."""

_ANY_IF_UNSPECIFIED: Final = Converter(None, lambda given: given or 1)
"""A field of a filter that a client leaves out selects everything."""

COMMANDS.describe(
    commands.ConfigChange, wire.ConfigAlteration,
    convert={"operation": _ONE_ABOVE},
)  # fmt: skip
COMMANDS.describe(
    commands.ReplicaAssignment, wire.ReplicaAssignment, rename={"replicas": "broker_ids"}
)
COMMANDS.describe(commands.IsrMember, wire.IsrMember)
COMMANDS.describe(commands.ReadEpoch, wire.ReadEpoch)
COMMANDS.describe(commands.PartitionAlteration, wire.PartitionAlteration)
COMMANDS.describe(commands.TopicAlteration, wire.TopicAlteration)
COMMANDS.describe(commands.Listener, wire.BrokerListener)
COMMANDS.describe(
    commands.FeatureRange, wire.SupportedFeature,
    rename={"min_level": "min_version", "max_level": "max_version"},
)  # fmt: skip
COMMANDS.describe(commands.FeatureUpdate, wire.FeatureUpdate)
COMMANDS.describe(commands.PartitionNumbers, wire.PartitionNumbers)
COMMANDS.describe(commands.DirectoryAssignment, wire.DirectoryAssignment)
COMMANDS.describe(
    SourcePosition, wire.SourcePosition,
    rename={"is_in_log": "is_in_checkpoint"}, convert={"is_in_log": _IS_IN_LOG},
)  # fmt: skip
COMMANDS.describe(commands.AclEntry, wire.AclEntry)
COMMANDS.describe(commands.ScramUpsertion, wire.ScramUpsertion)
COMMANDS.describe(commands.ScramDeletion, wire.ScramDeletion)
COMMANDS.describe(
    commands.AclFilter, wire.AclFilter,
    convert=dict.fromkeys(
        ("resource_type", "pattern_type", "operation", "permission_type"), _ANY_IF_UNSPECIFIED
    ),
)  # fmt: skip

_DIFFERENCES: Final[dict[type, dict[str, Any]]] = {
    commands.IncrementalAlterConfigs: {"rename": {"changes": "alterations"}},
    commands.CreatePartitions: {
        "rename": {"name": "topic_name"}, "convert": {"assignments": _BROKERS_ONLY},
    },
    commands.BrokerHeartbeat: {
        "rename": {"want_shutdown": "want_shut_down"},
        "convert": {"cordoned_log_dirs": _DIRECTORIES},
    },
    commands.RegisterBroker: {"convert": {"cordoned_log_dirs": _DIRECTORIES}},
    commands.InitProducerId: {"convert": {"timeout_ms": _TIMEOUT}},
    commands.ElectLeaders: {
        "rename": {"topic": "topic_name"}, "convert": {"election_type": _ONE_ABOVE},
    },
    commands.ImportBatch: {"absent": {"begin": EMPTY, "end": EMPTY}},
}  # fmt: skip

KINDS: Final[dict[type, str]] = {
    command: kind.name
    for kind in wire.Command.DESCRIPTOR.oneofs_by_name["kind"].fields
    if kind.message_type is not None
    for command in get_args(Command)
    if command.__name__ == kind.message_type.name
}
"""The alternative of ``Command.kind`` that describes a type of commands."""

CONVERTERS: Final[dict[str, Convert]] = {
    kind: COMMANDS.describe(
        command, getattr(wire, command.__name__), **_DIFFERENCES.get(command, {})
    ).from_pb
    for command, kind in KINDS.items()
}
"""One entry per alternative of the oneof; a test compares the two."""
