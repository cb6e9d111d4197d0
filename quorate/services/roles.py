"""Which roles may call which method in ``security.mode = bound``; the one table of all methods.

A certificate has every role that its names prove; a token makes a client or an operator. What a
client may do beyond calling a method is decided by ACLs (``quorate.services.access``); a method
that is not listed is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from statemachine.command_access import DESCRIBE_CLUSTER, DESCRIBE_LOG, READ_LOG
from statemachine.sections.acl_index import Action


class Role(Enum):
    """What a caller is, by its certificate."""

    VOTER = "voter"
    """A node that may vote: its certificate carries the node's name (``tls.node_name``)."""
    OBSERVER = "observer"
    """A node that only fetches (``tls.observer_name``)."""
    CLIENT = "client"
    """Any other certificate of our authorities."""
    UNKNOWN = "unknown"
    """Nobody yet: neither a certificate nor a token."""
    OPERATOR = "operator"
    """A principal of ``security.operators``: allowed everything, as Kafka's super users."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may call one method."""

    roles: frozenset[Role]
    needs: Action | None = None
    """What ACLs must allow a client besides; None: nothing, or each request says what."""


_NODES: Final = frozenset({Role.VOTER, Role.OBSERVER})
_USERS: Final = frozenset({Role.CLIENT, Role.OPERATOR})
_EVERYBODY: Final = Rule(frozenset(Role))
_REPLICATES: Final = Rule(_NODES | {Role.OPERATOR})
"""What is replicated has every credential in it."""
_VOTERS: Final = Rule(frozenset({Role.VOTER}))
_OPERATORS: Final = Rule(frozenset({Role.OPERATOR}))
_REQUEST: Final = Rule(_USERS)
"""The method checks each command or resource of its requests, or shows what everybody may see."""

_RAFT: Final[Mapping[str, Rule]] = {
    # Messages that only voters send are refused on the stream itself.
    "Exchange": Rule(_NODES),
    "Vote": _VOTERS,
    "BeginQuorumEpoch": _VOTERS,
    "EndQuorumEpoch": _VOTERS,
    "Fetch": _REPLICATES,
    "FetchSnapshot": _REPLICATES,
    "ChainDigest": _REPLICATES,
}
_METADATA: Final[Mapping[str, Rule]] = {
    "Write": _REQUEST,
    "WriteStream": _REQUEST,
    "FetchLog": Rule(_USERS, READ_LOG),
    "ListOffsets": Rule(_USERS, DESCRIBE_LOG),
    "OffsetForLeaderEpoch": Rule(_USERS, DESCRIBE_LOG),
    "Watch": Rule(_USERS, READ_LOG),
    "ListTopics": _REQUEST,
    "DescribeTopics": _REQUEST,
    "DescribeConfigs": _REQUEST,
    "FetchPositions": _REQUEST,
    "ReadStream": _REQUEST,
}
_ADMIN: Final[Mapping[str, Rule]] = {
    # As in Kafka, every client may see brokers, nodes and feature levels.
    "DescribeCluster": _REQUEST,
    "DescribeFeatures": _REQUEST,
    "DescribeQuorum": Rule(_USERS, DESCRIBE_CLUSTER),
    "DescribeImage": Rule(_USERS, DESCRIBE_CLUSTER),
    "DescribeAcls": Rule(_USERS, DESCRIBE_CLUSTER),
    "DescribeUserScramCredentials": Rule(_USERS, DESCRIBE_CLUSTER),
    "DeleteRecords": _REQUEST,
    "CreateSnapshot": _OPERATORS,
    "TransferLeadership": _OPERATORS,
    "AddVoter": _OPERATORS,
    "RemoveVoter": _OPERATORS,
    "UpdateVoter": _OPERATORS,
}
_HEALTH: Final[Mapping[str, Rule]] = dict.fromkeys(("Check", "Watch", "List"), _EVERYBODY)
_AUTHENTICATION: Final[Mapping[str, Rule]] = {"Authenticate": _EVERYBODY}
_REFLECTION: Final[Mapping[str, Rule]] = {"ServerReflectionInfo": _REQUEST}
# Channelz shows the addresses of all callers.
_CHANNELZ: Final[Mapping[str, Rule]] = dict.fromkeys(
    (
        "GetTopChannels", "GetServers", "GetServer", "GetServerSockets", "GetChannel",
        "GetSubchannel", "GetSocket",
    ),
    _OPERATORS,
)  # fmt: skip

RULES: Final[Mapping[str, Rule]] = {
    f"/{service}/{method}": rule
    for service, rules in (
        ("quorum.v1.RaftService", _RAFT),
        ("quorum.v1.MetadataService", _METADATA),
        ("quorum.v1.AdminService", _ADMIN),
        ("quorum.v1.AuthenticationService", _AUTHENTICATION),
        ("grpc.health.v1.Health", _HEALTH),
        ("grpc.reflection.v1alpha.ServerReflection", _REFLECTION),
        ("grpc.channelz.v1.Channelz", _CHANNELZ),
    )
    for method, rule in rules.items()
}
"""By full method name."""


def named(roles: Iterable[Role]) -> str:
    """Return roles as text, in the order of their declaration."""
    held = set(roles)
    return ", ".join(role.value for role in Role if role in held) or "none"
