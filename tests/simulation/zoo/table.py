"""Every broken replica."""

from __future__ import annotations

from tests.simulation.zoo import committing, durability, elections
from tests.simulation.zoo.bug import Bug

BUGS: tuple[Bug, ...] = (*durability.BUGS, *elections.BUGS, *committing.BUGS)
