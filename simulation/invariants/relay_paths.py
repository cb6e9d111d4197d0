"""Every response of a relay names the whole route to the leader, without a loop (ADR 27)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen

_Route = tuple[int, tuple[ReplicaKey, ...]]


class RelayPaths(Invariant):
    """The route is the relay itself plus a route that it received in this incarnation and epoch.

    No node on the route is served, and the route is no longer than configured. Counts the events
    that a run must contain.
    """

    name = "relay-paths"
    sent_kinds = (FetchResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.routes: dict[NodeId, set[_Route]] = {}
        self.answers = 0
        self.chained = 0
        """Responses through more than one relay."""
        self.refusals = 0
        """Refusals of a node on the relay's own route, or behind too many relays."""

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        self.routes[seen.id] = set()

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse:
            return
        if message.error != ErrorCode.NONE:
            self.refusals += message.error == ErrorCode.INELIGIBLE_REPLICA
            return
        path = message.path
        self.routes.setdefault(to, set()).add((message.epoch, path))
        if not path:
            return
        self.answers += 1
        self.chained += len(path) > 1
        text = ">".join(str(key.id) for key in path)
        self.require(
            path[0].id == seen.id and (message.epoch, path[1:]) in self.routes[seen.id],
            "a relay names a route that it never received",
            relay=seen.id,
            to=to,
            route=text,
            epoch=message.epoch,
        )
        self.require(
            all(key.id != to for key in path),
            "a relay serves a node on its own route",
            relay=seen.id,
            to=to,
            route=text,
        )
        hops_max = seen.replica.node._core.config.relay_hops_max  # noqa: SLF001
        self.require(
            len(path) <= hops_max,
            "a route is longer than configured",
            relay=seen.id,
            to=to,
            route=text,
        )
