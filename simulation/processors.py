"""Simulated programs that read, process and write exactly once (requirement 320.6).

Each process requests the writer's name, reads the position of its group at a linearizable read, and
writes one output for each input, together with the position behind it. Now and then another process
takes over while the former one goes on: it is a zombie until it is refused. The inputs are numbers,
so the output of input n is n. ``invariants.processed_once`` compares the log with that.

Some programs keep no position: each output is a request with an id, and a process begins by
repeating the last one that was sent (360.8). Some write in order, and now and then send an output
behind a command that is refused: it must not be applied. Then they go on in the next epoch (360.6).
"""

from __future__ import annotations

import random
from enum import Enum

from quorate.controller.requests import Answer, RequestContext
from quorate.replica.replica import Replica
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.invariants.processed_once import GROUP
from simulation.invariants.violation import Violation
from simulation.population import Population
from simulation.seeded_random import SeededRandom
from statemachine.commands import (
    Command,
    CommitPosition,
    ConfigChange,
    IncrementalAlterConfigs,
    InitProducerId,
    ResourceType,
    WithPosition,
)

SHARE = 0.2
"""Share of the seeds with such programs."""
TAKEOVER_SHARE = 0.1
"""Share of the steps after which another process takes over."""
PAUSE_US = (2_000, 15_000)
TRAVEL_US = (50, 2_000)
ANSWER_TIMEOUT_US = 120_000
PRINCIPAL = "processor"
SPOILED_SHARE = 0.2
"""Share of the outputs of an ordered program that are sent behind a refused command."""
_FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
_FORGOTTEN = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING})


class Kind(Enum):
    """How the processes of a program know what is done."""

    POSITIONS = "each begins at the committed position"
    REQUESTS = "each repeats the last request"
    ORDER = "as POSITIONS, and outputs behind a refused command are not applied"


KINDS = (Kind.POSITIONS, Kind.POSITIONS, Kind.REQUESTS, Kind.ORDER)
"""One of them is drawn for each seed."""


