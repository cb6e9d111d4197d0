"""Broken recoveries: two histories of one cluster are mixed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.client import log_consumer
from quorate.client.batches import LogRecord
from quorate.client.errors import LogTruncationError
from quorate.client.log_consumer import LogConsumer
from quorate.client.results.metadata import FetchLogResponse
from quorate.client.watch import Watch
from quorate.controller.group import GroupFormer
from quorate.controller.requests import NO_PRODUCER, PendingCommand
from quorate.services.log_range import LogRange
from quorate.services.watch_cursor import WatchCursor
from quorum.core.following import snapshot_install
from quorum.core.messages.received_records import VotersAt
from quorum.core.state.core_state import CoreState
from quorum.incarnation import FIRST_INCARNATION
from quorum.log_position import Divergence, Lineage, LogPosition
from quorum.transport import hello
from quorum.types import SnapshotId
from quorum.v1.errors_pb2 import DivergenceHint
from quorum.v1.metadata_pb2 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from simulation.recoveries.process import PROCESSED_ONCE, ZOMBIE
from simulation.recoveries.read_history import FALSE_ALARM, INEXACT, SKIPPED
from statemachine import prepare
from statemachine.commands import WithPosition
from statemachine.prepare import Prepared, positions
from statemachine.sessions import BrokerGeneration
from tests.simulation.experiments.recovered_cluster import RECOVERED_CLUSTER
from tests.simulation.experiments.recoveries import RECOVERIES
from tests.simulation.zoo.bug import Bug, Patch


def former_voters_are_met(patch: Patch) -> None:
    """A node talks to peers of another incarnation of the log."""
    patch.setattr(hello, "is_other_log", lambda ours, theirs: False)


def incarnation_forgotten_at_snapshot_install(patch: Patch) -> None:
    """A replica that installs a checkpoint forgets the incarnation of the log."""
    replace_log = snapshot_install.replace_log

    def replace_and_forget(
        core: CoreState, snapshot_id: SnapshotId, voters: tuple[VotersAt, ...]
    ) -> None:
        forgotten = tuple(replace(each, incarnation=FIRST_INCARNATION) for each in voters)
        replace_log(core, snapshot_id, forgotten)

    patch.setattr(snapshot_install, "replace_log", replace_and_forget)


def first_batch_behind_a_truncation_dropped(patch: Patch) -> None:
    """A consumer does not hand out the batch that took the place of the first lost record."""
    settle, advance = LogConsumer._settle, LogConsumer._advance
    moved: set[int] = set()

    async def settled(consumer: LogConsumer, position: LogPosition, found: Divergence) -> None:
        await settle(consumer, position, found)
        moved.add(id(consumer))

    def advanced(
        consumer: LogConsumer, position: LogPosition, response: FetchLogResponse
    ) -> list[LogRecord]:
        records = advance(consumer, position, response)
        if records and id(consumer) in moved:
            moved.discard(id(consumer))
            return records[1:]
        return records

    patch.setattr(LogConsumer, "_settle", settled)
    patch.setattr(LogConsumer, "_advance", advanced)


def first_answer_taken_for_the_truncation(patch: Patch) -> None:
    """A consumer takes the end of the leader's epoch for the truncation, and does not walk on."""

    async def find(
        _lineage: Lineage, position: int, answer: tuple[int, int], *_: object
    ) -> Divergence:
        return Divergence(min(position, answer[1] + 1), answer[0], is_exact=True)

    patch.setattr(log_consumer, "find_divergence", find)


def former_incarnation_read_after_a_restart(patch: Patch) -> None:
    """A stored position forgets the newest incarnation that its reader has met."""
    from_dict = LogPosition.from_dict

    def forgetful(found: dict[str, Any]) -> LogPosition:
        return replace(from_dict(found), newest_incarnation=0)

    patch.setattr(LogPosition, "from_dict", forgetful)


def lagging_replica_calls_it_truncated(patch: Patch) -> None:
    """A replica reports a divergence to a consumer that has read further than it."""
    check_position = LogRange.check_position

    def check(log: LogRange, offset: int, last_epoch: int) -> DivergenceHint | None:
        node = log._node
        if not node.is_leader and 0 <= node.high_watermark < offset:
            return DivergenceHint(epoch=node.log_end.epoch, offset=node.high_watermark)
        return check_position(log, offset, last_epoch)

    patch.setattr(LogRange, "check_position", check)


def watch_resumed_without_a_word(patch: Patch) -> None:
    """A node of a recovered cluster resumes a watch, and does not compare what it has read."""
    resume = WatchCursor.resume

    def resume_unchecked(cursor: WatchCursor, offset: int, epoch: int) -> None:
        if cursor._node.log_incarnation.number:
            cursor.offset, cursor.epoch = offset, epoch
        else:
            resume(cursor, offset, epoch)

    patch.setattr(WatchCursor, "resume", resume_unchecked)


