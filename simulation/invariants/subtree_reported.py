"""A relay tells its own source the lowest position below it (630.5; ADR 27)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.invariants.fetch_positions import FetchPositions
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class SubtreeReported(Invariant):
    """What it reports is not above the need of anybody whom it had answered when it last reported.

    A report is written up to one pass of the disk before it leaves, so who comes meanwhile is in
    the next. Half a session is how long somebody certainly counts as live.

    A relay that has started again goes on to report what was needed at the end of its last life,
    for as long. Below its log start nothing is left to be kept.

    Left out is who has stood between it and the leader in this life: that was above it, and comes
    to be below again when it next asks, which may be on its way.
    """

    name = "subtree-reported"
    sent_kinds = FetchPositions.KINDS

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.positions = FetchPositions(run_observer, _is_relay)
        self.above: dict[NodeId, set[NodeId]] = {}
        self.due: dict[tuple[NodeId, NodeId], int] = {}
        """Relay and observer, and when, by the relay's clock, that was there for a next report."""
        self.former: dict[NodeId, tuple[int, int]] = {}
        """What was needed below a relay when its last life ended, and until when that counts."""
        self.reports = 0

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        self._remember(seen, before)
        self.above[seen.id] = set()
        self.due = {key: at_ms for key, at_ms in self.due.items() if key[0] != seen.id}

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is FetchRequest and _is_relay(seen):
            self._check(seen, to, message)
        elif type(message) is FetchResponse and message.path:
            self.above.setdefault(to, set()).update(key.id for key in message.path)
        self.positions.sent(seen, to, message)

    def _remember(self, seen: Seen, before: Seen | None) -> None:
        self.former.pop(seen.id, None)
        if before is None or not _is_relay(before) or not seen.written.end_offset:
            return
        core = before.replica.node._core  # noqa: SLF001
        live_ms, above = core.config.observer_session_ms // 2, self.above[seen.id]
        below = self.positions.below(before, live_ms, core.now_ms)
        needs = [needed for node_id, needed in below if node_id not in above]
        if needs:
            self.former[seen.id] = (min(needs), seen.now_ms() + live_ms)

    def _check(self, seen: Seen, to: NodeId, message: FetchRequest) -> None:
        core = seen.replica.node._core  # noqa: SLF001
        above = self.above[seen.id]
        subtree = message.subtree
        self.reports += subtree is not None
        live_ms, now_ms = core.config.observer_session_ms // 2, core.now_ms
        needed, until_ms = self.former.get(seen.id, (0, 0))
        if now_ms < until_ms:
            self.require(
                subtree is not None and subtree.low <= max(needed, core.log.start.offset),
                "a relay has forgotten in a restart what is needed below it",
                relay=seen.id,
                needs=needed,
                reported=subtree,
            )
        for node_id, needed in self.positions.below(seen, live_ms, now_ms):
            due_ms = self.due.get((seen.id, node_id))
            self.due[seen.id, node_id] = now_ms
            if node_id in above or due_ms is None or now_ms - due_ms >= live_ms:
                continue
            self.require(
                subtree is not None and subtree.low <= needed,
                "a relay reports less than is needed below it",
                relay=seen.id,
                observer=node_id,
                needs=needed,
                reported=subtree,
            )


def _is_relay(seen: Seen) -> bool:
    core = seen.replica.node._core  # noqa: SLF001
    return core.relay is not None and not core.is_voter
