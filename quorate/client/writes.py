"""One method per command. Each returns once the command is committed and applied.

Whatever breaks in between, a command is applied at most once; it ends with ``Applied``, with
``RefusedError`` (nothing changed), ``UnavailableError`` (never sent) or ``OutcomeUnknownError``
(sent, and the outcome was not known by the deadline). A wrong type or value of an argument is an
``InvalidArgumentError``, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quorate.client.arguments import (
    count,
    lists_of_brokers,
    message,
    message_of,
    text,
    texts_by_name,
)
from quorate.client.pending import Applied
from quorate.client.positions import position_message
from quorate.client.timeouts import call_timeout
from quorate.client.tracing import Tracer, write_span
from quorate.client.writer import Writer
from quorum.log_position import LogPosition
from quorum.v1 import commands_pb2 as wire
from quorum.v1.commands_pb2 import Command

TOPIC = wire.CONFIG_RESOURCE_TYPE_TOPIC
BROKER = wire.CONFIG_RESOURCE_TYPE_BROKER


class Writes:
    """The commands of a client. Every method takes an optional timeout in seconds."""

    def __init__(
        self, writer: Writer, *, timeout_seconds: float, tracer: Tracer | None = None
    ) -> None:
        self._writer = writer
        self._tracer = tracer
        self._write_timeout = timeout_seconds

    async def write(
        self,
        command: Command,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - bounds the outcome, does not cancel
        origin: wire.CommandOrigin | None = None,
        request_id: str = "",
    ) -> Applied:
        """Any command; ``origin`` says why and within what, for the audit trail.

        Of a client with a writer's name, a ``request_id`` that was used before gets its first
        answer, also in a later process; the command is not applied again.

        The message is changed (tag and sequence number) and must not be used again.
        """
        message(command, Command, "command")
        if origin is not None:
            message(origin, wire.CommandOrigin, "origin")
            command.origin.CopyFrom(origin)
        if request_id:
            command.origin.request_id = text(request_id, "request_id")
        limit = call_timeout(timeout, self._write_timeout)
        if self._tracer is None:
            return await self._writer.submit(command, limit)
        with write_span(self._tracer, command):
            return await self._writer.submit(command, limit)

    async def begin_epoch(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Take the writer's name now, or let an ordered client go on after a failure (360.6).

        A named client takes its name with its first write otherwise. Once this has returned, no
        former process of the name writes any more.

        After a failure it waits for the writes before the one that failed. The next write is the
        first one of the next epoch. A write whose outcome was unknown may still be applied before
        it, never behind it.

        Raises:
            ClientError: The client is neither named nor ordered; or as a write.
            ProducerFencedError: Another process has taken the writer's name.
        """
        await self._writer.begin_epoch(call_timeout(timeout, self._write_timeout))

    async def commit_position(
        self,
        group: str,
        position: LogPosition,
        *,
        command: Command | None = None,
        metadata: str = "",
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Store how far a group has processed the log; the newest position counts.

        With a ``command``, both are in one batch: either both are applied or neither is. A
        client with a writer's name also keeps two processes of one group apart: the former one
        is fenced. The message of the command is changed and must not be used again.
        """
        commit = position_message(text(group, "group"), position, text(metadata, "metadata"))
        if command is None:
            return await self.write(Command(commit_position=commit), timeout=timeout)
        message(command, Command, "command").with_position.CopyFrom(commit)
        return await self.write(command, timeout=timeout)

    async def set_config(
        self,
        resource_type: wire.ConfigResourceType,
        resource_name: str,
        name: str,
        value: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Set one configuration value.

        Raises:
            InvalidArgumentError: The value is not text; nothing was sent.
        """
        text(name, "name")
        text(value, f"the value of {name}")
        command = Command()
        change = command.incremental_alter_configs
        change.resource_type = count(resource_type, "resource_type")  # type: ignore[assignment]
        change.resource_name = text(resource_name, "resource_name")
        change.alterations.add(name=name, operation=wire.CONFIG_OPERATION_SET, value=value)
        return await self.write(command, timeout=timeout)

    async def alter_configs(
        self,
        resource_type: wire.ConfigResourceType,
        resource_name: str,
        alterations: Iterable[wire.ConfigAlteration],
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Set, delete, append to or subtract from values of one resource, all or none."""
        change = message_of(
            wire.IncrementalAlterConfigs,
            resource_type=resource_type,
            resource_name=resource_name,
            alterations=alterations,
            dry_run=dry_run,
        )
        return await self.write(Command(incremental_alter_configs=change), timeout=timeout)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Sequence[Sequence[int]] = (),
        configs: Mapping[str, str] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Create a topic with counts (-1: the default) or with replicas by partition."""
        topic = message_of(
            wire.CreateTopic,
            name=name,
            partition_count=count(partitions, "partitions", default=-1),
            replication_factor=count(replication_factor, "replication_factor", default=-1),
            assignments=_assignments(assignments),
            configs=[
                wire.TopicConfig(name=key, value=value)
                for key, value in texts_by_name(configs, "configs").items()
            ],
            dry_run=dry_run,
        )
        return await self.write(Command(create_topic=topic), timeout=timeout)

    async def delete_topic(
        self,
        name: str = "",
        *,
        topic_id: bytes = b"",
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Delete a topic by name, by id, or by both if they must agree."""
        topic = message_of(wire.DeleteTopic, name=name, topic_id=topic_id, dry_run=dry_run)
        return await self.write(Command(delete_topic=topic), timeout=timeout)

    async def create_partitions(
        self,
        topic: str,
        partition_count: int,
        *,
        assignments: Sequence[Sequence[int]] = (),
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Grow a topic to ``partition_count`` partitions in total."""
        growth = message_of(
            wire.CreatePartitions,
            {"topic_name": "topic"},
            topic_name=topic,
            partition_count=count(partition_count, "partition_count"),
            assignments=_assignments(assignments),
            dry_run=dry_run,
        )
        return await self.write(Command(create_partitions=growth), timeout=timeout)

    async def alter_partition(
        self,
        change: wire.AlterPartition,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Report in-sync set changes of partitions that a broker leads."""
        return await self.write(
            Command(alter_partition=message(change, wire.AlterPartition, "change")), timeout=timeout
        )

    async def elect_leaders(
        self,
        topic: str,
        *,
        partitions: Iterable[int] = (),
        election_type: wire.ElectionType = wire.ELECTION_TYPE_PREFERRED,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Elect partition leaders anew; all partitions of the topic when none is named."""
        election = message_of(
            wire.ElectLeaders,
            {"topic_name": "topic"},
            topic_name=topic,
            partitions=partitions,
            election_type=election_type,
            dry_run=dry_run,
        )
        return await self.write(Command(elect_leaders=election), timeout=timeout)

    async def register_broker(
        self,
        registration: wire.RegisterBroker,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Register a broker; the result has its broker epoch."""
        return await self.write(
            Command(register_broker=message(registration, wire.RegisterBroker, "registration")),
            timeout=timeout,
        )

    async def heartbeat(
        self,
        beat: wire.BrokerHeartbeat,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Keep a broker's session, or ask for fencing or controlled shutdown."""
        return await self.write(
            Command(broker_heartbeat=message(beat, wire.BrokerHeartbeat, "beat")), timeout=timeout
        )

    async def unregister_broker(
        self,
        broker_id: int,
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Forget a broker."""
        broker = message_of(wire.UnregisterBroker, broker_id=broker_id, dry_run=dry_run)
        return await self.write(Command(unregister_broker=broker), timeout=timeout)

    async def cordon_log_dirs(
        self,
        broker_id: int,
        log_dirs: Iterable[bytes] = (),
        *,
        uncordon: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Let directories of a broker take no new replicas, or take them again.

        All of its directories if none is named.
        The result has all cordoned directories of the broker.
        """
        cordon = message_of(
            wire.CordonLogDirs,
            broker_id=broker_id,
            log_dirs=log_dirs,
            uncordon=uncordon,
            dry_run=dry_run,
        )
        return await self.write(Command(cordon_log_dirs=cordon), timeout=timeout)

    async def assign_replicas_to_dirs(
        self,
        assignment: wire.AssignReplicasToDirs,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Report in which of a broker's log directories replicas are; each has its own answer."""
        return await self.write(
            Command(
                assign_replicas_to_dirs=message(assignment, wire.AssignReplicasToDirs, "assignment")
            ),
            timeout=timeout,
        )

    async def update_features(
        self,
        updates: Iterable[wire.FeatureUpdate],
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Finalise feature levels, all or none."""
        features = message_of(wire.UpdateFeatures, updates=updates, dry_run=dry_run)
        return await self.write(Command(update_features=features), timeout=timeout)

    async def create_acls(
        self,
        entries: Iterable[wire.AclEntry],
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Add ACLs, all or none; the result counts those that did not exist."""
        acls = message_of(wire.CreateAcls, entries=entries, dry_run=dry_run)
        return await self.write(Command(create_acls=acls), timeout=timeout)

    async def delete_acls(
        self,
        filters: Iterable[wire.AclFilter],
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Remove every ACL that one of the filters selects; the result lists them."""
        acls = message_of(wire.DeleteAcls, filters=filters, dry_run=dry_run)
        return await self.write(Command(delete_acls=acls), timeout=timeout)

    async def alter_user_scram_credentials(
        self,
        upsertions: Iterable[wire.ScramUpsertion] = (),
        deletions: Iterable[wire.ScramDeletion] = (),
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Set and remove credentials of users, all or none; ``scram_upsertion`` makes one."""
        change = message_of(
            wire.AlterUserScramCredentials,
            upsertions=upsertions,
            deletions=deletions,
            dry_run=dry_run,
        )
        return await self.write(Command(alter_user_scram_credentials=change), timeout=timeout)

    async def allocate_producer_ids(
        self,
        broker_id: int,
        broker_epoch: int,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """A block of producer ids for a broker's own clients."""
        block = message_of(wire.AllocateProducerIds, broker_id=broker_id, broker_epoch=broker_epoch)
        return await self.write(Command(allocate_producer_ids=block), timeout=timeout)

    async def init_producer_id(
        self,
        request: wire.InitProducerId,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """A producer identity for a use of the caller's own; this client keeps its own ones."""
        return await self.write(
            Command(init_producer_id=message(request, wire.InitProducerId, "request")),
            timeout=timeout,
        )


def _assignments(partitions: Sequence[Sequence[int]]) -> list[wire.ReplicaAssignment]:
    return [
        wire.ReplicaAssignment(partition=index, broker_ids=replicas)
        for index, replicas in enumerate(lists_of_brokers(partitions, "assignments"))
    ]
