"""Each invariant is called for every message that it checks."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from typing import get_args

import pytest

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.invariants.hooks import listeners_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.listeners import Listeners
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from simulation.invariants.table import ALL

HOOKS = [("on_sent", "sent_kinds"), ("on_received", "received_kinds")]
HOOKS_OF_ONE_LIST = sorted({each.name for each in fields(Listeners)} - {hook for hook, _ in HOOKS})


class Everything(Invariant):
    name = "everything"

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None: ...


class Fetches(Everything):
    name = "fetches"
    sent_kinds = (FetchRequest,)


class Nothing(Invariant):
    name = "nothing"
    sent_kinds = (FetchRequest,)


@pytest.mark.parametrize(("hook", "kinds"), HOOKS)
@pytest.mark.parametrize("invariant", ALL, ids=lambda each: each.__name__)
def test_the_types_that_are_looked_at_are_those_that_are_asked_for(
    invariant: type[Invariant], hook: str, kinds: str
) -> None:
    method, declared = getattr(invariant, hook), set(getattr(invariant, kinds))
    if method is getattr(Invariant, hook):
        assert not declared
        return
    text = inspect.getsource(method)
    named = {kind for kind in get_args(Message) if re.search(rf"\b{kind.__name__}\b", text)}
    assert declared <= set(get_args(Message))
    assert not declared or named <= declared


def test_an_invariant_with_message_types_is_called_for_these_only() -> None:
    everything, fetches = Everything(RunObserver()), Fetches(RunObserver())
    hooks = listeners_of([everything, fetches, Nothing(RunObserver())]).on_sent
    assert set(hooks) == set(get_args(Message))
    assert hooks[FetchRequest] == [everything.on_sent, fetches.on_sent]
    assert hooks[FetchResponse] == [everything.on_sent]


def test_every_hook_of_an_invariant_has_its_list_and_the_other_way_round() -> None:
    hooks = {name for name in vars(Invariant) if name.startswith("on_")}
    assert hooks == {each.name for each in fields(Listeners)}


def test_each_overridden_hook_is_called_in_the_order_of_the_table() -> None:
    invariants = [kind(RunObserver()) for kind in ALL]
    hooks = listeners_of(invariants)
    for hook in HOOKS_OF_ONE_LIST:
        overriding = [each for each in invariants if hook in _defined_by(type(each))]
        assert getattr(hooks, hook) == [getattr(each, hook) for each in overriding], hook


def _defined_by(kind: type[Invariant]) -> set[str]:
    return {name for each in kind.__mro__ if each is not Invariant for name in vars(each)}
