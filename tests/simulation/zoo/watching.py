"""Broken replicas whose watchers miss a change, or get one too early."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import cast

from quorate.client.batches import LogRecord
from quorate.client.errors import OffsetOutOfRangeError, RefusedError
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.queries import EARLIEST_TIMESTAMP
from quorate.controller.controller import Controller
from quorate.controller.publishing import Published, Subscribers
from quorate.replica.log_facts import LogFacts
from quorate.services import log_range, log_reads
from quorate.services.log_range import LogRange
from quorate.services.watch_cursor import WatchCursor
from quorum.batch import scan_batches
from quorum.core.contract.output import LeadershipChanged
from quorum.log_position import Divergence, Lineage, LogPosition
from quorum.v1.errors_pb2 import DivergenceHint
from simulation.options import Options
from statemachine.image import MetadataImage
from tests.simulation.experiments.lost_histories import LOST_HISTORIES
from tests.simulation.zoo.bug import Bug, Patch


def checkpoint_taken_without_a_word(patch: Patch) -> None:
    """Watchers get no event when a checkpoint has replaced the image."""
    notify = Subscribers.notify

    def report_records_only(subscribers: Subscribers, published: Published) -> None:
        if published.snapshot_id is None:
            notify(subscribers, published)

    patch.setattr(Subscribers, "notify", report_records_only)


def progress_ahead_of_records(patch: Patch) -> None:
    """Watchers get a progress event before the last record below its position."""
    notify = Subscribers.notify

    def report_early(subscribers: Subscribers, published: Published) -> None:
        data = b"".join(published.data)
        headers = scan_batches(data)
        if len(headers) > 1:
            published = replace(published, data=(data[: -headers[-1].size],))
        notify(subscribers, published)

    patch.setattr(Subscribers, "notify", report_early)


def records_reported_twice(patch: Patch) -> None:
    """Watchers get the last committed records a second time when leadership changes."""
    on_leadership = Controller.on_leadership
    notify = Subscribers.notify
    newest: dict[int, Published] = {}

    def remember(subscribers: Subscribers, published: Published) -> None:
        newest[id(subscribers)] = published
        notify(subscribers, published)

    def repeat(controller: Controller, change: LeadershipChanged) -> None:
        on_leadership(controller, change)
        last = newest.get(id(controller._subscribers))
        if last is not None:
            notify(controller._subscribers, last)

    patch.setattr(Subscribers, "notify", remember)
    patch.setattr(Controller, "on_leadership", repeat)


def present_state_at_the_checkpoints_offset(patch: Patch) -> None:
    """A consumer below the log start gets the present state, and reads on from the checkpoint."""
    checkpoint_reading = LogFacts.checkpoint_reading

    def read_present(node: LogFacts, at_least_offset: int) -> Callable[[], MetadataImage | None]:
        found = checkpoint_reading(node, at_least_offset)()
        present = node.image
        mixed = None if found is None else replace(present, provenance=found.provenance)
        return lambda: mixed

    patch.setattr(LogFacts, "checkpoint_reading", read_present)


def watch_resumed_at_the_end(patch: Patch) -> None:
    """A resumed watch continues with new records and skips those that its watcher missed."""

    def resume(cursor: WatchCursor, offset: int, epoch: int) -> None:
        position = cursor._node.image.provenance
        cursor.offset = max(offset, position.end_offset)
        cursor.epoch = epoch

    patch.setattr(WatchCursor, "resume", resume)


def watch_above_the_high_watermark(patch: Patch) -> None:
    """Watchers get records of the log that are not committed."""
    patch.setattr(
        WatchCursor, "visible_end", staticmethod(lambda node: cast("int", node.log_end.offset))
    )


def watch_goes_on_behind_an_install(patch: Patch) -> None:
    """A watch whose offset was trimmed continues at the log start without an event."""

    def jump(cursor: WatchCursor) -> None:
        cursor.offset = max(cursor.offset, cursor._node.log_start.offset)

    patch.setattr(WatchCursor, "check_kept", jump)


def replaced_leader_evaluates_watchers(patch: Patch) -> None:
    """A leader reports divergence for records of an epoch above its own."""
    check_position = LogRange.check_position

    def evaluate(range_: LogRange, offset: int, last_epoch: int) -> DivergenceHint | None:
        node = range_._node
        if node.is_leader and last_epoch > node.leadership.epoch:
            end = node.log_end
            return DivergenceHint(epoch=end.epoch, offset=min(end.offset, offset))
        return check_position(range_, offset, last_epoch)

    patch.setattr(LogRange, "check_position", evaluate)


def replaced_leader_answers_lookups(patch: Patch) -> None:
    """A leader answers a lookup of an epoch above its own with its newest epoch's end."""
    patch.setattr(
        LogRange, "epoch_end", lambda range_, epoch: range_._node.end_offset_for_epoch(epoch)
    )
    patch.setattr(log_reads, "check_epoch", lambda node, current_leader_epoch: None)


