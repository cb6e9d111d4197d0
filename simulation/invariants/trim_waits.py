"""A leader keeps its log for live replicas and their subtrees, for a limited time (630.5)."""

from __future__ import annotations

from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.invariants.fetch_positions import FetchPositions
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class TrimWaits(Invariant):
    """The log start passes the position of a live replica only after the allowed delay.

    Every replica that fetched from this process counts, also in an earlier leadership term: a new
    term waits for a session, so that every replica has time to fetch again. A replica below the log
    start needs a checkpoint, and nothing of the log.
    """

    name = "trim-waits"
    sent_kinds = FetchPositions.KINDS

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.positions = FetchPositions(run_observer, lambda seen: seen.replica.node.is_leader)
        self.starts: dict[NodeId, tuple[Seen | None, int, int]] = {}
        """By leader: its incarnation, epoch and log start at the last check."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        self.positions.sent(seen, to, message)

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        if not node.is_leader:
            return
        start = node.log_start
        incarnation, epoch, before = self.starts.get(seen.id, (None, 0, 0))
        self.starts[seen.id] = (seen, node.epoch, start.offset)
        if incarnation is seen and epoch == node.epoch and start.offset > before:
            self._trimmed(seen, before, start.offset)

    def _trimmed(self, seen: Seen, before: int, start: int) -> None:
        core = seen.replica.node._core  # noqa: SLF001
        config = core.config
        for snapshot_id in core.snapshots.ids:
            indexed = core.snapshots.get(snapshot_id)
            if snapshot_id.offset == start and indexed is not None:
                if core.now_ms - indexed.since_ms >= config.start_offset_lag_max_ms:
                    return
                break
        for node_id, needed in self.positions.below(seen, config.observer_session_ms, core.now_ms):
            self.require(
                start <= needed or needed < before,
                "the log was trimmed too early: a live replica still needs it",
                leader=seen.id,
                replica=node_id,
                needs=needed,
                log_start=start,
            )
