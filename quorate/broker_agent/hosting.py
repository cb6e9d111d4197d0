"""A broker without data: it executes commands on the folders of its log directories.

What it does is reported as documents: plain fields, for people or programs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from quorate.broker_agent.commands import LeaderAndIsr, StopReplica, UpdateMetadata
from quorate.broker_agent.descriptions import describe_command, describe_event
from quorate.broker_agent.handler import AgentEvent, HostedReplica, Registered, Waiting
from quorate.broker_agent.log_directory import LogDirectory
from quorum.types import NodeId, Uuid
from statemachine.sections.partition_index import PartitionKey
from statemachine.sections.partitions import PartitionState

Show = Callable[[Mapping[str, object]], None]


class HostingHandler:
    """Implements ``CommandHandler``. ``show`` gets one document per command and event."""

    def __init__(self, broker_id: NodeId, directories: Sequence[LogDirectory], show: Show) -> None:
        self._broker_id = broker_id
        self._directories = {each.id: each for each in directories}
        self._show = show
        self._hosted: dict[PartitionKey, HostedReplica] = {
            (each.topic_id, each.partition): each
            for directory in directories
            for each in directory.replicas()
        }

    def hosted(self) -> Sequence[HostedReplica]:
        """Return the replicas in all directories."""
        return list(self._hosted.values())

    def directory_of(self, topic_id: Uuid, partition: int) -> Uuid | None:
        """Return the directory of a replica."""
        found = self._hosted.get((topic_id, partition))
        return None if found is None else found.directory_id

    async def stop_replica(self, command: StopReplica) -> None:
        """Delete the folders, unless the logs are to be kept."""
        self._show(describe_command(command, self._broker_id))
        if command.delete_partitions:
            await asyncio.to_thread(self._delete, [*command.partition_keys()])

    async def leader_and_isr(self, command: LeaderAndIsr) -> None:
        """Make the folders that are missing."""
        self._show(describe_command(command, self._broker_id))
        await asyncio.to_thread(self._host, command)

    async def update_metadata(self, command: UpdateMetadata) -> None:
        """Report it."""
        self._show(describe_command(command, self._broker_id))

    def report(self, event: AgentEvent) -> None:
        """Report an event. What a registration has named before it no longer counts."""
        if isinstance(event, Registered):
            for directory in self._directories.values():
                directory.forget_clean_shutdown()
        self._show(describe_event(event, self._broker_id))

    def _delete(self, keys: Sequence[PartitionKey]) -> None:
        for key in keys:
            found = self._hosted.pop(key, None)
            if found is None:
                continue
            directory = self._directories[found.directory_id]
            if not directory.delete(found.topic_name, found.partition):
                name = f"{found.topic_name}-{found.partition}"
                self.report(Waiting(f"the folder of {name} has other files and stays"))

    def _host(self, command: LeaderAndIsr) -> None:
        for topic_id, topic in command.topics.items():
            for number, hosted in topic.partitions.items():
                if (topic_id, number) in self._hosted:
                    continue
                directory = self._choose(hosted.state, command.cordoned_log_dirs)
                self._directories[directory].host(topic.name, number, topic_id)
                self._hosted[topic_id, number] = HostedReplica(
                    topic_id, number, topic.name, directory
                )

    def _choose(self, state: PartitionState, cordoned: Sequence[Uuid]) -> Uuid:
        """Return the directory that the metadata names, else the one with the fewest replicas.

        A cordoned one is chosen only if the broker has no other one.
        """
        named = state.directory(self._broker_id)
        if named is not None and named in self._directories:
            return named
        takes = [each for each in self._directories if each not in cordoned]
        held = dict.fromkeys(takes or self._directories, 0)
        for each in self._hosted.values():
            if each.directory_id in held:
                held[each.directory_id] += 1
        return min(held, key=lambda each: (held[each], each))
