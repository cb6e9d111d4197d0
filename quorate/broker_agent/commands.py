"""Commands to a broker, as KIP-380 has them; here a broker derives them from the metadata log.

Each command names the broker epoch that it was decided for, and the position of the image that
decided it. Topics are named once, with their partitions nested (380.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from quorum.types import NodeId, Uuid
from statemachine.records import ListenerEndpoint
from statemachine.sections.cluster import BrokerRegistration
from statemachine.sections.partition_index import PartitionKey
from statemachine.sections.partitions import PartitionState


class CommandTag(NamedTuple):
    """What a command was decided for, and by which metadata."""

    broker_epoch: int
    """The registration of the broker (380.2)."""
    controller_epoch: int
    """Leader epoch of the last record that the decision has seen."""
    metadata_offset: int
    """End (exclusive) of the records that the decision has seen."""


class HostedState(NamedTuple):
    """One partition of a ``LeaderAndIsr``."""

    state: PartitionState
    is_new: bool = False
    """The broker had no replica of it before this change."""


@dataclass(frozen=True, slots=True)
class TopicStates:
    """A topic and the states of some of its partitions, by number."""

    name: str
    partitions: Mapping[int, HostedState]


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """A topic and the numbers of some of its partitions, ascending."""

    name: str
    """Empty if the topic no longer exists and its name is not known."""
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The states of partitions that the broker has a replica of, by topic id."""

    tag: CommandTag
    topics: Mapping[Uuid, TopicStates]
    live_leaders: Mapping[NodeId, tuple[ListenerEndpoint, ...]]
    """The listeners of every leader in ``topics`` that is registered."""
    is_full: bool = False
    """These are all partitions of the broker: any other one on its disk is a stray."""
    cordoned_log_dirs: tuple[Uuid, ...] = ()
    """Log directories of the broker that take no new replicas."""

    def partition_keys(self) -> Iterator[PartitionKey]:
        """Yield every partition in it."""
        for topic_id, topic in self.topics.items():
            for number in topic.partitions:
                yield topic_id, number


@dataclass(frozen=True, slots=True)
class StopReplica:
    """Partitions that the broker stops to replicate, by topic id."""

    tag: CommandTag
    topics: Mapping[Uuid, TopicNumbers]
    delete_partitions: bool
    """The broker has no replica of them any more: it deletes their logs. If false, it keeps the
    logs and only stops to fetch, because it shuts down."""

    def partition_keys(self) -> Iterator[PartitionKey]:
        """Yield every partition in it."""
        for topic_id, topic in self.topics.items():
            for number in topic.partitions:
                yield topic_id, number


class TopicMetadata(NamedTuple):
    """A topic's name and the states of some of its partitions, for clients of the broker."""

    name: str
    partitions: Mapping[int, PartitionState]


@dataclass(frozen=True, slots=True)
class UpdateMetadata:
    """What a broker tells its clients: partitions of the whole cluster, and the brokers."""

    tag: CommandTag
    topics: Mapping[Uuid, TopicMetadata]
    deleted_topics: tuple[Uuid, ...] = ()
    brokers: Mapping[NodeId, BrokerRegistration] | None = None
    """All registrations; None: as in the last command."""
    is_full: bool = False
    """These are all topics: forget any other one."""


BrokerCommand: TypeAlias = LeaderAndIsr | StopReplica | UpdateMetadata


def offline_replicas(
    state: PartitionState, brokers: Mapping[NodeId, BrokerRegistration]
) -> tuple[NodeId, ...]:
    """Return the replicas that cannot serve now, in replica order (320.8).

    Their broker is not registered, fenced or shutting down, or their directory is offline.
    """
    offline = []
    for replica in state.replicas:
        broker = brokers.get(replica)
        if (
            broker is None
            or not broker.is_active
            or not broker.has_online(state.directory(replica))
        ):
            offline.append(replica)
    return tuple(offline)
