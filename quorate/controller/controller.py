"""The controller: a replica's published image and, on the leader, the way commands get into it.

Synchronous and free of clocks: the very same object runs in production and in the simulator.
The replica calls ``turn`` after each of its entries, and ``note_time`` before it at a deadline; the
driver calls the ``on_*`` methods. All on one thread.

Invariants:
    1. An answer leaves only when everything it rests on is committed and in the image, also a
       refusal, a no-op and the repeat of a first answer (ADR 7). A refusal or a
       no-op says what is so now: it also needs a batch of its group to be committed, or
       leadership confirmed after it was evaluated.
    2. A command that was not appended is answered NOT_LEADER_OR_FOLLOWER when leadership is
       lost, one that was appended or evaluated on what was, OUTCOME_UNKNOWN.
    3. Groups are evaluated and appended in one step, so offsets evaluated are offsets given.

See: ADR 7 and 10; docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from quorate.controller.answer_delivery import AnswerCounts, AnswerDelivery
from quorate.controller.commit_purgatory import CommitPurgatory, OnOutcome
from quorate.controller.config import ControllerConfig
from quorate.controller.offset_purgatory import OffsetPurgatory
from quorate.controller.ports import LogDriver
from quorate.controller.proposer import Proposer
from quorate.controller.publishing import CheckpointProgress, Published, Subscriber, Subscribers
from quorate.controller.requests import (
    Answer,
    OnAnswer,
    PendingCommand,
    RequestContext,
    each_answer,
)
from quorate.controller.uncommitted_image import UncommittedImage, position_of
from quorum.batch import VerifiedBatches
from quorum.core.contract.output import LeadershipChanged
from quorum.errors import (
    ErrorCode,
    QuorateError,
    RecordCodecError,
    ReplayError,
    UnknownRecordError,
    invariant,
)
from quorum.types import NO_NODE, NodeId, SnapshotId
from statemachine.commands import BrokerHeartbeat, Command
from statemachine.image import MetadataImage
from statemachine.machine import StateMachine
from statemachine.records import MetadataRecord
from statemachine.sessions import BrokerSessions

_STOPS_REPLAY = (UnknownRecordError, RecordCodecError, ReplayError)

OpenCheckpoint = Callable[[SnapshotId], Iterable[bytes]]
"""The batches of a checkpoint on this replica's disk, whole ones in each piece."""


