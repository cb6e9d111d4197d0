"""Forming groups: what a leader does with commands between their arrival and the log.

The proposer owns the queue, decides when a group may be formed, and becomes active once
everything older is applied. What happens to a group afterwards is the controller's business.

Batch forming: what arrives while a group is on its way to the disk waits and becomes the next
group (``ControllerConfig`` holds the bounds). Evaluating and appending are one step, so offsets
evaluated are offsets given.

See: ADR 7 and 14; docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial

from quorate.controller.commit_purgatory import CommitPurgatory
from quorate.controller.config import ControllerConfig
from quorate.controller.departures import Departures
from quorate.controller.group import GroupFormer
from quorate.controller.periodic_tasks import PeriodicTasks, activation_batches
from quorate.controller.ports import LogDriver
from quorate.controller.requests import PendingCommand
from quorate.controller.uncommitted_image import UncommittedImage
from quorate.controller.unused_numbers import UnusedNumbers
from quorum.errors import violation
from quorum.ports import Clock
from quorum.types import NodeId
from statemachine.commands import BrokerHeartbeat
from statemachine.machine import StateMachine
from statemachine.prepare import EvaluationContext
from statemachine.prepare.context import KnownBrokers
from statemachine.records import MetadataRecord
from statemachine.sessions import BrokerSessions


class Proposer:
    """The leader's side of one controller; idle while another replica leads."""

    def __init__(
        self,
        config: ControllerConfig,
        machine: StateMachine,
        uncommitted_image: UncommittedImage,
        purgatory: CommitPurgatory,
        *,
        rng: random.Random,
        bootstrap: tuple[MetadataRecord, ...],
        on_fault: Callable[[str], None],
        on_group: Callable[[int], None],
    ) -> None:
        self.sessions = BrokerSessions(config.session_timeout_ms)
        self.active_epoch: int | None = None
        """The epoch in which commands are evaluated now, if any."""
        self.is_leading = False
        """Whether this replica leads, as last reported; it may not be allowed to write yet."""
        self.is_halted = False
        """Whether replay has stopped: then nothing is evaluated any more."""
        self.deadline_ms: int | None = None
        """When a periodic task is due; None while not active, and while one waits for its group.

        A periodic task that is due waits for the disk or for a commit; whoever reports that takes
        a turn. A deadline in the past would only make the shell spin until then.
        """
        self.log: LogDriver
        self._config = config
        self._machine = machine
        self._uncommitted_image = uncommitted_image
        self._purgatory = purgatory
        self._rng = rng
        self._bootstrap = bootstrap
        self._on_fault = on_fault
        self._on_group = on_group
        self._departures = Departures(config.departure_partitions_max)
        self._periodic_tasks = PeriodicTasks(config, self.sessions, self._departures)
        self._queue: deque[PendingCommand] = deque()
        self._unused = UnusedNumbers()
        self._known_brokers = KnownBrokers()
        self._contacts: dict[NodeId, int] = {}
        self._are_periodic_tasks_due = False
        self._is_forming = False
        self._is_step_next = False
        self._last_stamp_ms = -1

    @property
    def queue_length(self) -> int:
        """Commands that wait for a group."""
        return len(self._queue) + self._departures.waiting_count

    def note_contact(self, command: BrokerHeartbeat) -> None:
        """Note a broker's heartbeat, even if the command is refused later for its content.

        During an import it does not count, because no broker is fenced then.
        """
        image = self._machine.image
        if image.source is not None and not image.source.is_finished:
            return
        broker = image.cluster.broker(command.broker_id)
        if broker is not None and broker.epoch == command.broker_epoch:
            self._contacts[broker.id] = broker.epoch

    def enqueue(self, pending: PendingCommand) -> bool:
        """Take a command for the next group; False when too many are waiting."""
        if self.queue_length >= self._config.queue_commands_max:
            return False
        self._queue.append(pending)
        return True

    def take_queue(self) -> list[PendingCommand]:
        """The commands that no group has taken in, oldest first."""
        waiting = [*self._departures.take_waiting(), *self._queue]
        self._queue.clear()
        return waiting

    def step_down(self) -> None:
        """Leadership is lost: what was known of brokers no longer counts."""
        self.active_epoch = None
        self.sessions.reset((), 0)
        self._unused.clear()
        self._are_periodic_tasks_due = False
        self.deadline_ms = None

    def note_time(self, now_ms: int) -> None:
        """The time has come for ``turn``, or is still to come: an early call does nothing."""
        if self.deadline_ms is not None and now_ms >= self.deadline_ms:
            self._are_periodic_tasks_due = True
            self.deadline_ms = None

    def turn(self, clock: Clock) -> int | None:
        """Form and append a group from what waits, if one may be appended now.

        Called at the end of every entry into the replica, of which most bring nothing.

        Returns:
            ``deadline_ms``: when to call ``note_time`` and take another turn.
        """
        if (
            self._queue
            or self._are_periodic_tasks_due
            or self._contacts
            or self._departures.is_underway
            or self._departures.released
            or self._purgatory.arrived
            or (self.is_leading and self.active_epoch is None and self.log.node.can_write)
        ) and not (self.is_halted or self._is_forming):
            self._flush(clock.now_ms(), clock.wall_ms())
        return self.deadline_ms

    def _flush(self, now_ms: int, wall_ms: int) -> None:
        self._is_forming = True
        try:
            for broker_id, broker_epoch in self._contacts.items():
                self.sessions.touch(broker_id, broker_epoch, now_ms)
            self._contacts.clear()
            if self._is_ready(now_ms, wall_ms) and self._may_append():
                self._form_group(now_ms, wall_ms)
            if self._purgatory.arrived and (self.log.node.can_write or not self.log.node.is_leader):
                self.log.ask_position(self._purgatory.begin_round())
        finally:
            self._is_forming = False
            # Only here and above do the times change that the next deadline follows from.
            is_waiting = self.active_epoch is None or self._are_periodic_tasks_due
            self.deadline_ms = None if is_waiting else self._periodic_tasks.next_deadline_ms()
            if self._is_step_next:
                self._is_step_next = False
                self.deadline_ms = now_ms

    # ------------------------------------------------------------------ becoming active

    def _is_ready(self, now_ms: int, wall_ms: int) -> bool:
        """Whether commands may be evaluated; becomes active when the time has come."""
        log = self.log.node
        if not log.can_write:
            return False
        if self.active_epoch is not None:
            # Another epoch's news has not been delivered yet: wait for it.
            return self.active_epoch == log.epoch
        if self._machine.end_offset < log.high_watermark:
            return False
        self.active_epoch = log.epoch
        self._write_activation(now_ms, wall_ms)
        # The bootstrap records may bring unfenced brokers: they get their sessions as well.
        groups = self._uncommitted_image.groups
        self._periodic_tasks.begin(groups[-1].image if groups else self._machine.image, now_ms)
        return self.active_epoch is not None

    def _write_activation(self, now_ms: int, wall_ms: int) -> None:
        has_open_transaction = self._machine.open_transaction is not None
        batches = activation_batches(
            self._machine.image, self._bootstrap, has_open_transaction=has_open_transaction
        )
        if not batches:
            return
        former = self._begin_group(now_ms, wall_ms)
        if all(former.add(records) for records in batches):
            self._append(former, now_ms, must_replay=has_open_transaction)
        else:
            self.active_epoch = None
            # The records of activation do not replay.
            self.log.resign()

    def _may_append(self) -> bool:
        """The batch-forming policy; see ``ControllerConfig``."""
        groups = self._uncommitted_image.groups
        if len(groups) >= self._config.groups_in_flight_max:
            return False
        if groups and groups[-1].must_replay:
            return False  # What is in flight must be committed first.
        flushed_end = self.log.node.flushed_end_offset
        unflushed = 0
        for group in reversed(groups):
            if group.end_offset <= flushed_end:
                break
            unflushed += 1
        return unflushed < self._config.groups_unflushed_max

    # ------------------------------------------------------------------ forming groups

    def _form_group(self, now_ms: int, wall_ms: int) -> None:
        departures = self._departures
        is_step_due = departures.is_due(self._machine.image.provenance.end_offset)
        are_tasks_due = self._are_periodic_tasks_due and (is_step_due or not departures.is_underway)
        if not (self._queue or departures.released or is_step_due or are_tasks_due):
            return
        former = self._begin_group(now_ms, wall_ms)
        departed = departures.advance(former, self.sessions, now_ms) if is_step_due else None
        self._evaluate_released(former)
        if are_tasks_due and not departures.is_underway:
            for records in self._periodic_tasks.due(
                former.delta, now_ms, former.timestamp_ms, departed
            ):
                former.add(records)
            # While a broker leaves its partitions, the tasks stay due and set no deadline.
            self._are_periodic_tasks_due = departures.is_underway
        self._evaluate_queue(former)
        # Without a step on its way, nothing would report that the next one may follow.
        self._is_step_next = departures.is_due(self._machine.image.provenance.end_offset)
        answers = former.answers
        if not former.batches:
            idle_records = self._periodic_tasks.idle_records(now_ms)
            if idle_records:
                former.add(idle_records)
        if former.batches:
            self._append(former, now_ms)
        elif answers:
            self._hold_evaluated(former)

    def _has_room(self, former: GroupFormer) -> bool:
        config = self._config
        return (
            len(former.answers) < config.group_commands_max
            and former.size_bytes < config.group_bytes_max
        )

    def _evaluate_released(self, former: GroupFormer) -> None:
        """Evaluate what waited for a departure, in the order of its arrival.

        If some remain, the group has no room for what is in the queue: those come later.
        """
        released = self._departures.released
        while released and self._has_room(former):
            former.evaluate(released.popleft(), may_wait=False)

    def _evaluate_queue(self, former: GroupFormer) -> None:
        queue, departures = self._queue, self._departures
        commands_max, bytes_max = self._config.group_commands_max, self._config.group_bytes_max
        answers = former.answers
        while queue and len(answers) < commands_max and former.size_bytes < bytes_max:
            pending = queue.popleft()
            leaving = departures.waits_behind(pending.context) if departures.is_underway else None
            if leaving is None:
                leaving = former.evaluate(pending)
            if leaving is not None:
                departures.wait(leaving, pending)

    def _begin_group(self, now_ms: int, wall_ms: int) -> GroupFormer:
        log_end, epoch = self.log.node.log_end_offset, self.log.node.epoch
        self._last_stamp_ms = stamp = max(
            wall_ms,
            self._last_stamp_ms,
            self._machine.image.provenance.timestamp_ms,
            self.log.controls.newest_stamp_ms,
        )
        return GroupFormer(
            partial(self._uncommitted_image.begin_delta, log_end, epoch),
            EvaluationContext(
                cluster_id=self._config.cluster_id,
                next_offset=log_end,
                now_ms=now_ms,
                wall_ms=stamp,
                rng=self._rng,
                sessions=self.sessions,
                uses_native_codec=self._config.uses_native_codec,
                log_incarnation=self.log.node.voter_set_at(log_end).incarnation.id,
                kraft_version=self._config.kraft_version,
                voter_versions=self.log.voter_versions,
                known_brokers=self._known_brokers,
            ),
            epoch,
            stamp,
            self._on_fault,
            self._config.producer_window,
            self._config.batch_bytes_max,
            self._unused,
            self._departures.begin,
        )

    def _append(self, former: GroupFormer, now_ms: int, *, must_replay: bool = False) -> None:
        group = former.finish(must_replay=must_replay)
        # Known before it is appended: a commit may be reported from inside the call.
        self._uncommitted_image.push(group)
        self._periodic_tasks.wrote(now_ms)
        self._on_group(len(former.batches))
        end_offset = self.log.propose(former.batches, former.batch_headers)
        if end_offset != group.end_offset:
            raise violation(
                "a group gets the offsets it was evaluated with",
                evaluated=group.end_offset,
                given=end_offset,
            )

    def _hold_evaluated(self, former: GroupFormer) -> None:
        """Nothing to append: the answers wait for what they rest on, and for proof of leadership
        term.
        """
        if former.needs_proof:
            self.log.read(self._purgatory.begin_round(former.answers))
        else:
            self._purgatory.hold(former.answers)
            self._purgatory.release(self._machine.image.provenance.end_offset)
