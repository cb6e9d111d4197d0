"""A deliberately broken replica: how to break it and which standing invariant notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Patch(Protocol):
    """What breaking needs; ``pytest.MonkeyPatch`` is one. Undone by its owner."""

    def setattr(self, target: Any, name: str, value: object) -> None:
        """Replace an attribute."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One entry of the zoo. The invariants know nothing of it.

    ``caught_by`` are the names of the properties it may violate first; it is found within the
    first ``seeds`` seeds, drawn in order.
    """

    name: str
    install: Callable[[Patch], None]
    caught_by: tuple[str, ...]
    seeds: int
    source: str
