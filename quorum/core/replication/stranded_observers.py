"""Observers that ask a leader for records in a later epoch than its own, and cannot follow it.

A voter needs no help: its answer to BeginQuorumEpoch moves the leader. An observer waits until an
epoch as late has a leader. See: ADR 44; ``leadership.epoch_catch_up``.
"""

from __future__ import annotations

from typing import Final

from quorum.core.contract.events import ObserverStranded
from quorum.core.messages.fetch_messages import ReceivedFetchRequest
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_progress import Ahead
from quorum.core.state.roles import Leader
from quorum.types import NO_NODE, ReplicaKey

REPLICAS_MAX: Final = 16
"""Most observers a leader remembers; of more the unproven go first, then the longest silent."""
_SILENT_ELECTIONS: Final = 10
"""Election timeouts without a Fetch after which an observer is forgotten."""


def note_ahead(core: CoreState, leader: Leader, received: ReceivedFetchRequest) -> None:
    """Remember a replica refused with UNKNOWN_LEADER_EPOCH, if it is an observer here."""
    request, is_proven = received.request, received.is_proven
    key = request.replica
    voter = leader.remote.get(key.id)
    is_voter = voter is not None and voter.key.matches(key) and not request.is_disqualified
    if key.id == NO_NODE or is_voter:
        return
    known = leader.ahead.get(key)
    if known is None or (is_proven and not known.is_proven):
        _make_room(leader.ahead, key)
        leader.ahead[key] = Ahead(key, request.epoch, core.now_ms, core.now_ms, is_proven)
        core.event(ObserverStranded(key, request.epoch, core.epoch, is_proven))
    elif is_proven or not known.is_proven:
        known.epoch, known.last_ms = request.epoch, core.now_ms


def _make_room(ahead: dict[ReplicaKey, Ahead], key: ReplicaKey) -> None:
    ahead.pop(key, None)
    if len(ahead) >= REPLICAS_MAX:
        del ahead[min(ahead.values(), key=lambda each: (each.is_proven, each.last_ms)).key]


def forget_silent(core: CoreState, leader: Leader) -> None:
    """Forget those that do not ask any more."""
    limit_ms = core.now_ms - _SILENT_ELECTIONS * core.config.election_timeout_ms
    for key in [key for key, each in leader.ahead.items() if each.last_ms < limit_ms]:
        del leader.ahead[key]
