"""Every legal change of role is shown by a scenario, and no other one happens in any."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.core import roles
from quorum.core.events import Event, RoleChanged
from quorum.core.transitions import TRANSITIONS, Step
from quorum.types import NodeId
from tests.scenario.grammar import parse
from tests.scenario.runner import run_scenario
from tests.scenario.world import World

TESTDATA = Path(__file__).parent / "testdata"


def test_every_transition_has_a_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the table is neither too wide nor untested. Method: record every change of role."""
    seen: set[tuple[type, type, Step]] = set()
    epochs: dict[tuple[NodeId, int], int] = {}
    on_event = World._event

    def record(world: World, node_id: NodeId, event: Event) -> None:
        if isinstance(event, RoleChanged):
            life = (node_id, world.members[node_id].lives)
            before = epochs.get(life, _epoch_at_start(world, node_id))
            step = Step.HIGHER if event.epoch > before else Step.SAME
            seen.add((getattr(roles, event.before), getattr(roles, event.role), step))
            epochs[life] = event.epoch
        on_event(world, node_id, event)

    monkeypatch.setattr(World, "_event", record)
    for path in sorted(TESTDATA.rglob("*.scn")):
        epochs.clear()
        run_scenario(parse(path, path.read_text(encoding="utf-8")))
    missing = TRANSITIONS - seen
    assert not missing, sorted(f"{a.__name__}->{b.__name__} {s.value}" for a, b, s in missing)


def _epoch_at_start(world: World, node_id: NodeId) -> int:
    stores = world.members[node_id].stores
    assert stores is not None
    return max(stores.state.election.epoch, stores.state.log_end.epoch)
