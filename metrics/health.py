"""Named health checks with reasons.

Liveness and readiness are different questions. ``/livez`` tells whether to restart this process, so
it must never depend on peers, a leader or a full disk. ``/readyz`` tells whether to send clients
to this node. A check belongs to exactly one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check. ``reason`` is one sentence; for a passing check it may be empty."""

    name: str
    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A named check. ``probe`` returns the reason of a failure, else None; it must not block."""

    name: str
    probe: Callable[[], str | None]


def run_checks(checks: Sequence[Check]) -> list[CheckResult]:
    """Return every check's result, in order. A probe that raises fails with its error."""
    results = []
    for check in checks:
        try:
            reason = check.probe()
        except Exception as error:  # noqa: BLE001 - "cannot tell" is an answer here, not a crash
            reason = f"the check itself failed: {type(error).__name__}: {error}"
        results.append(CheckResult(check.name, reason is None, reason or ""))
    return results
