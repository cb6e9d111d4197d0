"""The explorer's reductions lose no state: full and reduced explorations are compared.

The full one delays every answer and every write in every order (``Model.in_full``). Its settled
states must be exactly those of the reduced one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from simulation.explore import node, space
from simulation.explore.model import LATE_ALL, Model
from simulation.explore.models import MODELS
from simulation.explore.space import Space, State
from simulation.explore.values import Local
from simulation.invariants.violation import Violation

Look: TypeAlias = Callable[[Local], object]
"""The part of a node's state that is compared."""


def _everything(local: Local) -> object:
    return local.body, local.high_watermark


def _all_but_knowledge(local: Local) -> object:
    """Return the state without the known high watermark and the remaining number of crashes."""
    return local.body


def _disk(local: Local) -> object:
    return local.role, local.epoch, local.leads, local.durable, local.durable_leader


def _reached(model: Model) -> tuple[Space, set[State]]:
    """Return every state of a model, without merging renamed states."""
    explored = Space(model)
    seen = {explored.first()}
    level = list(seen)
    while level:
        following = []
        for state in level:
            for _, made in explored.moves(state):
                assert not isinstance(made, Violation), made
                if made not in seen:
                    seen.add(made)
                    following.append(made)
        level = following
    return explored, seen


def _settled(model: Model, look: Look) -> set[tuple[Any, ...]]:
    """Return what is compared of the settled states: no answer and no write is in flight."""
    explored, seen = _reached(model)
    table, found = explored.table, set[tuple[Any, ...]]()
    for state in seen:
        nodes = [table.locals[number] for number in state.locals]
        packets = [table.packets[number] for number in state.packets]
        is_writing = any(each.durable != each.log or _is_writing(each) for each in nodes)
        if is_writing or not all(each.is_request for each in packets):
            continue
        past = explored.histories[state.history]
        found.add(
            (
                tuple(look(each) for each in nodes),
                frozenset((each.outline, each.message) for each in packets),
                state.budget,
                past.committed,
                past.leaders,
            )
        )
    return found


def _is_writing(local: Local) -> bool:
    return ("persist",) in local.events


def _compare(model: Model, look: Look) -> int:
    return _compare_with(_settled(replace(model, in_full=True), look), model, look)


def _compare_with(whole: set[tuple[Any, ...]], model: Model, look: Look) -> int:
    reduced = _settled(model, look)
    assert len(whole - reduced) == len(reduced - whole) == 0
    return len(whole)


RECORDS = replace(MODELS["records"], alike=(), late=0)
CRASHES = replace(MODELS["crashes"], alike=())
ONE_EPOCH = replace(CRASHES, epochs=1, records=0)


@pytest.fixture(scope="module")
def whole_epoch() -> set[tuple[Any, ...]]:
    """The states that ``ONE_EPOCH`` reaches without reductions."""
    return _settled(replace(ONE_EPOCH, in_full=True), _all_but_knowledge)


def test_answers_at_once_or_never_reach_the_same_states() -> None:
    assert _compare(replace(RECORDS, epochs=1, records=1), _everything) > 300


def test_writes_at_once_or_lost_reach_the_same_states(whole_epoch: set[tuple[Any, ...]]) -> None:
    """Crashes included: leaders serve what their own disks then lose."""
    assert _compare_with(whole_epoch, ONE_EPOCH, _all_but_knowledge) > 300


@pytest.mark.long
def test_late_requests_reach_the_same_states() -> None:
    """Without crashes, the messages of a deposed node arrive in both models."""
    assert _compare(replace(RECORDS, epochs=1, records=1, late=LATE_ALL), _everything) > 300


