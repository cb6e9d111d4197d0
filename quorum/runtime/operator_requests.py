"""Who waits for the outcome of an operator's request to the core, by the token it carries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeAlias

from quorum.core.contract.output import RequestSettled

OnSettled: TypeAlias = Callable[[RequestSettled], None]


class OperatorRequests:
    """Every request is answered once: the core settles what it was asked, whatever happens.

    The only exception is a process that ends; then nobody waits any more. Bounded by the calls
    that services admit.
    """

    def __init__(self) -> None:
        self._tokens = count(1)
        self._waiting: dict[int, OnSettled] = {}

    def add(self, on_settled: OnSettled) -> int:
        """A token never given before, for the notice that carries the request."""
        token = next(self._tokens)
        self._waiting[token] = on_settled
        return token

    def settle(self, outcome: RequestSettled) -> None:
        """Tell whoever waits."""
        on_settled = self._waiting.pop(outcome.token, None)
        if on_settled is not None:
            on_settled(outcome)
