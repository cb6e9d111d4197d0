"""Broken relays: observers that serve others, and serve or report the wrong things."""

from __future__ import annotations

from dataclasses import replace

from quorum.core.following import fetching, leader_search
from quorum.core.following.relaying import relay_to_ask, uses_relays
from quorum.core.messages.fetch_messages import FetchRequest, ServeRecords, Subtree
from quorum.core.replication import relay_serving
from quorum.core.replication.fetch_answers import records_up_to
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.relay_table import Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.types import Epoch, NodeId
from simulation.options import Options
from tests.simulation.zoo.bug import Bug, Patch

RELAYS = Options("relays")


def relay_serves_to_its_log_end(patch: Patch) -> None:
    """A relay serves all its records, including those that may still be truncated."""

    def all_records(core: CoreState, request: FetchRequest, _: int) -> ServeRecords | None:
        return records_up_to(core, request, core.log.end_offset)

    patch.setattr(relay_serving, "records_up_to", all_records)


def relay_names_itself_only(patch: Patch) -> None:
    """A relay omits the relays that it fetches through, so that a circle stays undetected."""
    patch.setattr(relay_serving, "path_of", lambda core: (core.me,))


def subtree_not_reported(patch: Patch) -> None:
    """A relay does not report the lowest offset that its observers need."""

    def refresh(relay: Relay) -> None:
        relay.subtree = None

    patch.setattr(Relay, "refresh", refresh)


def subtree_forgotten_in_a_restart(patch: Patch) -> None:
    """A restarted relay reports that it has no observers until they fetch again."""
    report = Relay.report

    def forgetful(relay: Relay, now_ms: int, epoch: Epoch, log_start: int) -> Subtree | None:
        relay.silent_until_ms = 0
        return report(relay, now_ms, epoch, log_start)

    patch.setattr(Relay, "report", forgetful)


def subtree_reported_as_own_end(patch: Patch) -> None:
    """A relay reports the furthest of its observers instead of the last one."""
    refresh = Relay.refresh

    def refresh_high(relay: Relay) -> None:
        refresh(relay)
        if relay.subtree is not None:
            high = max(each.trim_position for each in relay.downstream.values())
            relay.subtree = replace(relay.subtree, low=max(high, relay.subtree.low))

    patch.setattr(Relay, "refresh", refresh_high)


def log_trimmed_under_a_subtree(patch: Patch) -> None:
    """A leader keeps its log for relays, but not for the observers behind them."""
    patch.setattr(
        ReplicaProgress,
        "trim_position",
        property(lambda progress: max(progress.end_offset, progress.download_end)),
    )


def held_fetch_answered_in_a_circle(patch: Patch) -> None:
    """A relay answers a held Fetch although it now fetches through the requester itself."""

    def evaluate(core: CoreState, relay: Relay, fetch: HeldFetch, deadline_ms: int) -> None:
        relay_serving._evaluate(core, relay, fetch.sender, fetch.request, deadline_ms)

    patch.setattr(relay_serving, "_evaluate_held", evaluate)


def silent_relays_asked_by_turns(patch: Patch) -> None:
    """An observer asks silent relays in turn, and never the leader."""

    def by_turns(core: CoreState) -> NodeId | None:
        upstream = core.following.upstream
        if not uses_relays(core) or (upstream.is_direct and core.now_ms < upstream.retry_ms):
            return None
        peers = core.following.peers
        ready = (each for each in upstream.in_order() if core.now_ms >= peers.ready_ms(each))
        return next(ready, None)

    patch.setattr(leader_search, "relay_to_ask", by_turns)


def silent_relay_and_leader_asked_by_turns(patch: Patch) -> None:
    """An observer asks a silent relay and a silent leader in turn, never the other voters."""
    whom_to_ask = leader_search.whom_to_ask

    def relay_before_search(core: CoreState) -> NodeId | None:
        relay = relay_to_ask(core)
        return whom_to_ask(core) if relay is None else relay

    patch.setattr(fetching, "whom_to_ask", relay_before_search)


BUGS = (
    Bug(
        "relay-serves-to-its-log-end",
        relay_serves_to_its_log_end,
        ("relay-shows-committed",),
        "ADR 27; KIP-392: followers serve below the high watermark only",
        options=RELAYS,
    ),
    Bug(
        "relay-names-itself-only",
        relay_names_itself_only,
        ("relay-paths",),
        "ADR 27; routing loops by distance vectors without paths",
        options=RELAYS,
    ),
    Bug(
        "subtree-not-reported",
        subtree_not_reported,
        ("subtree-reported",),
        "ADR 27; requirement 630.5",
        options=RELAYS,
    ),
    Bug(
        "subtree-forgotten-in-a-restart",
        subtree_forgotten_in_a_restart,
        ("subtree-reported",),
        "ADR 27; requirement 630.5",
        options=RELAYS,
    ),
    Bug(
        "subtree-reported-by-its-furthest",
        subtree_reported_as_own_end,
        ("subtree-reported",),
        "ADR 27; requirement 630.5",
        options=RELAYS,
    ),
    Bug(
        "log-trimmed-under-a-subtree",
        log_trimmed_under_a_subtree,
        ("trim-waits", "subtree-reported"),
        "requirement 630.5",
        options=RELAYS,
    ),
    Bug(
        "held-fetch-answered-in-a-circle",
        held_fetch_answered_in_a_circle,
        ("relay-paths",),
        "ADR 27; found by these invariants",
        options=RELAYS,
    ),
    Bug(
        "silent-relays-asked-by-turns",
        silent_relays_asked_by_turns,
        ("liveness",),
        "found by the simulation, seed 106: of two silent relays one is always ready",
        options=RELAYS,
    ),
    Bug(
        "silent-relay-and-leader-asked-by-turns",
        silent_relay_and_leader_asked_by_turns,
        ("liveness",),
        "found by the simulation, seed 5: a silent relay or a silent leader is always ready",
        options=RELAYS,
    ),
)
