"""After a process pause, a node gives its peers time before it treats them as silent.

A process that was stopped, starved or swapped out finds its timers expired, and the messages of
its peers still unread. So its fetch timer, or its check quorum if it leads, is extended a little.
This happens at most once per fetch timeout: a node that is always late still acts.

Nothing is promised here: votes, commits and reads never rest on these timers.

See: docs/reference/elections.md (Process pause).
"""

from __future__ import annotations

from quorum.core.contract.events import ProcessPaused
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower, Leader

_GRACE_DIVISOR = 4


def excuse_others(core: CoreState, late_ms: int) -> None:
    """Give the peers that this node waits for a quarter of the fetch timeout from now on."""
    if core.now_ms < core.rate_limits.next_grace_ms:
        return
    role = core.role
    until_ms = core.now_ms + core.config.fetch_timeout_ms // _GRACE_DIVISOR
    if isinstance(role, Leader) and role.established:
        role.check_quorum_deadline_ms = max(role.check_quorum_deadline_ms, until_ms)
    elif isinstance(role, Follower):
        role.fetch_deadline_ms = max(role.fetch_deadline_ms, until_ms)
    else:
        return
    core.rate_limits.next_grace_ms = until_ms + core.config.fetch_timeout_ms
    core.event(ProcessPaused(late_ms))
