"""Clients: idempotent writers that retry until they know the outcome, and linearizable readers.

The outcome of a write without an answer is *unknown*; the write is sent again under the same
sequence number, to the node that may lead. Requests reach a node in the order in which they were
sent, as on the client library's stream; sometimes an earlier copy arrives late. As in that library,
only the answer to the newest copy counts, and a producer is requested once per answer timeout.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from quorate.controller.requests import Answer, RequestContext
from quorate.replica.replica import Replica
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.commands import CommandMix
from simulation.invariants.seen import ReadBegun
from simulation.invariants.violation import Violation
from simulation.population import Population
from simulation.recording import Recording
from simulation.seeded_random import SeededRandom
from statemachine.commands import (
    AllocateProducerIds,
    BrokerHeartbeat,
    Command,
    InitProducerId,
)
from statemachine.sections.producers import PRODUCER_WINDOW

ANSWER_TIMEOUT_US = 120_000
WINDOW = 3
LATE_SHARE = 0.1
"""Share of the requests of which an earlier copy arrives later."""
LATE_US_MAX = (10_000, 30_000, 300_000)
"""Maximum delay of such a copy, drawn per copy."""

_ASKED_AGAIN = {code for code in ErrorCode if code.is_retriable} | {
    ErrorCode.RESOURCE_EXHAUSTED,
    # An older open command is still on its way.
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
}
_LEAVING = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


@dataclass(slots=True)
class Write:
    """A command until its writer knows the outcome."""

    sequence: int
    command: Command
    attempts: int = 0
    """Copies sent; each may reach a server, in any order."""
    is_done: bool = False


class Client:
    """One client, which writes and reads."""

    def __init__(
        self, cluster: Population, recording: Recording, rng: random.Random, name: int
    ) -> None:
        self._cluster = cluster
        self._recording = recording
        self.is_stopped = False
        """Whether it has stopped starting new requests."""
        self._rng = rng
        self._name = name
        self.principal = f"client-{name}"
        self.target: NodeId = rng.choice(cluster.voter_ids)
        """The node that it takes for the leader."""
        self.producer: tuple[int, int] | None = None
        self.next_sequence = 0
        self._transactional_id = f"writer-{name}" if name % 2 else None
        self._misused: set[tuple[int, int]] = set()
        self._arrives_us: dict[NodeId, int] = {}
        """When the last request arrives at each node: a stream keeps order, except late copies."""
        self._is_leaving = False
        """Whether it waits for its open commands before it requests a new producer."""
        self._open: dict[int, Write] = {}
        self.done: dict[tuple[int, int, int], int] = {}
        """Acknowledged offset by producer id, epoch and sequence."""
        self._mix = CommandMix(cluster.cluster_id, rng, name)
        self._initial = self._asking()

    def _asking(self) -> Write:
        return Write(-1, InitProducerId(self._transactional_id))

    @property
    def oldest_open(self) -> int:
        """Return the oldest number without an answer; the next number when there is none."""
        return min(self._open, default=self.next_sequence)

    def note_misuse(self, producer: tuple[int, int]) -> None:
        """Note that a stranger uses its producer: the client may have to leave it."""
        self._misused.add(producer)

    @property
    def is_settled(self) -> bool:
        """Return whether it knows the outcome of all its requests."""
        return not self._open and (self.producer is not None or not self._initial.attempts)

    def step(self) -> None:
        """Send a new request, if there is room, and schedule the next step."""
        rng = self._rng
        if self.is_stopped and not self._initial.attempts:
            return
        if self._is_leaving and not self._open:
            self._is_leaving, self.producer, self._initial = False, None, self._asking()
        if self.producer is None:
            if not self._initial.attempts:
                if self.is_stopped:
                    return
                # Sent again at the answer timeout, as every other request.
                self._send(self._initial)
            pause = rng.randint(500, 12_000)
        elif self.is_stopped:
            return
        else:
            if rng.random() < 0.3:
                self._read()
            elif self._has_room():
                write = Write(self.next_sequence, self._mix.draw())
                self.next_sequence += 1
                self._open[write.sequence] = write
                self._send(write)
            pause = rng.randint(500, 12_000)
        self._cluster.scheduler.after(pause, self.step)

    def _has_room(self) -> bool:
        if self._is_leaving:
            return False
        ahead = self.next_sequence - self.oldest_open
        return len(self._open) < WINDOW and ahead < PRODUCER_WINDOW

    # ------------------------------------------------------------------ writing

    def _send(self, write: Write) -> None:
        if write.is_done:
            return
        self._recording.called(self._name, write.sequence, write.command, self.producer)
        scheduler, rng = self._cluster.scheduler, self._rng
        if not self._cluster.is_healed and rng.random() < LATE_SHARE:
            # A copy from an earlier stream, or to an earlier leader, that arrives late.
            late = rng.randint(2_000, rng.choice(LATE_US_MAX))
            node_id = rng.choice((self.target, rng.choice(self._cluster.voter_ids)))
            write.attempts += 1
            scheduler.after(
                late, self._arrive, node_id, write, write.attempts, self._context(write)
            )
        write.attempts += 1
        is_lost = not self._cluster.is_healed and rng.random() < self._cluster.plan.loss
        is_lost = is_lost or not self._reaches(self.target)
        if not is_lost:
            travel = rng.randint(50, 2_000)
            travel = max(travel, self._arrives_us.get(self.target, 0) - scheduler.now_us)
            self._arrives_us[self.target] = scheduler.now_us + travel
            scheduler.after(
                travel, self._arrive, self.target, write, write.attempts, self._context(write)
            )
        scheduler.after(ANSWER_TIMEOUT_US, self._timed_out, write, write.attempts)

    def _reaches(self, node_id: NodeId) -> bool:
        is_cut = not self._cluster.network.reaches_client(node_id)
        self._cluster.counts.cut_from_clients += is_cut
        return not is_cut

    def _timed_out(self, write: Write, attempt: int) -> None:
        if not write.is_done and write.attempts == attempt:
            self.target = self._rng.choice(self._cluster.known_to_clients())
            self._send(write)

    def _context(self, write: Write) -> RequestContext:
        context = RequestContext(self.principal)
        if write.sequence >= 0 and self.producer is not None:
            context.producer_id, context.producer_epoch = self.producer
            context.sequence = write.sequence
            context.oldest_open = min((*self._open, write.sequence))
            context.is_repeat = write.attempts > 1
        return context

    def _arrive(self, node_id: NodeId, write: Write, attempt: int, context: RequestContext) -> None:
        key = (context.producer_id, context.producer_epoch, write.sequence)
        is_repeat = key in self._cluster.run_observer.sequences
        begun = self._cluster.run_observer.read_begins()

        def answered(answer: Answer) -> None:
            self._answered(node_id, write, attempt, key, answer, is_repeat=is_repeat)
            self._check_claim(node_id, write.command, key, begun, answer)

        def submit(replica: Replica) -> None:
            self._cluster.run_observer.asked.add(key)
            replica.controller.submit(write.command, context, answered)

        detail = ""
        if self._cluster.trace.is_kept:
            detail = f"c{self._name} write seq={write.sequence} try={attempt}"
        self._cluster.members[node_id].serve(detail, submit)

    def _answered(
        self,
        node_id: NodeId,
        write: Write,
        attempt: int,
        key: tuple[int, int, int],
        answer: Answer,
        *,
        is_repeat: bool,
    ) -> None:
        cluster = self._cluster
        if answer.code == ErrorCode.NONE:
            # A command that changes nothing has no batch of its own in the log.
            has_place = key[0] >= 0 and self._mix.must_apply(write.command)
            numbered = (key, write.command) if has_place else ()
            cluster.run_observer.acknowledged(node_id, answer.offset, *numbered)
            cluster.ages.acknowledged(cluster.scheduler.now_us, answer.offset)
            cluster.counts.acknowledged += 1
            if isinstance(write.command, AllocateProducerIds):
                self._note_block(node_id, key, answer)
            cluster.counts.duplicates += is_repeat
        if cluster.trace.is_kept:
            detail = f"c{self._name} seq={write.sequence} {answer.code.name}"
            cluster.note(node_id, "answer", detail)
        is_lost = not cluster.is_healed and self._rng.random() < cluster.plan.loss
        if is_lost or write.is_done or not self._reaches(node_id):
            return
        cluster.scheduler.after(
            self._rng.randint(50, 2_000), self._receive, node_id, write, attempt, key, answer
        )

    def _note_block(self, node_id: NodeId, key: tuple[int, int, int], answer: Answer) -> None:
        """Record the block of producer ids, whether or not its writer gets the answer."""
        first = int(str(answer.result["first_producer_id"]))
        count = int(str(answer.result["producer_id_count"]))
        self._cluster.run_observer.block_handed_out(node_id, key, first, count)
        self._cluster.counts.id_blocks += 1

    def _check_claim(
        self,
        node_id: NodeId,
        command: Command,
        key: tuple[int, int, int],
        begun: ReadBegun,
        answer: Answer,
    ) -> None:
        """Check a refusal or no-op as a read: it must see all that was acknowledged before it."""
        run_observer = self._cluster.run_observer
        is_done = answer.code == ErrorCode.NONE
        # An answer with a batch of its own reports what is in the log, not the present state.
        if answer.offset < 0 or run_observer.sequences.get(key) == answer.offset:
            return
        # A heartbeat that writes nothing returns the leader's unproven view.
        if not (is_done and isinstance(command, BrokerHeartbeat)):
            run_observer.read_confirmed(node_id, begun, answer.offset)

    def _receive(
        self,
        node_id: NodeId,
        write: Write,
        attempt: int,
        key: tuple[int, int, int],
        answer: Answer,
    ) -> None:
        must_apply = write.sequence < 0 or self._mix.must_apply(write.command)
        is_final = must_apply and answer.code == ErrorCode.NONE
        if write.is_done or (write.attempts != attempt and not is_final):
            # The client has left the stream of an older copy. That copy may have changed nothing,
            # while a newer one still will.
            return
        if answer.code == ErrorCode.NONE:
            write.is_done = True
            self._recording.answered(self._name, write.sequence, answer)
            if write.sequence < 0:
                self.producer = (
                    int(str(answer.result["producer_id"])),
                    int(str(answer.result["producer_epoch"])),
                )
            else:
                self._open.pop(write.sequence)
                self._mix.learn(write.command, answer.result)
                if self._mix.must_apply(write.command):
                    self.done[key] = answer.offset
        elif answer.code in _ASKED_AGAIN:
            hint, known = answer.leader_hint, self._cluster.known_to_clients()
            self.target = hint if hint in self._cluster.members else self._rng.choice(known)
            self._cluster.scheduler.after(
                self._rng.randint(1_000, 20_000), self._again, write, attempt
            )
        elif (
            write.sequence >= 0
            and answer.code not in _LEAVING
            and not self._mix.must_apply(write.command)
        ):
            # Final refusal: nothing was or will be changed under this number.
            write.is_done = True
            self._open.pop(write.sequence)
            self._recording.refused(self._name, write.sequence, answer, key[:2])
        elif answer.code in _LEAVING and self._may_be_misused(key, answer.code):
            self._leave(write, answer, key)
        else:
            raise Violation(
                "client-served",
                "an open command was refused",
                node=node_id,
                client=self._name,
                command=key,
                code=answer.code.name,
                message=answer.message,
            )

    def _may_be_misused(self, key: tuple[int, int, int], code: ErrorCode) -> bool:
        """Return whether a stranger may explain a refusal under that sequence number.

        A client that requests a named producer twice takes it over from itself.
        """
        is_taken_over = (
            self._transactional_id is not None and code == ErrorCode.INVALID_PRODUCER_EPOCH
        )
        return key[2] >= 0 and (key[:2] in self._misused or is_taken_over)

    def _leave(self, write: Write, answer: Answer, key: tuple[int, int, int]) -> None:
        """Request another producer once no command is open: someone else uses this one.

        A command sent once and refused was not applied; for a repeated one that is unknown.
        """
        write.is_done = True
        self._open.pop(write.sequence)
        if write.attempts == 1:
            self._recording.refused(self._name, write.sequence, answer, key[:2])
        self._is_leaving = True
        self._cluster.counts.producers_left += 1

    def _again(self, write: Write, attempt: int) -> None:
        if write.attempts == attempt:
            self._send(write)

    # ------------------------------------------------------------------ reading

    def _read(self) -> None:
        begun = self._cluster.run_observer.read_begins()
        cluster = self._cluster
        # A deposed leader may still take itself for the leader.
        node_id = self.target
        if self._rng.random() < 0.5:
            node_id = self._rng.choice(cluster.voter_ids)

        def ask(replica: Replica) -> None:
            def confirmed(offset: int | None) -> None:
                if offset is not None:
                    cluster.run_observer.read_confirmed(node_id, begun, offset)
                    cluster.counts.reads += 1
                    replica.controller.wait_applied(offset, lambda: None)

            now_ms = member.clock.seen_ms()
            cluster.ages.check(
                node_id,
                replica.node.freshness(now_ms),
                now_ms=now_ms,
                now_us=cluster.scheduler.now_us,
            )
            replica.controller.confirm_read(confirmed)

        member = cluster.members[node_id]
        member.serve(f"c{self._name} read floor={begun.acknowledged_end}", ask)


class Clients:
    """All clients of a cluster."""

    def __init__(
        self, cluster: Population, recording: Recording, rng: random.Random, count: int
    ) -> None:
        self._cluster = cluster
        self.all = [
            Client(cluster, recording, SeededRandom(rng.getrandbits(64)), name)
            for name in range(count)
        ]

    def stop(self) -> None:
        """Start nothing new; open commands go on until their outcome is known."""
        for client in self.all:
            client.is_stopped = True

    def has_stopped(self) -> bool:
        """Return whether no client starts anything new."""
        return all(client.is_stopped for client in self.all)

    def are_settled(self) -> bool:
        """Return whether no command is open."""
        return self.has_stopped() and all(client.is_settled for client in self.all)

    def start(self) -> None:
        """Start every client."""
        for number, client in enumerate(self.all):
            self._cluster.scheduler.after(1_000 * number, client.step)

    def acknowledged(self) -> dict[tuple[int, int, int], int]:
        """Return every acknowledged command with its end offset."""
        return {key: offset for client in self.all for key, offset in client.done.items()}
