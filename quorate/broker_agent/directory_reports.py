"""Which replicas are in another log directory than the metadata says (KIP-858).

The controller names no directory for a new replica of a broker with several that take replicas. The
broker chooses one, and reports its choice.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker_agent.commands import LeaderAndIsr
from quorate.client.results.commands import AssignReplicasToDirsResult
from quorum.types import NodeId, Uuid
from quorum.v1.commands_pb2 import AssignReplicasToDirs, DirectoryAssignment, PartitionNumbers
from statemachine.sections.partition_index import PartitionKey

REPLICAS_PER_REQUEST_MAX = 2_000


class DirectoryReports:
    """The replicas to report. Pure; owned by one agent."""

    def __init__(self, broker_id: NodeId) -> None:
        self._broker_id = broker_id
        self._open: dict[PartitionKey, Uuid] = {}

    def compare(
        self, command: LeaderAndIsr, directory_of: Callable[[Uuid, int], Uuid | None]
    ) -> None:
        """Note the replicas of a command that are hosted in another directory than it names.

        Nothing is noted below the metadata.version that records directories.
        """
        if command.is_full:
            self._open.clear()
        for topic_id, topic in command.topics.items():
            for number, each in topic.partitions.items():
                key = (topic_id, number)
                directory = directory_of(topic_id, number)
                is_known = directory in (None, each.state.directory(self._broker_id))
                if directory is None or is_known or not each.state.directories:
                    self._open.pop(key, None)
                else:
                    self._open[key] = directory

    def request(self, broker_epoch: int) -> AssignReplicasToDirs | None:
        """Return the next request, topics once in each directory (380.6); None if all is said."""
        if not self._open:
            return None
        nested: dict[Uuid, dict[Uuid, list[int]]] = {}
        for key in sorted(self._open)[:REPLICAS_PER_REQUEST_MAX]:
            topics = nested.setdefault(self._open[key], {})
            topics.setdefault(key[0], []).append(key[1])
        return AssignReplicasToDirs(
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            directories=[
                DirectoryAssignment(
                    directory_id=directory,
                    topics=[
                        PartitionNumbers(topic_id=topic_id, partitions=numbers)
                        for topic_id, numbers in topics.items()
                    ],
                )
                for directory, topics in nested.items()
            ],
        )

    def take(self, answer: AssignReplicasToDirsResult) -> None:
        """Note an answer. A replica that was refused has changed; the next command says how."""
        for assignment in answer.directories:
            for topic in assignment.topics:
                for each in topic.partitions:
                    key = (topic.topic_id, each.partition)
                    if self._open.get(key) == assignment.directory_id:
                        del self._open[key]
