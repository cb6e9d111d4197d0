"""Broken replicas that take too long, or for ever, to replace a silent leader."""

from __future__ import annotations

from quorum.core.election import voting
from quorum.core.following import fetching, leader_search
from quorum.core.node import deadlines
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import InFlight
from quorum.types import NodeId
from tests.simulation.experiments.silence import DISTANT_OBSERVERS, FAR_APART
from tests.simulation.zoo.bug import Bug, Patch


def fetch_timers_in_lockstep(patch: Patch) -> None:
    """Fetch timers of all followers expire together, and no candidate yields to another."""
    patch.setattr(CoreState, "random_fetch_timeout", lambda core: core.config.fetch_timeout_ms)
    patch.setattr(voting, "_goes_first", lambda core, request: False)


def search_gives_way_to_the_leader(patch: Patch) -> None:
    """A search for the leader is dropped when the silent leader may be asked again."""

    def drop(core: CoreState, flight: InFlight) -> None:
        del flight
        core.requests.end_flight()

    patch.setattr(fetching, "set_search_aside", drop)


def bootstrap_servers_only(patch: Patch) -> None:
    """An observer asks only its bootstrap servers for the leader, never the voters of its log."""

    def peers(core: CoreState) -> tuple[NodeId, ...]:
        return core.following.bootstrap_servers or core.voters.latest.ids

    for module in (leader_search, deadlines):
        patch.setattr(module, "discovery_peers", peers)


BUGS = (
    Bug(
        "fetch-timers-in-lockstep",
        fetch_timers_in_lockstep,
        ("silent-death",),
        "found from outside: 4 of 8 silent deaths split the vote; Raft 5.2, randomised timeouts",
        experiment=FAR_APART,
    ),
    Bug(
        "search-gives-way-to-the-leader",
        search_gives_way_to_the_leader,
        ("silent-death",),
        "found from outside: an observer 320 ms away never finds a new leader",
        experiment=DISTANT_OBSERVERS,
    ),
    Bug(
        "bootstrap-servers-only",
        bootstrap_servers_only,
        ("silent-death",),
        "found from outside: an observer whose bootstrap servers were replaced",
        experiment=DISTANT_OBSERVERS,
    ),
)