class Controller:
    """Owned by one thread. Life-cycle: construct, ``attach`` the log, then any of the calls.

    Public state to read at any time: ``image``, ``sessions``, ``checkpoint`` and ``fault``.
    """

    def __init__(
        self,
        config: ControllerConfig,
        machine: StateMachine,
        *,
        rng: random.Random,
        open_checkpoint: OpenCheckpoint,
        bootstrap: tuple[MetadataRecord, ...] = (),
        on_fault: Callable[[str], None] = lambda message: None,  # noqa: ARG005 - ignores it
        on_replay: Callable[[str], None] = lambda stopped: None,  # noqa: ARG005 - ignores it
        on_group: Callable[[int], None] = lambda batches: None,  # noqa: ARG005 - ignores it
    ) -> None:
        self.config = config
        self.checkpoint = CheckpointProgress(machine.changes)
        self.fault: QuorateError | None = None
        """Why replay has stopped before a committed record, if it has. Reads go on.

        ``on_replay`` is called with it as text, and with an empty one when replay continues.
        """
        self._machine = machine
        self._open_checkpoint = open_checkpoint
        self._on_fault = on_fault
        self._on_replay = on_replay
        self._log: LogDriver
        self._uncommitted_image = UncommittedImage(machine)
        self._delivery = AnswerDelivery()
        self._purgatory = CommitPurgatory(config.purgatory_max, self._delivery)
        self._proposer = Proposer(
            config,
            machine,
            self._uncommitted_image,
            self._purgatory,
            rng=rng,
            bootstrap=bootstrap,
            on_fault=on_fault,
            on_group=on_group,
        )
        self._offset_purgatory = OffsetPurgatory(config.purgatory_max)
        self._subscribers = Subscribers()
        self._unpublished: list[bytes] = []
        self._unpublished_end = machine.end_offset
        self._leader_id: NodeId = NO_NODE
        # The replica's calls go to the proposer itself.
        self.turn = self._proposer.turn
        self.note_time = self._proposer.note_time

    def attach(self, log: LogDriver) -> None:
        """Say which log this controller writes to. Once, before anything else."""
        self._log = self._proposer.log = log

    # ------------------------------------------------------------------ what is so now

    @property
    def image(self) -> MetadataImage:
        """The published image: committed and applied."""
        return self._machine.image

    @property
    def sessions(self) -> BrokerSessions:
        """What the leader knows of brokers; empty elsewhere."""
        return self._proposer.sessions

    @property
    def is_active(self) -> bool:
        """Whether this controller evaluates commands now."""
        return self._proposer.active_epoch is not None

    @property
    def leader_id(self) -> NodeId:
        """Who leads as far as known here."""
        return self._leader_id

    @property
    def queue_length(self) -> int:
        """Commands that wait for a group."""
        return self._proposer.queue_length

    @property
    def groups_in_flight(self) -> int:
        """Groups appended and not yet committed."""
        return len(self._uncommitted_image.groups)

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits for the image to get somewhere (``wait_applied``)."""
        return not self._offset_purgatory.is_empty

    # ------------------------------------------------------------------ what callers ask

    def submit(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        """Queue one command for the next group. Never raises; the answer has the outcome."""
        self.submit_all([PendingCommand(command, context, each_answer(on_answer))])

    def submit_all(self, commands: Sequence[PendingCommand]) -> None:
        """Queue commands for the next group, in this order. Never raises."""
        refused: list[PendingCommand] = []
        proposer = self._proposer
        for pending in commands:
            command = pending.command
            if type(command) is BrokerHeartbeat and not command.dry_run:
                access = pending.context.access
                if access is None or access.allows_heartbeat(self._machine.image, command):
                    # Noted before the command queues: a full queue must not fence a live broker.
                    proposer.note_contact(command)
            if not proposer.is_leading:
                pending.answer = self._not_leader()
                refused.append(pending)
            elif not proposer.enqueue(pending):
                pending.answer = Answer(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    f"{proposer.queue_length} commands are waiting already; retry later",
                    epoch=self._log.node.epoch,
                )
                refused.append(pending)
        if refused:
            self._delivery.send(refused)

    def take_answer_counts(self) -> AnswerCounts:
        """Return how many commands were answered since the last call, by type and outcome."""
        return self._delivery.take_counts()

    def confirm_read(self, on_outcome: OnOutcome) -> None:
        """Find the offset that a linearizable read has to wait for (``wait_applied``).

        An image at or above it holds every write acknowledged before this call. Confirmed
        together with all reads of this turn, by one round trip begun in ``turn``; a replica
        that does not lead asks the leader. The outcome is None when leadership changes
        meanwhile, no leader answers in time, too many reads wait, or this replica applies
        nothing any more.
        """
        if self.fault is not None or not self._purgatory.add_read(on_outcome):
            on_outcome(None)

    def wait_applied(self, offset: int, on_applied: Callable[[], None]) -> Callable[[], None]:
        """Call back once everything below ``offset`` is in the image; at once if it is.

        Calling the result gives up; it does nothing when it comes too late.

        Raises:
            CommandError: RESOURCE_EXHAUSTED when too many are waiting.
        """
        if self._machine.image.provenance.end_offset >= offset:
            on_applied()
            return _nothing_to_cancel
        return self._offset_purgatory.add(offset, on_applied).cancel

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Follow the image from now on. Calling the result ends it."""
        return self._subscribers.add(subscriber)

    # ------------------------------------------------------------------ the driver's calls

    def on_committed(
        self, data: bytes, end_offset: int, verified: Sequence[VerifiedBatches] = ()
    ) -> None:
        """Whole committed batches, contiguous with what was delivered before."""
        if self.fault is not None:
            return
        self._unpublished.append(data)
        self._unpublished_end = end_offset
        before = self._machine.image
        try:
            promoted = self._uncommitted_image.commit(data, end_offset, verified)
        except _STOPS_REPLAY as error:
            promoted = []
            self._stop_replay(error)
        for group in promoted:
            self._delivery.send(group.answers)
            self._purgatory.release(group.end_offset)
        self._publish(before)

    def on_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Drop the image and load this checkpoint; delivery continues at its end offset.

        One that this release cannot load stops replay; the former image stays in force.

        Raises:
            StorageError: The checkpoint cannot be read; the former image stays in force.
        """
        self._uncommitted_image.forget()
        before = self._machine.image
        self._unpublished.clear()
        self._unpublished_end = snapshot_id.offset
        try:
            self._machine.load(snapshot_id, self._open_checkpoint(snapshot_id))
        except _STOPS_REPLAY as error:
            self._stop_replay(error)
            return
        if self.fault is not None:
            self._set_fault(None)
            self._on_replay("")
        self.checkpoint.start_over()
        after = self._machine.image
        self._subscribers.notify(Published(before, after, (), snapshot_id))
        self._offset_purgatory.release(after.provenance.end_offset)

    def on_leadership(self, change: LeadershipChanged) -> None:
        """Who leads changed; activation itself waits for ``turn``, which knows the time."""
        self._leader_id = change.leader_id
        self._proposer.is_leading = change.is_leader
        active_epoch = self._proposer.active_epoch
        if active_epoch is not None and (not change.is_leader or change.epoch != active_epoch):
            self._step_down()
        if not change.is_leader:
            self._refuse_waiting()

    def on_truncated(self, end_offset: int) -> None:
        """Uncommitted records at and above ``end_offset`` are gone: never in the image."""
        invariant(
            end_offset >= self._machine.end_offset,
            "the log is not cut below what is applied",
            end_offset=end_offset,
            applied=self._machine.end_offset,
        )

    def on_read_confirmed(self, token: int, read_offset: int) -> None:
        """Leadership was confirmed by a round that began after everything that waits for it."""
        reads, answers = self._purgatory.end_round(token)
        self._purgatory.hold(answers)
        self._purgatory.release(self._machine.image.provenance.end_offset)
        for on_outcome in reads:
            on_outcome(read_offset)

    def on_read_failed(self, token: int) -> None:
        """Leadership was not confirmed for that round."""
        reads, answers = self._purgatory.end_round(token)
        self._answer_all(answers, self._outcome_unknown())
        for on_outcome in reads:
            on_outcome(None)

    # ------------------------------------------------------------------ publishing

    def _publish(self, before: MetadataImage) -> None:
        """Tell everyone of the new image, if there is one.

        Bytes of an open metadata transaction wait here until the image contains them.
        """
        after = self._machine.image
        if after is before:
            return
        end_offset = after.provenance.end_offset
        data = self._unpublished
        self._unpublished = []
        if end_offset != self._unpublished_end:
            whole = b"".join(data)
            cut = position_of(whole, end_offset)
            data = [whole[:cut]]
            self._unpublished.append(whole[cut:])
        self.checkpoint.applied(sum(map(len, data)))
        self._subscribers.notify(Published(before, after, tuple(data)))
        self._purgatory.release(end_offset)
        self._offset_purgatory.release(end_offset)

    def _set_fault(self, fault: QuorateError | None) -> None:
        self.fault = fault
        self._proposer.is_halted = fault is not None

    def _stop_replay(self, error: QuorateError) -> None:
        """A committed record cannot be applied: keep the image, serve reads, do not lead."""
        self._set_fault(error)
        self._on_fault(f"replay stopped at {self._machine.end_offset}: {error}")
        self._on_replay(str(error))

    # ------------------------------------------------------------------ losing leadership

    def _step_down(self) -> None:
        self._proposer.step_down()
        before = self._machine.image
        groups = list(self._uncommitted_image.groups)
        try:
            self._uncommitted_image.drop(is_replayed=self.fault is None)
        except _STOPS_REPLAY as error:
            self._stop_replay(error)
        self._publish(before)
        end_offset = self._machine.image.provenance.end_offset
        for group in groups:
            for pending, is_final in group.survivors(end_offset):
                if not is_final:
                    pending.answer = self._outcome_unknown()
            self._delivery.send(group.answers)
        self._fail_held()

    def _fail_held(self) -> None:
        # Reads stay: of each round the core tells what became of it.
        self._answer_all(self._purgatory.take_answers(), self._outcome_unknown())

    def _refuse_waiting(self) -> None:
        """Commands that no group has taken in: nothing of them was appended."""
        self._answer_all(self._proposer.take_queue(), self._not_leader())
        self._fail_held()

    def _answer_all(self, waiting: Sequence[PendingCommand], answer: Answer) -> None:
        for pending in waiting:
            pending.answer = answer
        self._delivery.send(waiting)

    def _not_leader(self) -> Answer:
        return Answer(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "this node does not lead the quorum",
            epoch=self._log.node.epoch,
            leader_hint=self._leader_id,
        )

    def _outcome_unknown(self) -> Answer:
        return Answer(
            ErrorCode.OUTCOME_UNKNOWN,
            "leadership was lost before the outcome was known; "
            "retry under the same sequence number",
            epoch=self._log.node.epoch,
            leader_hint=self._leader_id,
        )


def _nothing_to_cancel() -> None:
    """The wait is over already."""
