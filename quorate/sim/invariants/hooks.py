"""Which invariants are told of what: only those that look at it, found out once per run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

from quorate.sim.invariants.violation import Invariant
from quorum.core.messages import Message

_OF_NODES_AND_CLIENTS = (
    "on_opened",
    "on_appended",
    "on_truncated",
    "on_persisted",
    "on_voted",
    "on_committed",
    "on_stepped",
    "on_checkpoint",
    "on_published",
    "on_watched",
    "on_acknowledged",
    "on_read",
    "on_block",
)


def _overrides(each: Invariant, hook: str) -> bool:
    return getattr(type(each), hook) is not getattr(Invariant, hook)


def told_of(invariants: Sequence[Invariant]) -> dict[str, list[Callable[..., None]]]:
    """Who is told of anything but messages, by the name of the hook."""
    return {
        hook: [getattr(each, hook) for each in invariants if _overrides(each, hook)]
        for hook in _OF_NODES_AND_CLIENTS
    }


def told_of_messages(
    invariants: Sequence[Invariant], hook: str, kinds: str
) -> dict[type, list[Callable[..., None]]]:
    """Who is told of a message, by its type; ``kinds`` names where an invariant says of which."""
    told = [
        (getattr(each, kinds), getattr(each, hook)) for each in invariants if _overrides(each, hook)
    ]
    return {
        kind: [call for wanted, call in told if not wanted or kind in wanted]
        for kind in get_args(Message)
    }
