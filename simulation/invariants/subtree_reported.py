"""A relay reports the lowest position in its subtree to its source (630.5; ADR 27)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.invariants.fetch_positions import FetchPositions
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class SubtreeReported(Invariant):
    """The reported position is at most what any replica needs that the relay had answered before.

    *Before* is at its last report: a report is created up to one disk pass before it is sent, so a
    replica that arrives meanwhile is in the next one. A replica certainly counts as live for half a
    session.

    A restarted relay continues to report the position from the end of its last incarnation for the
    same time. Positions below its log start do not count.

    A node that was on the relay's route in this incarnation is left out: it was above the relay,
    and is in its subtree again only with its next request, which may be in flight.
    """

    name = "subtree-reported"
    sent_kinds = FetchPositions.KINDS

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.positions = FetchPositions(run_observer, _is_relay)
        self.above: dict[NodeId, set[NodeId]] = {}
        self.due: dict[tuple[NodeId, NodeId], int] = {}
        """By relay and observer: when, by the relay's clock, it was known for the next report."""
        self.former: dict[NodeId, tuple[int, int]] = {}
        """Position needed in a relay's subtree when its last incarnation ended, and its expiry."""
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
                "a restarted relay does not report the position that its subtree needs",
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
                "a relay reports a position above the need of its subtree",
                relay=seen.id,
                observer=node_id,
                needs=needed,
                reported=subtree,
            )


def _is_relay(seen: Seen) -> bool:
    core = seen.replica.node._core  # noqa: SLF001
    return core.relay is not None and not core.is_voter
