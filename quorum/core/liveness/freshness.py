"""Freshness of this replica's state: the age in every answer to a client.

At ``as_of_ms`` the replica had all records acknowledged before that moment, committed and below
``end_offset``. A leader knows that time from the beginning of the newest confirmed read round: a
majority followed it then, so no other leader acknowledged anything. A follower knows it from a
Fetch that such a leader answered, if it then has all that was committed: the departure of the
Fetch, less the age in the answer. Only durations are sent, so no two clocks are compared. The clock
rates are trusted, so no linearizable read depends on this.

See: ADR 9; docs/reference/client-protocol.md (Reading).
"""

from __future__ import annotations

from quorum.core.contract.freshness import Freshness
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader


def leader_age_ms(core: CoreState, leader: Leader) -> int:
    """Return how long ago a majority certainly followed this leader; -1 if unknown.

    A leader that has not committed a record of its own epoch may not know all acknowledged records.
    """
    if not leader.can_write:
        return -1
    if core.is_lone_voter:
        return 0
    as_of_ms = leader.reads.as_of_ms
    return core.now_ms - as_of_ms if as_of_ms >= 0 else -1


def note_answered_fetch(core: CoreState, sent_ms: int, age_ms: int, high_watermark: int) -> None:
    """Update the freshness after the leader answered a Fetch and its records are in the log."""
    if age_ms >= 0 and high_watermark <= core.high_watermark:
        as_of_ms = sent_ms - age_ms
        if as_of_ms > core.freshness.as_of_ms:
            core.freshness = Freshness(as_of_ms, high_watermark)


def note_confirmed_round(core: CoreState, leader: Leader) -> None:
    """Update the freshness after a confirmed round: a majority followed since it began."""
    if leader.can_write and leader.reads.as_of_ms > core.freshness.as_of_ms:
        core.freshness = Freshness(leader.reads.as_of_ms, core.high_watermark)


def freshness(core: CoreState, now_ms: int) -> Freshness:
    """Return the freshness at ``now_ms``."""
    leader = core.role
    if isinstance(leader, Leader) and leader.can_write and core.is_lone_voter:
        return Freshness(now_ms, core.high_watermark)
    return core.freshness
