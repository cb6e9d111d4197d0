"""A leader brings its quorum into an epoch that a stranded observer can follow.

An observer in a later epoch than the quorum may not go back: a record that it lacks may have made
it a voter, and it may have voted in that epoch. So the quorum goes forward. The leader transfers
leadership to another voter, which makes the next epoch by an election that the voters grant. This
is what an operator would do, and no new kind of epoch change.

An election is not to be had for the asking. The observer is proven (ADR 52), has been refused by
this leader for ``WAIT_ELECTIONS`` election timeouts, and is at most ``EPOCHS_MAX`` ahead. A new
leader begins to count anew. So there is at most one such transfer per waiting time.

See: ADR 44; ``transfer``; docs/operations/recover.md (Epoch-ahead).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.leadership import transfer
from quorum.core.leadership.leadership_term import resign
from quorum.core.replication.stranded_observers import forget_silent
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_progress import Ahead
from quorum.core.state.roles import Leader
from quorum.types import Epoch, ReplicaKey

WAIT_ELECTIONS: Final = 30
"""Election timeouts that an observer must have been refused before leadership moves for it."""
EPOCHS_MAX: Final = 10
"""Most epochs that it may be ahead. Each costs a transfer; above that an operator decides."""


@dataclass(frozen=True, slots=True)
class AheadView:
    """An observer that cannot follow this leader, for describe-quorum."""

    key: ReplicaKey
    epoch: Epoch
    is_brought_back: bool
    """Whether this leader moves leadership for it by itself; else an operator has to."""


def ahead_views(core: CoreState) -> tuple[AheadView, ...]:
    """Return the observers that cannot follow this leader, ascending; elsewhere none."""
    leader = core.role
    if not isinstance(leader, Leader):
        return ()
    return tuple(
        AheadView(each.key, each.epoch, is_brought_back(each, core.epoch))
        for each in sorted(leader.ahead.values(), key=lambda each: each.key.id)
    )


def is_brought_back(ahead: Ahead, epoch: int) -> bool:
    """Return whether a leader of ``epoch`` moves leadership for this replica by itself."""
    return ahead.is_proven and ahead.epoch - epoch <= EPOCHS_MAX


def poll(core: CoreState, leader: Leader) -> None:
    """Begin the next epoch if an observer has waited for it long enough."""
    if not leader.ahead:
        return
    forget_silent(core, leader)
    is_busy = leader.transfer is not None or leader.change is not None
    if is_busy or core.now_ms < leader.catch_up_due_ms:
        return
    wait_ms = WAIT_ELECTIONS * core.config.election_timeout_ms
    for each in leader.ahead.values():
        if is_brought_back(each, core.epoch) and core.now_ms >= each.since_ms + wait_ms:
            leader.catch_up_due_ms = core.now_ms + wait_ms
            if leader.remote:
                transfer.begin_for_observer(core, leader, each.key)
            else:
                resign(core, leader, RoleChangeReason.OBSERVER_STRANDED)
            return
