"""A table of all states that single nodes reach, with the outcome of each event, computed once.

A cluster has far more states than its nodes: millions of combinations of a few thousand. The
production core therefore runs once for each state of a node and each event. A step of the cluster
is a lookup in this table.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from quorum.core.contract.local_events import RemoveVoter
from quorum.core.contract.output import Append, SaveElectionState
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.message_types import Message, Request
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.state.roles import Follower, Leader, Prospective
from quorum.errors import ErrorCode, InvariantViolation
from quorum.types import ElectionState, NodeId
from simulation.explore import slots
from simulation.explore.events import events_of, expire, is_urgent, make_due
from simulation.explore.fingerprint import fingerprint
from simulation.explore.model import Model, key_of
from simulation.explore.node import NoChance, Working, config_of
from simulation.explore.values import Event, Local, Outcome, Packet
from simulation.harness.arrival import received
from simulation.harness.core_disk import Disk, Log
from simulation.invariants.violation import Violation
from simulation.operator import asked

Origin: TypeAlias = tuple[int, Event]
"""A state of a node and the event that happened to it.

-1 stands for the start, a packet for its late copy.
"""


class Locals:
    """The table. Numbers identify states and packets, in order of discovery."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.locals: list[Local] = []
        self._by_fingerprint: dict[tuple[bytes, int, int, int], int] = {}
        self.packets: list[Packet] = []
        self._by_message: dict[tuple[NodeId, NodeId, Message], int] = {}
        self._outcomes: dict[tuple[int, Event], Outcome] = {}
        self.origins: list[Origin] = []
        """How each state of a node was first reached."""
        self.sources: list[tuple[Origin, int]] = []
        """What first sent each packet, and how many packets of its outline that sent before."""
        self._logs: dict[Log, Log] = {}
        """Shared objects for equal logs."""
        self._origin: Origin = (-1, ())
        self._common = (config_of(announces_commits=model.announces_commits), NoChance())

    @property
    def computed(self) -> int:
        """Return the number of steps that the production core has run."""
        return len(self._outcomes)

    def opened(self, node_id: NodeId, disk: Disk) -> Outcome:
        """Return the first state of a node on its initial disk."""
        model = self._model
        self._origin = (-1, ("opened", node_id))
        node = Working.opened(
            node_id,
            disk,
            model.crashes,
            model.checkpoints,
            model.known_watermark,
            announces_commits=model.announces_commits,
        )
        return self._finish(node)

    def late_copy(self, number: int) -> int:
        """Return the same request, marked as late: its sender no longer waits for its answer."""
        packet = self.packets[number]
        self._origin = (number, ("late copy",))
        return self._packet(packet.sender, packet.to, packet.message, slots.LATE)

    def step(self, local: int, event: Event) -> Outcome:
        """Return the outcome of ``event`` in a state."""
        key = (local, event)
        outcome = self._outcomes.get(key)
        if outcome is None:
            outcome = self._outcomes[key] = self._compute(local, event)
        return outcome

    def _compute(self, local: int, event: Event) -> Outcome:
        self._origin = (local, event)
        node: Working = pickle.loads(self.locals[local].packed)  # noqa: S301
        node.checkpoints = self._model.checkpoints
        slots.bring_back(node.core, *self._common)
        node.before = slots.live_numbers(node.core)
        try:
            node = self._happen(node, event)
            return self._finish(node)
        except Violation as violation:
            return Outcome(local, (), frozenset(), violation)
        except InvariantViolation as error:
            found = Violation("core-invariant", str(error), node=self.locals[local].node_id)
            return Outcome(local, (), frozenset(), found)

    def _happen(self, node: Working, event: Event) -> Working:
        raft, core, now = node.raft, node.core, slots.NOW_MS
        match event:
            case ("deliver", number):
                packet = self.packets[number]
                node.take(raft.receive(now, packet.sender, received(packet.message)))
            case ("persist",):
                node.persist()
            case ("doom",):
                node.last_pass, node.stored = True, 0
            case ("timer",):
                expire(core)
                node.take(raft.tick(now))
            case ("propose",):
                node.take(raft.propose(now, end_offset=core.log.end_offset + 1, payload=b""))
            case ("remove", target):
                node.take(
                    raft.on_local_event(
                        now, RemoveVoter(1, key_of(target), origin=asked("remove", target))
                    )
                )
            case ("begin", target):
                make_due(core, target)
                node.take(raft.tick(now))
            case ("forget", peer, numbers):
                node.forget(peer, numbers)
            case ("crash", *about):
                node = self._crashed(node, *about)
            case ("again", peer, number):
                self._again(core, peer, number)
            case _:
                raise AssertionError(event)
        return node

    def _again(self, core: Any, peer: NodeId, number: int) -> None:
        """Send the request again: the peer crashed before it answered."""
        if number < slots.BALLOT:
            core.requests.end_flight()
            return
        if isinstance(core.role, Leader):
            core.requests.close(core.role.remote[peer].begin)
            return
        for holder, found in slots.slots_of(core):
            if found == number:
                core.requests.close(holder)
                holder.due_ms = slots.NOW_MS

    def _crashed(self, node: Working, log: Log, election: ElectionState, watermark: int) -> Working:
        disk = node.disk
        disk = disk.after(SaveElectionState(election), {})
        if len(log) > len(disk.log):
            entries: Any = log[len(disk.log) :]
            disk = disk.after(Append(len(disk.log), len(log), log[-1][0], payload=entries), {})
        crashed = Working.opened(
            node.raft.me.id,
            disk,
            node.crashes - 1,
            self._model.checkpoints,
            watermark,
            announces_commits=self._model.announces_commits,
        )
        crashed.before = node.before
        return crashed

    def _finish(self, node: Working) -> Outcome:
        """Run until time has to pass, then describe the node's state."""
        raft, now = node.raft, slots.NOW_MS
        for _ in range(2):
            self._skip_pre_vote(node)
            # Back-offs end, as time passes here.
            node.core.following.peers.reset()
            node.core.rate_limits.raises_until_ms = 0
            slots.forget_search(node.core)
            node.take(raft.tick(now))
        self._skip_pre_vote(node)
        if not node.crashes and not self._model.in_full:
            # A disk that never loses anything completes at once: its timing decides nothing.
            while node.pending:
                node.persist()
        if not node.pending:
            node.stored = raft.high_watermark
        model = self._model
        if raft.epoch > model.epochs:
            raise AssertionError(f"{model.name}: epoch {raft.epoch} is beyond its bound")
        node.settle(has_begin_answers=model.has_refusals, has_pre_votes=model.has_pre_votes)
        node.promises = [each for each in node.promises if not self._is_lost(each.message)]
        sent: list[int] = []
        for to, message in node.sent:
            if not self._is_lost(message):
                sent.append(self._packet(raft.me.id, to, message, message.request_id, sent))
        return Outcome(self._intern(node), tuple(sent), node.killed)

    def _is_lost(self, message: Message) -> bool:
        """Return whether no node waits for the message, or the model loses all of its kind."""
        model = self._model
        if isinstance(message, EndQuorumEpochRequest | EndQuorumEpochResponse):
            return not model.has_end_epochs
        if isinstance(message, Request):
            return False
        is_refusal = message.error != ErrorCode.NONE or (
            isinstance(message, VoteResponse) and not message.granted
        )
        return message.request_id == slots.LATE or (is_refusal and not model.has_refusals)

    def _skip_pre_vote(self, node: Working) -> None:
        """Without pre-votes in the model, a node that would ask for them has won them."""
        core = node.core
        role = core.role
        if self._model.has_pre_votes or not isinstance(role, Prospective):
            return
        for ballot in role.ballots.values():
            core.requests.close(ballot)
            ballot.granted = True
        node.take(node.raft.tick(slots.NOW_MS))
        is_pre = [isinstance(each, VoteRequest) and each.pre_vote for _, each in node.sent]
        node.sent = [each for each, skipped in zip(node.sent, is_pre) if not skipped]
        node.promises = [
            each
            for each in node.promises
            if not (isinstance(each.message, VoteRequest) and each.message.pre_vote)
        ]

    def _packet(
        self,
        sender: NodeId,
        to: NodeId,
        message: Message,
        number: int,
        before: Sequence[int] = (),
    ) -> int:
        if message.request_id != number:
            message = replace(message, request_id=number)
        key = (sender, to, message)
        known = self._by_message.get(key)
        if known is None:
            known = self._by_message[key] = len(self.packets)
            is_request = isinstance(message, Request)
            is_late = is_request and number == slots.LATE
            is_late &= not isinstance(message, BeginQuorumEpochRequest)
            epoch = message.epoch
            if is_late and isinstance(message, VoteRequest) and message.pre_vote:
                epoch = -1  # Its answer promises nothing, and no node waits for it.
            packet = Packet(sender, to, message, number, is_request, epoch, is_late)
            self.packets.append(packet)
            outlines = [self.packets[each].outline for each in before]
            self.sources.append((self._origin, outlines.count(packet.outline)))
        return known

    def _intern(self, node: Working) -> int:
        node.sent, node.before, killed = [], frozenset(), node.killed
        node.killed, checkpoints = frozenset(), node.checkpoints
        node.checkpoints = {}
        core = node.core
        slots.set_aside(core)
        high_watermark, core.high_watermark = core.high_watermark, 0
        body = fingerprint((core, node.disk, node.pending, node.promises, node.last_pass))
        core.high_watermark = high_watermark
        key = (body, high_watermark, node.stored, node.crashes)
        known = self._by_fingerprint.get(key)
        if known is None:
            known = self._by_fingerprint[key] = len(self.locals)
            packed = pickle.dumps(node, -1)
            slots.bring_back(core, *self._common)
            self.locals.append(self._describe(node, packed, body, checkpoints))
            self.origins.append(self._origin)
        node.killed, node.checkpoints = killed, checkpoints
        return known

    def _describe(self, node: Working, packed: bytes, body: bytes, checkpoints: Any) -> Local:
        core, raft = node.core, node.raft
        role = core.role
        node.checkpoints = checkpoints
        written, kept = node.written, node.disk.election
        owed = {
            (each.to, each.message.request_id)
            for each in node.promises
            if not isinstance(each.message, Request)
        }
        begins: list[NodeId] = []
        if isinstance(role, Leader):
            owed |= set(role.held._held)
            begins = [peer for peer, each in role.remote.items() if not each.begin.request_id]
            if raft.is_leader and (kept.epoch, kept.leader_id) != (raft.epoch, raft.me.id):
                raise Violation("promises", "it leads before that is durable", node=raft.me.id)
        return Local(
            packed,
            body,
            raft.me.id,
            raft.epoch,
            kept.epoch,
            kept.leader_id,
            raft.role_name,
            raft.is_leader,
            raft.can_write,
            role.leader_id if isinstance(role, Follower) else -1,
            raft.high_watermark,
            self._logs.setdefault(written.log, written.log),
            self._logs.setdefault(node.disk.log, node.disk.log),
            core.voters.latest.ids,
            slots.live_numbers(core),
            frozenset(owed),
            tuple(begins) if raft.is_leader else (),
            tuple(events_of(node, written, self._model)),
            is_urgent(node, self._model),
            node.last_pass and not raft.is_leader,
        )
