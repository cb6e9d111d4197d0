"""The laboratory: a controller, model brokers, and the steps in which a run goes on.

Nothing happens by itself. Commands of the controller wait in the inboxes of the brokers until they
are delivered, and a follower fetches when it is told to. So every order of events can be made.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.broker_agent.commands import BrokerCommand
from quorate.broker_agent.derivation import CommandDerivation
from quorum.errors import CommandError, ErrorCode
from quorum.types import NO_NODE, NodeId, Uuid
from simulation.laboratory.broker import ModelBroker
from simulation.laboratory.controller import ModelController
from simulation.laboratory.replica import Replica
from statemachine.commands import (
    Command,
    CreateTopic,
    ElectionType,
    ElectLeaders,
    ReplicaAssignment,
)
from statemachine.sections.partitions import PartitionState

PARTITION = 0
"""Topics have one partition here."""
SESSION_MS = 9_000
HEARTBEAT_MS = 2_000


class Laboratory:
    """A small cluster without a data plane of its own."""

    def __init__(self, brokers: Iterable[NodeId], *, keeps_producers: bool = True) -> None:
        self.controller = ModelController()
        self.brokers = {
            each: ModelBroker(each, self.controller, keeps_producers=keeps_producers)
            for each in brokers
        }
        self.held: set[NodeId] = set()
        """Brokers that do not reach the controller now, nor it them."""
        self.cuts: set[frozenset[NodeId]] = set()
        """Pairs of brokers that do not reach each other."""
        self._derivations = {each: CommandDerivation(each) for each in self.brokers}
        for broker in self.brokers.values():
            broker.start()
        self.beat()

    # ------------------------------------------------------------------ the controller

    def submit(self, command: Command) -> ErrorCode:
        """Submit a command as an administrator, and send what follows to the brokers.

        Raises:
            CommandError: It was refused.
        """
        answer = self.controller.submit(command)
        self.spread()
        if answer.code is not ErrorCode.NONE:
            raise CommandError(answer.code, answer.message)
        return answer.code

    def spread(self) -> list[tuple[NodeId, BrokerCommand, ErrorCode]]:
        """Send the commands that follow from new metadata, and deliver those not held.

        Return the commands that were refused.
        """
        refused = []
        for change in self.controller.take_changes():
            for broker in self.brokers.values():
                broker.inbox += self._derivations[broker.id].follow(change)
        for broker in self.brokers.values():
            if broker.is_running and broker.id not in self.held:
                refused += self.deliver(broker.id)
        return refused

    def deliver(
        self, broker_id: NodeId, *, count: int | None = None, are_old_last: bool = False
    ) -> list[tuple[NodeId, BrokerCommand, ErrorCode]]:
        """Deliver waiting commands to a broker, all or the first ``count``; return those refused.

        With ``are_old_last`` those for older registrations arrive after all others.
        """
        broker = self.brokers[broker_id]
        if are_old_last:
            broker.inbox.sort(key=lambda command: -command.tag.broker_epoch)
        waiting, broker.inbox = broker.inbox[:count], broker.inbox[len(broker.inbox[:count]) :]
        outcomes = [(broker_id, each, broker.deliver(each)) for each in waiting]
        return [each for each in outcomes if each[2] is not ErrorCode.NONE]

    def beat(self) -> None:
        """Let every running broker that reaches the controller send a heartbeat."""
        for broker in self.brokers.values():
            if broker.is_running and broker.id not in self.held:
                broker.heartbeat()
        self.spread()

    def shut_down(self, broker: ModelBroker) -> None:
        """Let a broker hand its leaderships over, and then end (380.4)."""
        while not broker.heartbeat(want_shutdown=True).result["should_shut_down"]:
            self.spread()
            self.beat()
        self.spread()
        broker.stop()

    def advance(self, ms: int) -> None:
        """Let time pass while the running brokers send heartbeats."""
        while ms > 0:
            step = min(ms, HEARTBEAT_MS)
            self.controller.advance(step)
            self.beat()
            ms -= step

    # ------------------------------------------------------------------ topics

    def topic_id(self, name: str) -> Uuid:
        """Return the id of a topic.

        Raises:
            CommandError: There is none of that name.
        """
        found = self.controller.image.topics.ids.get(name)
        if found is None:
            raise CommandError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        return found

    def create(self, name: str, replicas: tuple[NodeId, ...], configs: dict[str, str]) -> None:
        """Create a topic with one partition on ``replicas``."""
        assignment = ReplicaAssignment(PARTITION, replicas)
        self.submit(CreateTopic(name, assignments=(assignment,), configs=tuple(configs.items())))

    def elect(self, name: str, election_type: ElectionType) -> None:
        """Ask the controller for an election."""
        self.submit(ElectLeaders(name, (PARTITION,), election_type))

    def state(self, name: str) -> PartitionState:
        """Return the partition as the controller has it."""
        return self.controller.image.topics.partitions_of(self.topic_id(name))[PARTITION]

    def replica(self, name: str, broker_id: NodeId) -> Replica:
        """Return a broker's replica."""
        return self.brokers[broker_id].replica(self.topic_id(name), PARTITION)

    def leader(self, name: str) -> Replica | None:
        """Return the replica that leads in the controller's view, if its broker runs."""
        leader = self.state(name).leader
        if leader == NO_NODE or not self.brokers[leader].is_running:
            return None
        return self.replica(name, leader)

    # ------------------------------------------------------------------ replication

    def are_cut(self, one: NodeId, other: NodeId) -> bool:
        """Whether two brokers do not reach each other."""
        return frozenset((one, other)) in self.cuts

    def fetch(self, name: str, broker_id: NodeId) -> bool:
        """Let a follower fetch once from the leader it knows; return whether its log changed."""
        broker, replica = self.brokers[broker_id], self.replica(name, broker_id)
        source = replica.leader_id
        if not broker.is_running or source in (NO_NODE, broker_id):
            return False
        leader = self.replica(name, source)
        if (
            self.are_cut(broker_id, source)
            or not leader.is_leader
            or leader.leader_epoch != replica.leader_epoch
        ):
            return False
        changed = replica.take(leader.fetch(broker_id, broker.epoch, replica.log_end))
        self._keep_isr(name, leader, broker_id)
        return changed

    def replicate(self, name: str) -> None:
        """Let all followers fetch until no log and no high watermark changes any more."""
        while True:
            before = self._positions(name)
            for broker_id in self.state(name).replicas:
                self.fetch(name, broker_id)
            if self._positions(name) == before:
                return

    def _positions(self, name: str) -> list[object]:
        replicas = [self.replica(name, each) for each in self.state(name).replicas]
        return [(each.log_end, each.high_watermark, each.isr) for each in replicas]

    def _keep_isr(self, name: str, leader: Replica, follower: NodeId) -> None:
        """Add a follower that has caught up to the ISR (KIP-497)."""
        if follower in leader.isr or leader.ends.get(follower, -1) < leader.log_end.offset:
            return
        self.change_isr(name, leader, (*leader.isr, follower))

    def change_isr(self, name: str, leader: Replica, isr: tuple[NodeId, ...]) -> ErrorCode:
        """Let a leader ask for another ISR; it follows the answer at once (KIP-497)."""
        if leader.node_id in self.held:
            return ErrorCode.REQUEST_TIMED_OUT
        code = self.brokers[leader.node_id].propose_isr(self.topic_id(name), PARTITION, isr)
        if code is ErrorCode.NONE:
            leader.take_role(self.state(name))
        self.spread()
        return code

    def append(self, name: str, broker_id: NodeId) -> Replica:
        """Return the replica to which a producer may append.

        Raises:
            CommandError: The broker does not run, or does not lead as far as it knows.
        """
        if broker_id == NO_NODE or not self.brokers[broker_id].is_running:
            raise CommandError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is down")
        replica = self.replica(name, broker_id)
        if not replica.is_leader:
            raise CommandError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} does not lead: leader {replica.leader_id}, "
                f"epoch {replica.leader_epoch}",
            )
        return replica
