"""Limits of effects that others can cause: raises of the epoch, and timers extended by pauses.

Both are stored as a time, not as a count, so that a budget refills by itself.

See: ``quorum.core.protocol.epoch_claims``; ``quorum.core.liveness.process_pause``; ADR 44.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RateLimits:
    """The budgets of one replica. Times are monotonic milliseconds."""

    raises_until_ms: int = 0
    """When elections alone would have reached the epochs that requests have reached."""
    unknown_raises_until_ms: int = 0
    """The same for requests of replicas that are voters of no record here."""
    next_grace_ms: int = 0
    """No process pause extends a timer before this time."""

    def charge_raise(self, now_ms: int, cost_ms: int, budget_ms: int, *, is_known: bool) -> bool:
        """Charge a raise of the epoch that elections need ``cost_ms`` for.

        Returns False, and charges nothing, if that is beyond ``budget_ms`` from now. Voters
        (``is_known``) have a budget of their own, which nobody else can use up.
        """
        until_ms = self.raises_until_ms if is_known else self.unknown_raises_until_ms
        spent_until_ms = max(until_ms, now_ms) + cost_ms
        if spent_until_ms - now_ms > budget_ms:
            return False
        if is_known:
            self.raises_until_ms = spent_until_ms
        else:
            self.unknown_raises_until_ms = spent_until_ms
        return True
