"""Every episode's history is checked, and what clients saw is enough to notice broken replicas.

The invariants read the replicas' state and would be faster; here they are switched off, so that
only the answers of the replicas count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from quorate.controller import group
from quorate.controller.claims import Taking
from quorate.controller.controller import Controller
from simulation import commands, environment, episode, healing, recording, workload
from simulation.invariants.run_observer import RunObserver
from simulation.options import Options
from tests.simulation.zoo.bug import Patch
from tests.simulation.zoo.committing import duplicates_not_recognised
from tests.simulation.zoo.reading import read_from_cached_leadership

SEEDS_MAX = 120


def waits_for_nothing(patch: Patch) -> None:
    """A replica answers at once, although it has not applied what the read waits for."""

    def wait_applied(
        controller: Controller, offset: int, on_applied: Callable[[], None]
    ) -> Callable[[], None]:
        on_applied()
        return lambda: None

    patch.setattr(Controller, "wait_applied", wait_applied)


def refusals_leave_their_number(patch: Patch) -> None:
    """A repeated command is refused, but a late copy of it may still be applied."""
    patch.setattr(group, "taking_of", lambda delta, command, context: Taking())


def repeats_are_evaluated_anew(patch: Patch) -> None:
    """Remove its fences too; otherwise replay would refuse the second application first."""
    duplicates_not_recognised(patch)
    refusals_leave_their_number(patch)


class Noticed(NamedTuple):
    """Broken replicas, the violation that the history shows, and the faults that lead to it."""

    word: str
    profile: str = "default"
    is_crowded: bool = False
    """Whether all clients use one topic and one broker, and half of the requests are duplicated."""


BROKEN = {
    read_from_cached_leadership: Noticed("stale-read", "network"),
    repeats_are_evaluated_anew: Noticed("wrong-offset"),
    waits_for_nothing: Noticed("at-least"),
    refusals_leave_their_number: Noticed("applied-though-refused", "membership", is_crowded=True),
}


@pytest.fixture
def _blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No invariant but the history, and no look at the replicas in the end."""
    monkeypatch.setattr(environment, "watch", RunObserver)
    monkeypatch.setattr(healing, "check_end", lambda cluster, members: None)


@pytest.mark.usefixtures("_blind")
@pytest.mark.parametrize(
    "install",
    [
        pytest.param(each, marks=[pytest.mark.long] if noticed.is_crowded else [])
        for each, noticed in BROKEN.items()
    ],
    ids=lambda each: each.__name__,
)
def test_clients_notice(install: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run seeds in order until the history alone shows the expected violation.

    Each shows up in at least one seed of twenty.
    """
    noticed = BROKEN[install]
    install(monkeypatch)
    if noticed.is_crowded:
        monkeypatch.setattr(workload, "LATE_SHARE", 0.5)
        monkeypatch.setattr(commands, "TOPICS", 1)
        monkeypatch.setattr(commands, "BROKERS", 1)
    caught = None
    for seed in range(1, SEEDS_MAX + 1):
        violation = episode.run(seed, Options(noticed.profile)).violation
        if violation is not None and violation.name == recording.NAME:
            caught = str(violation)
            break
    assert caught is not None, f"not noticed within {SEEDS_MAX} seeds"
    assert noticed.word in caught