def resets_not_fenced(patch: Patch) -> None:
    """A leader resets consumers to its own log's ends, although their epoch is above its own."""
    patch.setattr(log_range, "check_epoch_read", lambda node, last_epoch: None)
    patch.setattr(log_reads, "check_epoch", lambda node, current_leader_epoch: None)


def first_lookup_believed(patch: Patch) -> None:
    """A consumer with a diverged history seeks to the offset of the first epoch lookup."""

    def believe(
        lineage: Lineage, position: int, epoch: int, end_offset: int
    ) -> Generator[int, tuple[int, int], Divergence]:
        yield from ()
        return Divergence(min(end_offset, position), epoch, is_exact=True)

    patch.setattr(Lineage, "walk", believe)


def trimmed_records_skipped(patch: Patch) -> None:
    """A consumer below the log start goes on at the log start, and gets no state for the gap."""

    reset_position = LogConsumer._reset_position

    async def reset(consumer: LogConsumer, cause: OffsetOutOfRangeError) -> list[LogRecord]:
        if consumer._position is None or consumer._reset is not ResetPolicy.EARLIEST:
            return await reset_position(consumer, cause)
        found = await consumer._calls.list_offsets(EARLIEST_TIMESTAMP)
        consumer._move_to(LogPosition(found.offset))
        return []

    patch.setattr(LogConsumer, "_reset_position", reset)


def trimmed_history_called_cut(patch: Patch) -> None:
    """A consumer reports divergence where the log begins above its position, in a later epoch."""

    async def validate(consumer: LogConsumer, position: LogPosition) -> None:
        try:
            epoch, end_offset = await consumer._epoch_end(position.epoch)
        except RefusedError as error:
            consumer._meet_newer_leader(error)
            return
        if epoch < position.epoch or end_offset < position.offset:
            await consumer._resolve(position, (epoch, end_offset))
        consumer._must_validate = False

    patch.setattr(LogConsumer, "_validate", validate)


BUGS = (
    Bug(
        "present-state-at-the-checkpoints-offset",
        present_state_at_the_checkpoints_offset,
        ("checkpoint-states",),
        "320.5: a state in place of trimmed records is that of its offset",
    ),
    Bug(
        "watch-resumed-at-the-end",
        watch_resumed_at_the_end,
        ("history",),
        "Jepsen, etcd watch: changes missing behind a resume",
    ),
    Bug(
        "watch-above-the-high-watermark",
        watch_above_the_high_watermark,
        ("watched-is-committed",),
        "KIP-595: consumers see only what is committed",
    ),
    Bug(
        "watch-goes-on-behind-an-install",
        watch_goes_on_behind_an_install,
        ("history", "watch-served"),
        "etcd #17529, #18089: a watch skips what was compacted",
    ),
    Bug(
        "replaced-leader-evaluates-watchers",
        replaced_leader_evaluates_watchers,
        ("history",),
        "KIP-320: a stale leader's answer taken for a truncation",
        options=Options("network"),
    ),
    Bug(
        "replaced-leader-answers-lookups",
        replaced_leader_answers_lookups,
        ("log-consumers", "history"),
        "KIP-320: a consumer asks a leader that is behind it",
        options=Options("network"),
    ),
    Bug(
        "resets-not-fenced",
        resets_not_fenced,
        ("log-consumers", "history"),
        "found from outside: a consumer went back without an error",
        options=Options("network"),
    ),
    Bug(
        "first-lookup-believed",
        first_lookup_believed,
        ("divergence-located",),
        "KIP-279, for a consumer; found from outside: offset 4 instead of 2",
        experiment=LOST_HISTORIES,
    ),
    Bug(
        "trimmed-records-skipped",
        trimmed_records_skipped,
        ("log-consumers",),
        "320.5: a consumer below the log start gets the state, never a silent gap",
        options=Options("network"),
    ),
    Bug(
        "trimmed-history-called-cut",
        trimmed_history_called_cut,
        ("log-consumers",),
        "found by the simulation: a false LogTruncationError",
        options=Options("network"),
    ),
    Bug(
        "checkpoint-taken-without-a-word",
        checkpoint_taken_without_a_word,
        ("watch-is-prefix", "liveness"),
        "etcd #17529, #18089, #19179: a watch skips what was compacted",
    ),
    Bug(
        "progress-ahead-of-records",
        progress_ahead_of_records,
        ("watch-is-prefix",),
        "etcd #15220",
    ),
    Bug(
        "records-reported-twice",
        records_reported_twice,
        ("watch-is-prefix",),
        "etcd #18089; Jepsen, NATS: repeated deliveries",
    ),
)
