"""Broken replicas that send promises before they are durable, or whose disk loses synced writes."""

from __future__ import annotations

from dataclasses import replace

from quorum.core.contract.output import Output
from quorum.core.election import campaign
from quorum.core.leadership import leadership_term
from quorum.core.protocol import role_transitions
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from quorum.log.election_store import ElectionFile
from quorum.log.segmented_log import SegmentedLog
from quorum.runtime.driver import Driver
from quorum.types import ElectionState
from simulation.options import Options
from tests.simulation.experiments.lone_follower import LONE_FOLLOWER
from tests.simulation.zoo.bug import Bug, Patch


def acknowledge_before_flush(patch: Patch) -> None:
    """A Fetch waits for the election state only, not for the records it acknowledges."""
    patch.setattr(CoreState, "acknowledgement_ticket", lambda core: core.disk.election_ticket)


def later_ticket_first(patch: Patch) -> None:
    """What a listener enters during a delivery reaches the writer before an earlier output."""

    def carry_out_late(driver: Driver, output: Output) -> None:
        driver.deliver()
        driver._is_draining = True
        driver._carry_out(output)
        driver._is_draining = False
        if driver.node.is_leader:
            driver._drain_progress()

    patch.setattr(Driver, "_carry_out_in_order", carry_out_late)


def vote_not_persisted(patch: Patch) -> None:
    """``quorum-state`` is written without the vote."""
    save = ElectionFile.save

    def save_without_vote(self: ElectionFile, state: ElectionState) -> None:
        save(self, replace(state, voted=None))

    patch.setattr(ElectionFile, "save", save_without_vote)


def leadership_before_durable(patch: Patch) -> None:
    """An elected leader begins before its election state is durable."""
    become_leader = role_transitions.become_leader

    def become_leader_now(core: CoreState, granting: tuple[int, ...]) -> None:
        become_leader(core, granting)
        core.disk.election_ticket = core.disk.durable_ticket

    def is_durable(core: CoreState, leader: Leader) -> bool:
        return True

    patch.setattr(campaign, "become_leader", become_leader_now)
    patch.setattr(leadership_term, "leadership_is_durable", is_durable)


def flush_does_nothing(patch: Patch) -> None:
    """Records count as durable although they were never synced (NATS, lazy fsync)."""
    patch.setattr(SegmentedLog, "flush", lambda log: None)


def vote_floor_not_stored(patch: Patch) -> None:
    """A replica that lost acknowledged records to corruption stores no vote floor."""
    save = ElectionFile.save

    def save_without_floor(self: ElectionFile, state: ElectionState) -> None:
        save(self, replace(state, vote_floor=None))

    patch.setattr(ElectionFile, "save", save_without_floor)


BUGS = (
    Bug(
        "acknowledge-before-flush",
        acknowledge_before_flush,
        ("promises",),
        "NATS JetStream 2.12.1 (Jepsen)",
    ),
    Bug(
        "later-ticket-first",
        later_ticket_first,
        ("tickets-in-order",),
        "found by a review; quorum/runtime/DESIGN.md",
        experiment=LONE_FOLLOWER,
    ),
    Bug(
        "vote-not-persisted",
        vote_not_persisted,
        ("durable-survives", "one-vote"),
        "PySyncObj #202",
    ),
    Bug(
        "leadership-before-durable",
        leadership_before_durable,
        ("promises",),
        "ADR 7",
    ),
    Bug(
        "flush-does-nothing",
        flush_does_nothing,
        ("durable-survives",),
        "NATS JetStream 2.12.1 (Jepsen)",
    ),
    Bug(
        "vote-floor-not-stored",
        vote_floor_not_stored,
        ("losses-known", "leader-completeness", "committed-stays", "liveness"),
        "ADR 7",
        seeds=400,
        options=Options("corruption"),
    ),
)
