"""Since when this replica may lack something: the age that every answer to a client carries.

At ``as_of_ms`` the replica held everything acknowledged before that moment, committed and below
``end_offset``. A leader knows it from the beginning of the newest confirmed read round: a majority
followed it then, so nobody else acknowledged anything. A follower knows it from a Fetch that such
a leader answered, if it then holds all that was committed: what was acknowledged before the Fetch
left, less the leader's own age. Only durations travel, so no two clocks are compared; the rates of
clocks are trusted, which is why no linearizable read rests on this.

See: ADR 9; docs/reference/client-protocol.md (Reading).
"""

from __future__ import annotations

from quorum.core.contract.freshness import Freshness
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader


def leader_age_ms(core: CoreState, leader: Leader) -> int:
    """How long ago a majority certainly followed this leader; -1 when it cannot say.

    Before a record of its own epoch is committed it does not know all that was acknowledged.
    """
    if not leader.can_write:
        return -1
    if core.is_lone_voter:
        return 0
    as_of_ms = leader.reads.as_of_ms
    return core.now_ms - as_of_ms if as_of_ms >= 0 else -1


def note_answered_fetch(core: CoreState, sent_ms: int, age_ms: int, high_watermark: int) -> None:
    """The leader has answered a Fetch with records, or with none, and they are in the log."""
    if age_ms >= 0 and high_watermark <= core.high_watermark:
        as_of_ms = sent_ms - age_ms
        if as_of_ms > core.freshness.as_of_ms:
            core.freshness = Freshness(as_of_ms, high_watermark)


def note_confirmed_round(core: CoreState, leader: Leader) -> None:
    """A majority has followed this leader since the round began."""
    if leader.can_write and leader.reads.as_of_ms > core.freshness.as_of_ms:
        core.freshness = Freshness(leader.reads.as_of_ms, core.high_watermark)


def freshness(core: CoreState, now_ms: int) -> Freshness:
    """What is known at ``now_ms``."""
    leader = core.role
    if isinstance(leader, Leader) and leader.can_write and core.is_lone_voter:
        return Freshness(now_ms, core.high_watermark)
    return core.freshness
