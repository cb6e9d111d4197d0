"""Every answer of a relay names the whole way to the leader, and none goes in a circle (ADR 27)."""

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
    """The way is the relay itself and a way that it was answered along in this life and epoch.

    Nobody on it is served, and it is no longer than the configuration allows. Keeps count of what
    a lane asks for.
    """

    name = "relay-paths"
    sent_kinds = (FetchResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.routes: dict[NodeId, set[_Route]] = {}
        self.answers = 0
        self.chained = 0
        """Answers through more than one relay."""
        self.refusals = 0
        """Of somebody whom a relay fetches through itself, or behind too many."""

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
            "a relay names another way than it was answered along",
            relay=seen.id,
            to=to,
            route=text,
            epoch=message.epoch,
        )
        self.require(
            all(key.id != to for key in path),
            "a relay serves whom it fetches through",
            relay=seen.id,
            to=to,
            route=text,
        )
        hops_max = seen.replica.node._core.config.relay_hops_max  # noqa: SLF001
        self.require(
            len(path) <= hops_max,
            "a longer chain than is allowed",
            relay=seen.id,
            to=to,
            route=text,
        )
