"""The search against a second checker that simply tries every order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history import real_time
from history.model import Model
from history.operation import Action, Level, Operation, Outcome
from history.search import CheckResult

SIZE_MAX = 6
T = "topic:t"


def brute_force(key: str, operations: Sequence[Operation]) -> bool:
    """Whether some subset that holds all known operations can be put in some order."""
    known = [each for each in operations if each.outcome is not Outcome.UNKNOWN]
    unknown = [each for each in operations if each.outcome is Outcome.UNKNOWN]
    return any(
        _explains(key, order, operations)
        for count in range(len(unknown) + 1)
        for chosen in itertools.combinations(unknown, count)
        for order in itertools.permutations([*known, *chosen])
    )


def _explains(key: str, order: Sequence[Operation], operations: Sequence[Operation]) -> bool:
    for place, later in enumerate(order):
        if any(later.end is not None and later.end < before.call for before in order[:place]):
            return False
    model = Model(key, operations)
    state = model.initial
    for each in order:
        after = model.step(state, each)
        if after is None:
            return False
        state = after
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    operations = []
    for number in range(draw(st.integers(1, SIZE_MAX))):
        call = draw(st.integers(0, 8))
        action = draw(st.sampled_from(Action))
        outcome = draw(st.sampled_from([Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN]))
        if action is Action.READ:
            outcome = Outcome.OK
        operations.append(
            Operation(
                number=number,
                client=f"c{number}",
                key=T,
                action=action,
                call=call,
                end=None if outcome is Outcome.UNKNOWN else call + draw(st.integers(0, 6)),
                outcome=outcome,
                level=Level.LINEARIZABLE if action is Action.READ else None,
                **draw(details(action, outcome)),
            )
        )
    return operations


def details(action: Action, outcome: Outcome) -> st.SearchStrategy[dict[str, object]]:
    values = st.sampled_from(["1", "2"])
    ids = st.sampled_from(["A", "B"])
    if outcome is Outcome.FAILED:
        error = {
            Action.CREATE: "TOPIC_ALREADY_EXISTS",
            Action.GROW: "INVALID_PARTITIONS",
        }.get(action, "UNKNOWN_TOPIC_OR_PARTITION")
        return st.just({"error": error, "arguments": {"partitions": 2}})
    if action is Action.CREATE:
        arguments = {"partitions": 1}
        if outcome is Outcome.UNKNOWN:
            return st.just({"arguments": arguments})
        return ids.map(lambda each: {"arguments": arguments, "result": {"topic_id": each}})
    if action is Action.DELETE:
        return st.one_of(st.just({}), ids.map(lambda each: {"arguments": {"topic_id": each}}))
    if action is Action.GROW:
        return st.integers(1, 3).map(lambda each: {"arguments": {"partitions": each}})
    if action is Action.ALTER:
        how = st.sampled_from(["set", "delete", "append"])
        return st.builds(
            lambda route, value: {"arguments": {"changes": [["a", route, value]]}}, how, values
        )
    seen = st.fixed_dictionaries(
        {"exists": st.just(True)},
        optional={
            "topic_id": ids,
            "partitions": st.integers(1, 3),
            "configs": st.sampled_from([{"a": None}, {"a": "1"}, {"a": "2"}, {"a": "1,2"}]),
        },
    )
    return st.one_of(seen, st.just({"exists": False})).map(lambda each: {"result": each})


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(histories())
def test_both_checkers_agree(operations: list[Operation]) -> None:
    expected = CheckResult.VALID if brute_force(T, operations) else CheckResult.INVALID
    assert real_time.find_order(T, operations).check_result is expected


@settings(max_examples=100, deadline=None)
@given(histories())
def test_an_explanation_names_a_prefix_that_fails(operations: list[Operation]) -> None:
    if real_time.find_order(T, operations).check_result is CheckResult.INVALID:
        violation = real_time.explain(T, operations)
        assert violation.operations
        assert "no order of the first" in violation.message
