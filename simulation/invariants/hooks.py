"""Connects invariants to the events they check, once per run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, get_args

from quorum.core.messages.message_types import Message
from simulation.invariants.invariant import Invariant
from simulation.invariants.listeners import Listeners
from simulation.invariants.run_observer import RunObserver

_OF_MESSAGES = {"on_sent": "sent_kinds", "on_received": "received_kinds"}
"""Message hooks, and the attribute in which an invariant lists the types it checks."""


def run_observer_for(kinds: Iterable[type[Invariant]]) -> RunObserver:
    """Return a new run observer with one invariant of each kind, in the order of ``kinds``."""
    run_observer = RunObserver()
    invariants = [kind(run_observer) for kind in kinds]
    run_observer.report_to(invariants, listeners_of(invariants))
    return run_observer


def listeners_of(invariants: Sequence[Invariant]) -> Listeners:
    """Return the hooks that ``invariants`` override, each in the order of ``invariants``."""
    hooks: dict[str, Any] = {}
    for each in fields(Listeners):
        kinds = _OF_MESSAGES.get(each.name)
        if kinds is None:
            hooks[each.name] = _listeners_of(invariants, each.name)
        else:
            hooks[each.name] = _listeners_of_messages(invariants, each.name, kinds)
    return Listeners(**hooks)


def _overrides(each: Invariant, hook: str) -> bool:
    return getattr(type(each), hook) is not getattr(Invariant, hook)


def _listeners_of(invariants: Sequence[Invariant], hook: str) -> list[Callable[..., None]]:
    return [getattr(each, hook) for each in invariants if _overrides(each, hook)]


def _listeners_of_messages(
    invariants: Sequence[Invariant], hook: str, kinds: str
) -> dict[type, list[Callable[..., None]]]:
    calls = [
        (getattr(each, kinds), getattr(each, hook)) for each in invariants if _overrides(each, hook)
    ]
    return {
        kind: [call for wanted, call in calls if not wanted or kind in wanted]
        for kind in get_args(Message)
    }