@pytest.mark.long
def test_late_requests_and_crashes_reach_the_same_states() -> None:
    """Equal states, or equal with more messages in flight.

    A request that a crash of its receiver would have destroyed stays, because a crash that loses
    nothing else is left out. A message that may arrive need not arrive, so more states are reached
    from there, and no fewer.
    """
    model = replace(CRASHES, epochs=1, records=0, late=LATE_ALL)
    whole = _settled(replace(model, in_full=True), _all_but_knowledge)
    reduced = _settled(model, _all_but_knowledge)
    assert reduced <= whole
    under_way: dict[object, list[frozenset[object]]] = {}
    for nodes, packets, *rest in reduced:
        under_way.setdefault((nodes, *rest), []).append(packets)
    missing = whole - reduced
    for nodes, packets, *rest in missing:
        assert any(packets < each for each in under_way[(nodes, *rest)])
    assert len(reduced) > 300
    assert len(missing) < len(whole) / 10


def test_requests_that_stay_to_be_refused_change_nothing() -> None:
    """They are checked against more states of their receivers, and create no new states."""
    model = replace(MODELS["removals-stale"], removals=0, epochs=3, leadership_terms=(1, 2))

    def outcomes(stale: int) -> set[object]:
        explored, seen = _reached(replace(model, stale=stale))
        locals_ = explored.table.locals
        return {tuple(_everything(locals_[each]) for each in state.locals) for state in seen}

    without = outcomes(0)
    assert outcomes(LATE_ALL) == without
    assert len(without) > 300


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("model", "look"),
    [
        (replace(RECORDS, epochs=2, records=0), _everything),
        (replace(RECORDS, epochs=2, records=0, late=LATE_ALL), _everything),
        (replace(CRASHES, epochs=1, records=1), _all_but_knowledge),
    ],
    ids=["two-epochs", "two-epochs-and-late-requests", "crashes-and-a-record"],
)
def test_larger_models_reach_the_same_states(model: Model, look: Look) -> None:
    assert _compare(model, look) > 500


def test_a_reduction_that_loses_something_is_noticed(
    whole_epoch: set[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every crash is left out, as if none changed anything."""

    def is_crash(*arguments: object) -> bool:
        step = arguments[-1]
        return isinstance(step, space.Step) and step.event[0] == "crash"

    monkeypatch.setattr(Space, "_is_idle_crash", is_crash)
    assert _settled(ONE_EPOCH, _all_but_knowledge) < whole_epoch


@pytest.mark.long
def test_what_is_forgotten_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploration that keeps votes and history of past epochs has the same outcomes."""
    model = replace(RECORDS, epochs=2, records=0)

    def outcomes() -> set[object]:
        explored, seen = _reached(model)
        locals_ = explored.table.locals
        return {tuple(_disk(locals_[each]) for each in state.locals) for state in seen}

    forgetful = outcomes()
    monkeypatch.setattr(node, "_without_vote", lambda state: state)
    monkeypatch.setattr(space, "pruned", lambda history, floor, last_epoch: history)
    assert outcomes() == forgetful
    assert len(forgetful) > 500


def test_nodes_that_are_alike_may_be_renamed() -> None:
    """The core treats a renamed node as the node itself, renamed.

    Exactly one state of each class of renamed states is visited.
    """
    model = replace(MODELS["crashes"], epochs=1, records=0)
    explored, seen = _reached(model)
    table = explored.table
    known = list(table._outcomes.items())
    for images in explored.images:
        for (local, event), outcome in known:
            renamed = table.step(images.of_local(local), images.of_event(event))
            assert renamed.local == images.of_local(outcome.local)
            assert sorted(renamed.sent) == sorted(map(images.of_packet, outcome.sent))
    classes = {explored.canonical(state) for state in seen}
    assert len(seen) / 6 <= len(classes) < len(seen) / 4
    visited, level = {explored.canonical(explored.first())}, [explored.first()]
    while level:
        moves = [made for state in level for _, made in explored.moves(state)]
        level = []
        for made in moves:
            assert isinstance(made, State)
            one = explored.canonical(made)
            if one not in visited:
                visited.add(one)
                level.append(one)
    assert visited == classes
