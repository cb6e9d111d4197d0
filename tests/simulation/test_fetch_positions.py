"""The positions of fetching replicas, as the run observer may assume them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse, Subtree
from quorum.errors import ErrorCode
from simulation.invariants.fetch_positions import FetchPositions
from simulation.invariants.run_observer import RunObserver
from tests.support.core_disk import key

LEADER, RELAY = 2, 13


class _World:
    """A leader that answers, and a relay that asks it."""

    def __init__(self) -> None:
        self.run_observer = RunObserver()
        self.leader = self.start(LEADER)
        self.relay = self.start(RELAY)
        self.positions = FetchPositions(self.run_observer, lambda seen: seen is self.leader)

    def start(self, node_id: int) -> Any:
        """A new process of a node."""
        core = SimpleNamespace(now_ms=1_000)
        seen = SimpleNamespace(
            id=node_id, is_up=True, replica=SimpleNamespace(node=SimpleNamespace(_core=core))
        )
        self.run_observer.nodes[node_id] = cast(Any, seen)
        return seen

    def ask(self, request_id: int, offset: int, low: int | None = None) -> None:
        """The relay's current process fetches; ``low`` is the position of its subtree."""
        subtree = None if low is None else Subtree(low, 1)
        request = FetchRequest(request_id, "c", key(RELAY), 1, offset, 1, subtree=subtree)
        self.positions.sent(self.relay, LEADER, request)

    def answer(self, request_id: int) -> None:
        self.positions.sent(self.leader, RELAY, FetchResponse(request_id, ErrorCode.NONE, 2, 1))

    @property
    def needs(self) -> list[tuple[int, int]]:
        """Return the known needs by replica."""
        return list(self.positions.below(self.leader, 1_000, 1_500))


def test_what_a_replica_asked_before_its_restart_may_arrive_late() -> None:
    """Goal: no violation for a late request of an earlier process.

    Such a request cannot be distinguished from one of the current process. It tells the leader that
    the relay needs nothing below 11, after the new process has reported that it needs 5.
    """
    world = _World()
    world.ask(1, 11)
    world.answer(1)
    assert world.needs == [(RELAY, 11)]
    world.relay = world.start(RELAY)
    world.ask(2, 11, low=5)
    world.answer(2)
    assert world.needs == []
    world.ask(3, 16, low=12)
    world.answer(3)
    assert world.needs == [(RELAY, 12)], "as far as before the restart, it counts again"


def test_a_source_that_started_again_takes_nothing_from_before() -> None:
    """Goal: requests to an earlier process of the source are not counted."""
    world = _World()
    world.ask(1, 11)
    world.answer(1)
    world.leader = world.start(LEADER)
    world.ask(2, 11, low=5)
    world.answer(2)
    assert world.needs == [(RELAY, 5)]
