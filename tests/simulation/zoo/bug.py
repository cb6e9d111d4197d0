"""A deliberately broken replica: how to break it and what notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from simulation.episode import DEFAULT
from simulation.options import Options
from tests.simulation.experiments.experiment import Experiment


class Patch(Protocol):
    """What breaking needs; ``pytest.MonkeyPatch`` is one. Undone by its owner."""

    def setattr(self, target: Any, name: str, value: object) -> None:
        """Replace an attribute."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One entry of the zoo. What catches it knows nothing of it.

    ``caught_by`` are the names of the properties it may violate first. Seeds are drawn in order
    from 1; ``seeds`` is the bound within which it must be found. What the weather of no profile
    shows names an experiment, which draws seeds as well. What no seed reaches names a scenario,
    whose steps one of the same properties must then refuse; that it prints something else is not
    enough.
    """

    name: str
    install: Callable[[Patch], None]
    """Breaks the replica; its docstring says how, in one sentence."""
    caught_by: tuple[str, ...]
    source: str
    """The bug of another system, or the rule, that it imitates."""
    seeds: int = 200
    options: Options = DEFAULT
    """Profile, shape and length of the runs."""
    scenario: str = ""
    """Path below ``tests/scenario/testdata``; empty where the simulation finds it."""
    experiment: Experiment | None = None
    """What is run in place of episodes."""

    @property
    def ran(self) -> str:
        """What has to be run to see it."""
        if self.experiment is not None:
            return self.experiment.name
        return self.scenario or self.options.profile

    @property
    def is_drawn(self) -> bool:
        """Whether it is found by seeds."""
        return not self.scenario

    @property
    def what(self) -> str:
        """What is broken, in a sentence."""
        lines = (self.install.__doc__ or "").split("\n\n")[0].split("\n")
        return " ".join(line.strip() for line in lines)
