"""A node names to clients only addresses that the leader itself or its record gave (ADR 52)."""

from __future__ import annotations

from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen

_Addresses = tuple[NodeId, tuple[str, ...]]


class LeaderAddresses(Invariant):
    """No node sends clients to an address that only a stranger named, with the record or without.

    Clients go where the answer of any node sends them.
    """

    name = "leader-addresses"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.own: dict[NodeId, set[str]] = {}
        """The addresses that each node has had, in any process run."""
        self.known: dict[NodeId, _Addresses] = {}
        """The leader and its addresses that each node knew after its last step."""

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        own = self.own.setdefault(seen.id, set())
        own.update(each.address for each in seen.replica.config.endpoints)
        self.known.pop(seen.id, None)

    def on_stepped(self, seen: Seen) -> None:
        now = seen.replica.driver.addresses.leader
        if now is self.known.get(seen.id):
            return
        self.known[seen.id] = now
        leader_id, addresses = now
        wrong = {*addresses} - {*_recorded(seen, leader_id)} - self.own.get(leader_id, set())
        if wrong:
            self.fail(
                "a node took an address from a stranger for its leader's",
                node=seen.id,
                leader=leader_id,
                addresses=sorted(wrong),
            )


def _recorded(seen: Seen, leader_id: NodeId) -> list[str]:
    return [
        place.address
        for voter in seen.replica.node.voters
        if voter.key.id == leader_id
        for place in voter.endpoints
    ]
