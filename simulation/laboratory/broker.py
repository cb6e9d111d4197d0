"""A model broker: replicas of data partitions, led by the controller's commands.

It registers, sends heartbeats, and refuses commands that were decided for another of its
registrations (380.3). Its log survives its process; its roles do not.
"""

from __future__ import annotations

from typing import Any

from quorate.broker_agent.commands import (
    BrokerCommand,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from quorate.broker_agent.generation import Generation, stray_replicas
from quorate.controller.requests import Answer
from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId, Uuid
from simulation.laboratory.controller import CLUSTER_ID, METADATA_VERSION, ModelController
from simulation.laboratory.replica import Replica
from statemachine.commands import (
    AlterPartition,
    BrokerHeartbeat,
    FeatureRange,
    IsrMember,
    Listener,
    PartitionAlteration,
    RegisterBroker,
    TopicAlteration,
)
from statemachine.sections.partition_index import PartitionKey


class ModelBroker:
    """One broker. ``inbox`` has commands of the controller that were sent and not delivered."""

    def __init__(
        self, broker_id: NodeId, controller: ModelController, *, keeps_producers: bool
    ) -> None:
        self.id = broker_id
        self.generation = Generation()
        self.is_running = False
        self.inbox: list[BrokerCommand] = []
        self.replicas: dict[PartitionKey, Replica] = {}
        self.metadata: dict[Uuid, dict[int, tuple[NodeId, int]]] = {}
        """Leader and leader epoch of every partition, as it tells its clients."""
        self._controller = controller
        self._keeps_producers = keeps_producers
        self._process_runs = 0

    @property
    def epoch(self) -> int:
        """The broker epoch of its registration."""
        return self.generation.broker_epoch

    @property
    def incarnation_id(self) -> Uuid:
        """The id of the process run."""
        return bytes([0x40, self.id]) + self._process_runs.to_bytes(14, "big")

    def start(self) -> None:
        """Start the process and register: a new broker epoch (380.1).

        Raises:
            CommandError: The controller refuses; another process of this id may still be alive.
        """
        self.is_running = True
        self.generation = Generation()
        self.metadata.clear()
        self._process_runs += 1
        answer = self._controller.submit(
            RegisterBroker(
                self.id,
                CLUSTER_ID,
                self.incarnation_id,
                (Listener("PLAINTEXT", "localhost", 9000 + self.id),),
                (
                    FeatureRange("metadata.version", 7, METADATA_VERSION),
                    FeatureRange("kraft.version", 0, 1),
                ),
                log_dirs=(bytes([0x80, self.id]) + bytes(14),),
            )
        )
        if answer.code is not ErrorCode.NONE:
            self.is_running = False
            raise CommandError(answer.code, answer.message)
        self.generation.hold(int(str(answer.result["broker_epoch"])))

    def stop(self) -> None:
        """End the process, without a word to the controller."""
        self.is_running = False
        for replica in self.replicas.values():
            replica.lose_role()

    def heartbeat(self, epoch: int | None = None, *, want_shutdown: bool = False) -> Answer:
        """Report that it is alive and has applied all metadata, which unfences it.

        ``epoch`` is that of another registration, as a process of the past would send it.
        """
        return self._controller.submit(
            BrokerHeartbeat(
                self.id,
                self.epoch if epoch is None else epoch,
                self._controller.log_end_offset - 1,
                want_shutdown=want_shutdown,
            )
        )

    def deliver(self, command: BrokerCommand) -> ErrorCode:
        """Execute a command, or refuse one that was decided for another registration."""
        code = self.generation.check(command)
        if code is not ErrorCode.NONE:
            return code
        if isinstance(command, StopReplica):
            self._stop(command)
        elif isinstance(command, LeaderAndIsr):
            strays = stray_replicas(command, ((key, "") for key in self.replicas))
            if strays is not None:
                self._stop(strays)
            for topic_id, topic in command.topics.items():
                for number, hosted in topic.partitions.items():
                    self.replica(topic_id, number).take_role(hosted.state)
        else:
            self._note(command)
        return ErrorCode.NONE

    def _stop(self, command: StopReplica) -> None:
        for key in command.partition_keys():
            if command.delete_partitions:
                self.replicas.pop(key, None)
            elif key in self.replicas:
                self.replicas[key].lose_role()

    def _note(self, command: UpdateMetadata) -> None:
        if command.is_full:
            self.metadata.clear()
        for topic_id, topic in command.topics.items():
            leaders = {n: (each.leader, each.leader_epoch) for n, each in topic.partitions.items()}
            self.metadata.setdefault(topic_id, {}).update(leaders)
        for topic_id in command.deleted_topics:
            self.metadata.pop(topic_id, None)

    def replica(self, topic_id: Uuid, number: int) -> Replica:
        """Return its replica of a partition; make one if it has none."""
        key = (topic_id, number)
        if key not in self.replicas:
            self.replicas[key] = Replica(self.id, keeps_producers=self._keeps_producers)
        return self.replicas[key]

    def propose_isr(
        self,
        topic_id: Uuid,
        number: int,
        isr: tuple[NodeId, ...],
    ) -> ErrorCode:
        """Ask the controller for another ISR of a partition that this broker leads.

        Each member is named with the registration under which it has fetched (KIP-903).
        """
        replica = self.replica(topic_id, number)
        fetched_under = replica.broker_epochs
        alteration = PartitionAlteration(
            number,
            replica.leader_epoch,
            replica.partition_epoch,
            tuple(
                IsrMember(each, self.epoch if each == self.id else fetched_under.get(each, -1))
                for each in isr
            ),
        )
        answer = self._controller.submit(
            AlterPartition(self.id, self.epoch, (TopicAlteration(topic_id, (alteration,)),))
        )
        if answer.code is not ErrorCode.NONE:
            return answer.code
        topics: Any = answer.result["topics"]
        return ErrorCode(topics[0]["partitions"][0]["error_code"])
