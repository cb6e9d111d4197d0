"""The cluster of one scenario: its nodes, the messages between them, and the steps of commands.

Nothing moves unless a command says so: messages wait in a queue, disks wait for ``persist``,
clocks stand still. The standing invariants are checked after every step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from quorate.replica.replica import Replica
from quorum.core.contract.events import Event, RoleChanged
from quorum.core.contract.local_events import ConnectionRefused, RequestFailed
from quorum.core.messages.message_types import Message, Request
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.state.upstream import NO_RELAYS
from quorum.errors import ErrorCode, QuorateError
from quorum.runtime.ports import WriteGroup
from quorum.types import NodeId
from simulation.harness.arrival import arrived
from simulation.harness.replica_node import HandClock
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.table import watch
from simulation.memory_filesystem import CrashMode, PowerLost
from simulation.scenario.coverage import Coverage
from simulation.scenario.envelopes import Envelope, Filter
from simulation.scenario.grammar import ScenarioError
from simulation.scenario.member import Hooks, Member, Settings
from simulation.scenario.outlet import Kind, Outlet
from simulation.scenario.render import effect_text, message_line, type_name
from simulation.scenario.render_events import event_line
from simulation.scenario.slow_links import SlowLinks

_BEGINNING_MS = 1_000_000
_ROUNDS_MAX = 2_000
_INJECTED_FROM = 1 << 50
"""Requests that a script forges have ids from here on."""


@dataclass(slots=True)
class World:
    """The state that commands act on."""

    outlet: Outlet = field(default_factory=Outlet)
    members: dict[NodeId, Member] = field(default_factory=dict)
    queue: list[Envelope] = field(default_factory=list)
    held: list[Envelope] = field(default_factory=list)
    """Messages on held links, until ``heal``."""
    cut: set[tuple[NodeId, NodeId]] = field(default_factory=set)
    cut_requests: set[tuple[NodeId, NodeId]] = field(default_factory=set)
    """Links that lose requests but deliver responses."""
    hold: set[tuple[NodeId, NodeId]] = field(default_factory=set)
    slow: SlowLinks = field(default_factory=SlowLinks)
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    injected: int = _INJECTED_FROM
    run_observer: RunObserver = field(default_factory=watch)
    """Checks the standing invariants at every step of every node; raises ``Violation``."""
    hung: set[NodeId] = field(default_factory=set)
    """Nodes whose disk writes only at ``persist``."""
    damaged: set[NodeId] = field(default_factory=set)
    """Nodes whose disk a command damaged since their last start."""
    outcomes: list[Callable[[], None]] = field(default_factory=list)
    """Client outcomes of this step; ``run_observer`` gets them after it has seen the step."""
    coverage: Coverage = field(default_factory=Coverage)
    actions: int = 0
    """Number of events and messages of all nodes so far."""

    # Creation of nodes.

    def create(
        self,
        settings: Settings,
        observers: Sequence[NodeId],
        shares: Sequence[int],
        down: Sequence[NodeId] = (),
    ) -> None:
        """Create the nodes and start all but ``down``; ``shares`` are percents of random ranges."""
        if self.members:
            raise ScenarioError("cluster: there is one already")
        for index, node_id in enumerate((*settings.voters, *observers)):
            share = shares[index % len(shares)] / 100 if shares else index / 10
            self.add(node_id, settings, share)
        for node_id in sorted(set(self.members) - set(down)):
            self.start(node_id)

    def add(self, node_id: NodeId, settings: Settings, share: float) -> Member:
        """Format a node without starting it; it replaces an earlier one with the same id."""
        hooks = Hooks(
            self._sent,
            self._event,
            self._opened,
            self.run_observer.submitted,
            self._written,
            self.run_observer.checkpointed,
            self.stop,
            lambda node_id, message: self.announce(Kind.EVENT, f"{node_id}: {message}"),
        )
        member = Member(node_id, settings, hooks, share, HandClock(_BEGINNING_MS))
        self.members[node_id] = member
        member.format()
        return member

    def member(self, node_id: NodeId) -> Member:
        """Return a node by id."""
        if node_id not in self.members:
            raise ScenarioError(f"there is no node {node_id}")
        return self.members[node_id]

    def running(self, node_id: NodeId) -> Member:
        """Return a running node."""
        member = self.member(node_id)
        if member.replica is None:
            raise ScenarioError(f"node {node_id} is down")
        return member

    def up(self) -> list[NodeId]:
        """Return the ids of the running nodes, ascending."""
        return [each for each in sorted(self.members) if self.members[each].replica is not None]

    # Steps of one node.

    def step(self, node_id: NodeId, call: Callable[[], None]) -> None:
        """Run one step of a node; a node whose disk fails stops."""
        try:
            call()
        except (QuorateError, PowerLost) as error:
            self.stop(node_id, str(error) or "power lost")
        if self.members[node_id].replica is not None:
            self.run_observer.stepped(node_id)
        for notify in self.outcomes:
            notify()
        self.outcomes.clear()
        self.outlet.end_step()

    def start(self, node_id: NodeId) -> None:
        """Open the directory and take the first role."""
        member = self.member(node_id)
        if member.replica is not None:
            raise ScenarioError(f"node {node_id} is running")
        if node_id in self.damaged:
            # The promise that durable data is found again does not cover a faulty disk.
            self.damaged.remove(node_id)
            self.run_observer.nodes.pop(node_id, None)
        self.step(node_id, member.start)

    def stop(self, node_id: NodeId, why: str) -> None:
        """Note that a node stopped by itself."""
        self.announce(Kind.EVENT, f"{node_id}: stopped: {why}")
        if self.members[node_id].is_quarantined:
            self.damaged.add(node_id)
        self._gone(node_id)

    def _gone(self, node_id: NodeId) -> None:
        self.members[node_id].replica = None
        self.members[node_id].groups.clear()
        if node_id in self.run_observer.nodes:
            self.run_observer.stopped(node_id)

    def crash(self, node_id: NodeId, mode: CrashMode) -> None:
        """End a node's process; its messages in flight are lost with it."""
        self._gone(node_id)
        self.member(node_id).crash(mode, self.rng)
        gone = [each for each in self.queue if node_id in (each.sender, each.to)]
        self.queue = [each for each in self.queue if each not in gone]
        self.held = [each for each in self.held if node_id not in (each.sender, each.to)]
        self.slow.forget(node_id)

    def refuse(self, node_id: NodeId, peer: NodeId) -> None:
        """Report to a node that an immediate reconnect to ``peer`` was refused."""
        replica = self.running(node_id).replica
        if replica is not None:
            self.step(node_id, lambda: replica.on_local_event(ConnectionRefused(peer)))

    def unanswered(self, envelope: Envelope, code: ErrorCode = ErrorCode.NONE) -> None:
        """Report to the sender of a request that there will be no answer; ``code``: refused so."""
        refusal = code.name if code else ""
        failed = RequestFailed(envelope.to, envelope.message.request_id, refusal, code)
        replica = self.running(envelope.sender).replica
        if replica is not None:
            self.step(envelope.sender, lambda: replica.on_local_event(failed))

    def tick(self, node_id: NodeId, ms: int) -> None:
        """Move one clock; wake the node at each of its deadlines."""
        member = self.running(node_id)
        end_ms = member.clock.time_ms + ms
        for _ in range(_ROUNDS_MAX):
            deadline_ms = member.deadline_ms
            if deadline_ms is None or deadline_ms > end_ms or member.replica is None:
                break
            late_ms = max(0, member.clock.time_ms - deadline_ms)
            member.clock.time_ms = max(member.clock.time_ms, deadline_ms)
            self._wake(node_id, member)
            if late_ms and member.deadline_ms is not None and member.deadline_ms <= deadline_ms:
                break  # a due timer waits for something other than time
        member.clock.time_ms = end_ms

    def pause(self, node_id: NodeId, ms: int) -> None:
        """Pause the process: move its clock, then wake the node once, late."""
        member = self.running(node_id)
        member.clock.time_ms += ms
        self._wake(node_id, member)

    def _wake(self, node_id: NodeId, member: Member) -> None:
        """Wake a node at its deadline; count a wake in which it acts although no timer fired."""
        replica = member.replica
        if replica is None:
            return
        fired, actions = replica.node.timers_fired.total(), self.actions
        self.step(node_id, member.tick)
        if self.actions > actions and replica.node.timers_fired.total() == fired:
            self.coverage.wakes[f"{replica.node.role_name} {node_id}"] += 1

    def write(self, node_id: NodeId, count: int | None = None) -> bool:
        """Let a disk complete at most ``count`` groups; return whether it had any."""
        member = self.member(node_id)
        had_any = bool(member.groups)
        left = count
        while member.groups and member.replica is not None and left != 0:
            group = member.groups.popleft()
            self.step(node_id, lambda group=group: member.complete(group))  # type: ignore[misc]
            left = None if left is None else left - 1
        return had_any

    # Messages.

    def deliver(self, wanted: Filter, count: int | None = None, *, damaged: bool = False) -> int:
        """Deliver the messages queued now, in order; return their number."""
        chosen = [each for each in self.queue if wanted.matches(each)][:count]
        for envelope in chosen:
            self.queue.remove(envelope)
            if damaged:
                envelope = replace(envelope, message=_damaged(envelope.message))
            self.pass_on(envelope)
        return len(chosen)

    def pass_on(self, envelope: Envelope) -> None:
        """Deliver a message, or lose it if the link is cut or the receiver down."""
        sender, to, message = envelope.sender, envelope.to, envelope.message
        replica = self.members[to].replica if to in self.members else None
        if replica is None or (sender, to) in self.cut:
            self.announce(Kind.MESSAGE, f"{sender}->{to} lost {type_name(message)}")
            self.outlet.end_step()
        else:
            self.receive(sender, to, message)

    def receive(
        self, sender: NodeId, to: NodeId, message: Message, *, is_proven: bool = True
    ) -> None:
        """Deliver a message to a running node, even one that was never queued."""
        member = self.running(to)
        replica, plan = member.replica, member.settings.relays.get(to, NO_RELAYS)
        if replica is None:
            return
        is_relay = plan.serves and not replica.node.is_voter
        self.coverage.asked(sender, to, message, of_relay=is_relay)
        received = arrived(message, is_proven=is_proven)
        self.run_observer.received(to, sender, received)
        self.step(to, lambda: replica.receive(sender, received))

    def settle(self, nodes: Iterable[NodeId], disks: Iterable[NodeId]) -> None:
        """Deliver messages between ``nodes`` and let ``disks`` write until nothing moves."""
        among, writing = set(nodes), sorted(set(disks) - self.hung)
        for _ in range(_ROUNDS_MAX):
            moved = [each for each in writing if self.write(each)]
            chosen = [each for each in self.queue if {each.sender, each.to} <= among]
            for envelope in chosen:
                if envelope in self.queue:
                    self.queue.remove(envelope)
                    self.pass_on(envelope)
            if not chosen and not moved:
                return
        raise ScenarioError(f"not quiet after {_ROUNDS_MAX} rounds")

    def advance(self, ms: int) -> None:
        """Let time pass on all nodes; messages and disk writes complete at once."""
        everyone = tuple(sorted(self.members))
        left = ms
        while True:
            self.settle(everyone, everyone)
            waits = [
                member.deadline_ms - member.clock.time_ms
                for member in self.members.values()
                if member.replica is not None and member.deadline_ms is not None
            ]
            waits += self.slow.waits_ms
            wait_ms = min([left, *(max(1, each) for each in waits)])
            for node_id in everyone:
                if self.members[node_id].replica is None:
                    self.members[node_id].clock.time_ms += wait_ms
                else:
                    self.tick(node_id, wait_ms)
            left -= wait_ms
            self.queue += self.slow.advance(wait_ms)
            if left <= 0:
                self.settle(everyone, everyone)
                return

    def heal(self) -> None:
        """Repair every link; queue the messages that were held or delayed."""
        self.cut.clear()
        self.cut_requests.clear()
        self.hold.clear()
        self.queue += [*self.held, *self.slow.heal()]
        self.held.clear()

    # Reports of the nodes.

    def announce(self, kind: Kind, line: str) -> None:
        """Add a line to the command's output."""
        self.outlet.announce(kind, line)

    def _opened(self, replica: Replica) -> None:
        node = replica.node
        stores = self.members[node.me.id].stores
        if stores is not None:
            state = stores.state
            epochs = (state.election.epoch, state.log_end.epoch)
            found = max(*epochs, *(each.epoch for each in state.snapshots))
            self.coverage.started(node.me.id, found, node.timers_fired)
        member = self.members[node.me.id]
        self.run_observer.config = member.settings.quorum
        self.run_observer.opened(replica, member.clock.now_ms)

    def _sent(self, sender: NodeId, to: NodeId, message: Message) -> None:
        self.actions += 1
        self.coverage.sent(sender, to, message)
        link = (sender, to)
        envelope = Envelope(sender, to, message)
        is_injected = message.request_id >= _INJECTED_FROM
        is_cut = link in self.cut or (link in self.cut_requests and isinstance(message, Request))
        mark = " (cut)" if is_cut else " (held)" if link in self.hold else ""
        if is_injected:
            mark = ""
        self.announce(Kind.MESSAGE, f"{sender}->{to} {message_line(message)}{mark}")
        self.run_observer.sent(sender, to, message)
        if is_injected or is_cut:
            return
        if link in self.hold:
            self.held.append(envelope)
        elif not self.slow.takes(envelope):
            self.queue.append(envelope)

    def _event(self, node_id: NodeId, event: Event) -> None:
        self.actions += 1
        if isinstance(event, RoleChanged):
            self.coverage.role_changed(node_id, event)
        self.announce(Kind.EVENT, f"{node_id}: {event_line(event)}")

    def _written(self, node_id: NodeId, group: WriteGroup) -> None:
        self.run_observer.persisted(node_id, [group])
        effects = "; ".join(effect_text(effect) for effect in group.effects)
        self.announce(Kind.DISK, f"{node_id} disk: {effects}")


def _damaged(message: Message) -> Message:
    """Return the message with one bit of its payload flipped."""
    if not isinstance(message, FetchSnapshotResponse) or not message.chunk:
        raise ScenarioError(f"a {type_name(message)} has no chunk to damage")
    chunk = bytearray(message.chunk)
    chunk[len(chunk) // 2] ^= 1
    return replace(message, chunk=bytes(chunk))
