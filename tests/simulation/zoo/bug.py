"""A deliberately broken replica: how to break it and which checks find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from simulation.episode import DEFAULT
from simulation.options import Options
from tests.simulation.experiments.experiment import Experiment


class Patch(Protocol):
    """Replaces attributes to break a replica; ``pytest.MonkeyPatch`` is one. Its owner undoes
    it."""

    def setattr(self, target: Any, name: str, value: object) -> None:
        """Replace an attribute."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One entry of the zoo. The checks that find it do not know of it.

    ``caught_by`` are the names of the properties it may violate first. Seeds are drawn in order
    from 1; ``seeds`` is the bound within which it must be found. A bug that the faults of no
    profile show names an experiment, which draws seeds as well. A bug that no seed reaches names a
    scenario, in which one of the same properties must fail; other output than expected is not
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
    """The experiment that runs in place of episodes."""

    @property
    def ran(self) -> str:
        """The profile, experiment or scenario that shows it."""
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
