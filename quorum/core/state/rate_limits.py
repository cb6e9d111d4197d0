"""How fast others may move what they can move here: epochs by requests, timers by pauses.

Both are kept as a time, not as a count, so that a budget refills by itself.

See: ``quorum.core.protocol.epoch_claims``; ``quorum.core.liveness.process_pause``; ADR 44.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RateLimits:
    """The budgets of one replica. Times are monotonic milliseconds."""

    raises_until_ms: int = 0
    """When elections alone would have reached the epochs that requests have reached."""
    next_grace_ms: int = 0
    """No process pause extends a timer before this time."""

    def charge_raise(self, now_ms: int, cost_ms: int, budget_ms: int) -> bool:
        """Charge a raise of the epoch that elections need ``cost_ms`` for.

        Returns False, and charges nothing, if that is beyond ``budget_ms`` from now.
        """
        spent_until_ms = max(self.raises_until_ms, now_ms) + cost_ms
        if spent_until_ms - now_ms > budget_ms:
            return False
        self.raises_until_ms = spent_until_ms
        return True