class Process:
    """One process of the program, from its start until it is replaced."""

    def __init__(self, owner: Processors, rng: random.Random) -> None:
        self._owner = owner
        self._cluster = owner.cluster
        self._rng = rng
        self._target: NodeId = rng.choice(self._cluster.voter_ids)
        self._producer: tuple[int, int] | None = None
        self._position = -1
        """Inputs that were processed; -1 before it is read."""
        self._sequence = 0
        self._is_spoiled = False
        """Whether the open request is sent behind a command that is refused."""
        self._renews = False
        """Whether it goes on in the next epoch."""
        self._attempts = 0
        """Copies of the open request."""
        self._request = 0
        """Number of the open request; answers to others are late."""
        self.has_ended = False

    def step(self) -> None:
        """Go on with what comes next."""
        if self.has_ended or self._cluster.is_healed or self._owner.has_stopped:
            return
        self._request += 1
        self._attempts = 0
        self._is_spoiled = (
            self._owner.kind is Kind.ORDER
            and self._position >= 0
            and self._rng.random() < SPOILED_SHARE
        )
        self._send(self._request)

    def _send(self, request: int) -> None:
        """Send the open request, again after a timeout."""
        if request != self._request or self.has_ended or self._cluster.is_healed:
            return
        self._attempts += 1
        cluster, rng = self._cluster, self._rng
        cluster.scheduler.after(ANSWER_TIMEOUT_US, self._timed_out, request, self._attempts)
        if rng.random() < cluster.plan.loss or not cluster.network.reaches_client(self._target):
            return
        cluster.scheduler.after(
            rng.randint(*TRAVEL_US), self._arrive, self._target, request, self._attempts
        )

    def _timed_out(self, request: int, attempt: int) -> None:
        if request == self._request and attempt == self._attempts:
            self._target = self._rng.choice(self._cluster.known_to_clients())
            self._send(request)

    def _arrive(self, node_id: NodeId, request: int, attempt: int) -> None:
        if self._producer is None or self._renews:
            init = InitProducerId(GROUP, *(self._producer or (-1, -1)))
            self._submit(node_id, request, init, RequestContext(PRINCIPAL))
        elif self._position < 0:
            self._begin(node_id, request)
        else:
            number = self._position + 1
            self._owner.attempted = max(self._owner.attempted, number)
            context = self._context(self._producer, self._sequence, attempt)
            if self._is_spoiled:
                self._submit(node_id, -1, _alteration("no such key", number), context)
                context = self._context(self._producer, self._sequence + 1, attempt)
            both = WithPosition(_alteration("metrics", number), CommitPosition(GROUP, number))
            if self._owner.kind is Kind.REQUESTS:
                context.request_id = f"output-{number}"
            self._submit(node_id, request, both, context)

    def _context(self, producer: tuple[int, int], sequence: int, attempt: int) -> RequestContext:
        context = RequestContext(PRINCIPAL)
        context.producer_id, context.producer_epoch = producer
        context.sequence, context.oldest_open = sequence, self._sequence
        context.is_repeat = attempt > 1
        context.is_ordered = self._owner.kind is not Kind.POSITIONS
        return context

    def _begin(self, node_id: NodeId, request: int) -> None:
        """Find out what is done."""
        if self._owner.kind is Kind.REQUESTS:
            # The output before the last one that was sent is acknowledged.
            self._position = max(0, self._owner.attempted - 1)
            self._later()
        else:
            self._read(node_id, request)

    def _submit(
        self, node_id: NodeId, request: int, command: Command, context: RequestContext
    ) -> None:
        key = (context.producer_id, context.producer_epoch, context.sequence)

        def answered(answer: Answer) -> None:
            self._cluster.scheduler.after(
                self._rng.randint(*TRAVEL_US), self._receive, request, command, answer
            )

        def ask(replica: Replica) -> None:
            self._cluster.run_observer.asked.add(key)
            replica.controller.submit(command, context, answered)

        self._cluster.members[node_id].serve(f"process {command}", ask)

    def _read(self, node_id: NodeId, request: int) -> None:
        """Read the group's position, with everything that was acknowledged before."""

        def ask(replica: Replica) -> None:
            def confirmed(offset: int | None) -> None:
                if offset is not None:
                    replica.controller.wait_applied(offset, read)

            def read() -> None:
                found = replica.controller.image.positions.of(GROUP)
                if request == self._request and self._position < 0:
                    self._position = 0 if found is None else found.offset
                    self._later()

            replica.controller.confirm_read(confirmed)

        self._cluster.members[node_id].serve("process reads its position", ask)

    def _receive(self, request: int, command: Command, answer: Answer) -> None:
        if request != self._request or self.has_ended:
            return
        is_fenced = answer.code is _FENCED or answer.code in _FORGOTTEN
        if self._is_spoiled and not is_fenced:
            # Whatever the answer was, the output is written again in the next epoch.
            self._renews, self._is_spoiled = True, False
            self._later()
        elif answer.code is ErrorCode.NONE:
            if isinstance(command, InitProducerId):
                result = answer.result
                self._producer = int(str(result["producer_id"])), int(str(result["producer_epoch"]))
                self._sequence, self._renews = 0, False
            else:
                self._position += 1
                self._sequence += 1
                self._cluster.counts.processed += 1
            self._later()
        elif is_fenced:
            # Replaced, or idle for so long that the writer was forgotten: another process begins.
            self.has_ended = True
            self._cluster.counts.processes_fenced += answer.code is _FENCED
            self._owner.ended(self)
        elif answer.code.is_retriable or answer.code in (
            ErrorCode.RESOURCE_EXHAUSTED,
            ErrorCode.OUTCOME_UNKNOWN,
        ):
            hint = answer.leader_hint
            known = self._cluster.known_to_clients()
            self._target = hint if hint in self._cluster.members else self._rng.choice(known)
            self._cluster.scheduler.after(self._rng.randint(*PAUSE_US), self._send, request)
        else:
            raise Violation(
                "client-served", "a process was refused", code=answer.code.name, text=answer.message
            )

    def _later(self) -> None:
        # Nothing that is under way belongs to the next request.
        self._request += 1
        self._cluster.scheduler.after(self._rng.randint(*PAUSE_US), self.step)
        if self._rng.random() < TAKEOVER_SHARE:
            self._owner.take_over()


def _alteration(key: str, number: int) -> IncrementalAlterConfigs:
    change = ConfigChange(key, 0, str(number))
    return IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), GROUP, (change,))


class Processors:
    """All processes of the program in one run."""

    def __init__(self, cluster: Population, rng: random.Random, kind: Kind) -> None:
        self.cluster = cluster
        self.kind = kind
        self.attempted = 0
        """The last output that any process has sent."""
        self._rng = rng
        self._current: Process | None = None
        self.has_stopped = False

    def start(self) -> None:
        """Start the first process."""
        self.take_over()

    def take_over(self) -> None:
        """Start another process; the present one is not told."""
        self._current = Process(self, SeededRandom(self._rng.getrandbits(64)))
        self.cluster.scheduler.after(self._rng.randint(*PAUSE_US), self._current.step)

    def ended(self, process: Process) -> None:
        """Start another process if the one that ended was the present one."""
        if process is self._current:
            self.take_over()