def watch_goes_on_at_the_first_answer(patch: Patch) -> None:
    """A watch reports a truncation where the node that refused it said, and asks no further."""

    async def located(_: Watch, failure: LogTruncationError) -> LogTruncationError:
        return failure

    patch.setattr(Watch, "_located", located)


def watch_forgets_where_it_was_cut(patch: Patch) -> None:
    """A watch does not note the incarnation of the leader that says what it has lost."""
    ask = Watch._ask

    async def ask_and_forget(
        watch: Watch, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        before = watch._newest.number
        answer = await ask(watch, request)
        watch._newest.number = before
        return answer

    patch.setattr(Watch, "_ask", ask_and_forget)


def position_written_apart(patch: Patch) -> None:
    """A command is written without the position that it carries."""

    def with_position(prepared: Prepared, committed: Prepared) -> Prepared:
        return prepared if prepared.records else committed

    patch.setattr(prepare, "with_position", with_position)


def position_of_a_former_incarnation_committed(patch: Patch) -> None:
    """A program that has read what is gone commits the position behind it."""
    patch.setattr(positions, "_check_incarnation", lambda command, context: None)


def former_process_writes_on(patch: Patch) -> None:
    """A leader evaluates a command with an older producer epoch as one without a number."""
    evaluate = GroupFormer.evaluate

    def lenient(
        former: GroupFormer, pending: PendingCommand, *, may_wait: bool = True
    ) -> BrokerGeneration | None:
        context = pending.context
        state = former.delta.producers.states.get(context.producer_id)
        if type(pending.command) is WithPosition and state and context.producer_epoch < state.epoch:
            context.producer_id = NO_PRODUCER
        return evaluate(former, pending, may_wait=may_wait)

    patch.setattr(GroupFormer, "evaluate", lenient)


BUGS = (
    Bug(
        "first-batch-behind-a-truncation-dropped",
        first_batch_behind_a_truncation_dropped,
        (SKIPPED,),
        "320.4: after a truncation, reading goes on at the first lost record",
        experiment=RECOVERIES,
    ),
    Bug(
        "first-answer-taken-for-the-truncation",
        first_answer_taken_for_the_truncation,
        (INEXACT,),
        "279.2: the walk ends where both have the epoch",
        experiment=RECOVERIES,
    ),
    Bug(
        "former-incarnation-read-after-a-restart",
        former_incarnation_read_after_a_restart,
        (SKIPPED,),
        "ADR 65: a reader never goes back to an older incarnation than one it has met",
        experiment=RECOVERIES,
    ),
    Bug(
        "lagging-replica-calls-it-truncated",
        lagging_replica_calls_it_truncated,
        (FALSE_ALARM,),
        "320.4: a replica that is merely behind never calls a consumer diverged",
        experiment=RECOVERIES,
    ),
    Bug(
        "watch-resumed-without-a-word",
        watch_resumed_without_a_word,
        (SKIPPED,),
        "320.9: a watch is compared with a new incarnation of the log",
        experiment=RECOVERIES,
    ),
    Bug(
        "watch-goes-on-at-the-first-answer",
        watch_goes_on_at_the_first_answer,
        (INEXACT,),
        "320.9, 279.2: a watch locates a truncation as a consumer does",
        experiment=RECOVERIES,
    ),
    Bug(
        "watch-forgets-where-it-was-cut",
        watch_forgets_where_it_was_cut,
        (SKIPPED,),
        "ADR 65: a reader never goes back to an older incarnation than one it has met",
        experiment=RECOVERIES,
    ),
    Bug(
        "position-written-apart",
        position_written_apart,
        (PROCESSED_ONCE,),
        "320.6: a command and its position are one batch",
        experiment=RECOVERIES,
    ),
    Bug(
        "position-of-a-former-incarnation-committed",
        position_of_a_former_incarnation_committed,
        (PROCESSED_ONCE, ZOMBIE),
        "ADR 65: what follows from lost records must not be written",
        experiment=RECOVERIES,
    ),
    Bug(
        "former-process-writes-on",
        former_process_writes_on,
        (ZOMBIE,),
        "KIP-447: a zombie's write is refused by the producer epoch",
        experiment=RECOVERIES,
    ),
    Bug(
        "former-voters-are-met",
        former_voters_are_met,
        ("incarnations", "liveness"),
        "ADR 65; etcd: a member of before --force-new-cluster comes back",
        experiment=RECOVERED_CLUSTER,
    ),
    Bug(
        "incarnation-forgotten-at-snapshot-install",
        incarnation_forgotten_at_snapshot_install,
        ("incarnations",),
        "ADR 65: the incarnation is part of the voter set, also in checkpoints",
        experiment=RECOVERED_CLUSTER,
    ),
)
