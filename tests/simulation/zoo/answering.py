"""Broken replicas that give clients answers that are wrong or too early."""

from __future__ import annotations

from collections.abc import Container, Iterator
from types import SimpleNamespace
from typing import Any

from quorate.controller.controller import Controller
from quorate.controller.group import GroupFormer
from quorate.controller.ports import LogDriver
from quorate.controller.proposed_group import Group
from quorate.controller.proposer import Proposer
from quorate.controller.requests import PendingCommand
from quorate.controller.uncommitted_image import UncommittedImage
from quorum.core.leadership import leadership_term
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from statemachine import producers
from statemachine.producers import Duplicate, Fresh, SequenceClaim
from statemachine.sections.producer_state import ProducerState
from statemachine.sessions import BrokerGeneration
from tests.simulation.zoo.bug import Bug, Patch


def answer_before_commit(patch: Patch) -> None:
    """A leader answers a write as soon as it has appended it."""
    append = Proposer._append

    def append_and_answer(
        proposer: Proposer, former: GroupFormer, now_ms: int, *, must_replay: bool = False
    ) -> None:
        answers = list(former.answers)
        former.answers.clear()
        append(proposer, former, now_ms, must_replay=must_replay)
        for pending in answers:
            pending.on_answers([pending])

    patch.setattr(Proposer, "_append", append_and_answer)


def duplicate_answered_before_commit(patch: Patch) -> None:
    """A repeated command gets its first answer at once, although it is not committed yet."""
    evaluate = GroupFormer.evaluate

    def evaluate_and_repeat(
        former: GroupFormer, pending: PendingCommand, *, may_wait: bool = True
    ) -> BrokerGeneration | None:
        leaving = evaluate(former, pending, may_wait=may_wait)
        if leaving is None and former.answers[-1].is_repeat:
            former.answers.pop()
            pending.on_answers([pending])
        return leaving

    patch.setattr(GroupFormer, "evaluate", evaluate_and_repeat)


def open_writes_called_done(patch: Patch) -> None:
    """A deposed leader answers open writes as successful."""

    def survivors(self: Group, end_offset: int) -> Iterator[tuple[PendingCommand, bool]]:
        for pending in self.answers:
            yield pending, True

    patch.setattr(Group, "survivors", survivors)


def writes_evaluated_before_the_log_is_applied(patch: Patch) -> None:
    """A new leader evaluates writes before records of earlier epochs are committed and applied."""
    establish = leadership_term.establish

    def establish_and_write(core: CoreState, leader: Leader) -> None:
        establish(core, leader)
        leader.can_write = True
        core.announce_leadership()

    patch.setattr(leadership_term, "establish", establish_and_write)


def expectations_kept_after_losing_leadership(patch: Patch) -> None:
    """A deposed leader keeps its uncommitted image."""

    def keep(uncommitted_image: UncommittedImage, *, is_replayed: bool) -> None:
        del uncommitted_image, is_replayed

    patch.setattr(UncommittedImage, "drop", keep)


def only_the_last_sequence_known(patch: Patch) -> None:
    """Only a producer's newest answer is stored; a repeat of an older command counts as new."""
    evaluate_in_epoch = producers._evaluate_in_epoch

    def evaluate_by_last(
        state: ProducerState, claim: SequenceClaim, window: int, unused: Container[int]
    ) -> Fresh | Duplicate:
        if claim.sequence < state.last_sequence:
            return Fresh()
        return evaluate_in_epoch(state, claim, window, unused)

    patch.setattr(producers, "_evaluate_in_epoch", evaluate_by_last)


def stamps_follow_the_wall_clock(patch: Patch) -> None:
    """Records get the time of the wall clock, even after it was set back."""
    begin_group = Proposer._begin_group

    def begin_at_wall_time(proposer: Proposer, now_ms: int, wall_ms: int) -> GroupFormer:
        former = begin_group(proposer, now_ms, wall_ms)
        former.timestamp_ms = wall_ms
        return former

    patch.setattr(Proposer, "_begin_group", begin_at_wall_time)


def stamps_below_control_batches(patch: Patch) -> None:
    """Timestamps of writes ignore the quorum's own uncommitted batches."""

    class Blind:
        """The log without the stamps of control batches."""

        controls = SimpleNamespace(newest_stamp_ms=0)

        def __init__(self, log: LogDriver) -> None:
            self._log = log

        def __getattr__(self, name: str) -> Any:
            return getattr(self._log, name)

    attach = Controller.attach

    def attach_blind(controller: Controller, log: LogDriver) -> None:
        attach(controller, log)
        controller._proposer.log = Blind(log)  # type: ignore[assignment]

    patch.setattr(Controller, "attach", attach_blind)


BUGS = (
    Bug(
        "answer-before-commit",
        answer_before_commit,
        ("acknowledged-survives",),
        "Raft 5.3; MongoDB w:1 (Jepsen)",
    ),
    Bug(
        "duplicate-answered-before-commit",
        duplicate_answered_before_commit,
        ("acknowledged-survives",),
        "Raft 8; dissertation 6.3",
    ),
    Bug(
        "open-writes-called-done",
        open_writes_called_done,
        ("acknowledged-survives", "confirmed-reads"),
        "Redpanda 21.10 (Jepsen)",
    ),
    Bug(
        "writes-evaluated-before-the-log-is-applied",
        writes_evaluated_before_the_log_is_applied,
        ("confirmed-reads", "no-crash", "acknowledged-survives", "unique-ids", "history"),
        "Raft 8: a leader must commit in its term first",
        seeds=1_000,
    ),
    Bug(
        "expectations-kept-after-losing-leadership",
        expectations_kept_after_losing_leadership,
        ("acknowledged-survives", "no-crash", "equal-images", "liveness", "dedupe-table"),
        "ADR 10",
        seeds=1_000,
    ),
    Bug(
        "only-the-last-sequence-known",
        only_the_last_sequence_known,
        ("no-crash", "acknowledged-survives", "client-served"),
        "KAFKA-5494: more than one request in flight",
    ),
    Bug(
        "stamps-follow-the-wall-clock",
        stamps_follow_the_wall_clock,
        ("timestamps-rise",),
        "requirements 360.5; CockroachDB clock jumps (Jepsen)",
    ),
    Bug(
        "stamps-below-control-batches",
        stamps_below_control_batches,
        ("timestamps-rise",),
        "found by the simulation: a voter change and a clock that was set back",
        scenario="membership/stamps_rise_over_a_change.scn",
    ),
)
