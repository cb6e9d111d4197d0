"""Hints from the log shorten a search and never decide it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history import log_order, real_time
from history.check import check
from history.hints import narrowed, places_in
from history.operation import Action
from history.search import FOREVER, CheckResult, Timed
from tests.unit.history.histories import UNKNOWN, B, Script
from tests.unit.history.test_against_all_orders import T, brute_force, histories


def appended_by_many(count: int) -> Script:
    """Appends, all open until the end and half of them unknown, and one read of the whole."""
    script = Script()
    for number in range(count):
        is_known = number % 2 == 0
        more = {"offset": 10 * (number + 1)} if is_known else UNKNOWN
        span = (number, 1000 + number if is_known else None)
        script.append(f"c{number}", f"v{number}", span, mark=f"m{number}", **more)
    script.log(
        *(10 * (number + 1) for number in range(count)),
        marks={10 * (number + 1): (f"m{number}",) for number in range(count)},
    )
    whole = ",".join(f"v{number}" for number in range(count))
    script.get("reader", whole, (2000, 2001), offset=10 * count)
    return script


def test_a_history_with_many_open_writes_is_decided() -> None:
    """Without the log's hint the budget is used up: shown, so that the test means something."""
    script = appended_by_many(16)
    operations = script.history.by_key()[B]
    bare = real_time.find_order(B, operations, steps_max=5_000)
    assert bare.check_result is CheckResult.UNKNOWN
    report = check(script.history, steps_max=5_000)
    assert report.check_result is CheckResult.VALID


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(histories(), st.data())
def test_no_hint_however_wrong_changes_a_check_result(operations, data) -> None:
    operations = [
        replace(each, offset=data.draw(st.integers(-1, 9)), mark=f"m{each.number}")
        for each in operations
    ]
    numbers = [each.number for each in operations]
    places = data.draw(st.dictionaries(st.sampled_from(numbers), st.integers(0, 9)))
    found = real_time.find_order(T, operations, places=places)
    expected = CheckResult.VALID if brute_force(T, operations) else CheckResult.INVALID
    assert found.check_result is expected


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(histories(), st.data())
def test_no_hint_changes_a_check_result_about_the_log(operations, data) -> None:
    operations = [replace(each, offset=data.draw(st.integers(0, 5))) for each in operations]
    numbers = [each.number for each in operations]
    floor = {number: data.draw(st.integers(-1, 5)) for number in numbers}
    places = data.draw(st.dictionaries(st.sampled_from(numbers), st.integers(0, 7)))
    bare = log_order.find_order(T, operations, floor)
    assert (
        log_order.find_order(T, operations, floor, places=places).check_result is bare.check_result
    )


def test_what_the_log_shows_once_has_a_place() -> None:
    script = Script()
    for mark in ("once", "twice", "never"):
        script.set("c", mark, (0, None), mark=mark, **UNKNOWN)
    script.set("c", "known", (0, 1), mark="known", offset=4)
    marks = {1: ("once",), 2: ("twice",), 3: ("twice",), 4: ("known",)}
    script.log(1, 2, 3, 4, marks=marks)
    assert places_in(script.history.operations, script.history.log) == {0: 1}


def test_what_has_an_offset_gets_a_moment_in_the_order_of_the_log() -> None:
    script = Script()
    before = script.set("c1", "1", (10, 20), offset=1)
    unknown = script.set("c2", "2", (5, None), **UNKNOWN)
    after = script.get("c3", "2", (30, 40), offset=2)
    refused = script.refused("c4", Action.DELETE, "UNKNOWN_TOPIC_OR_PARTITION", (1, 2))
    every = (before, unknown, after, refused)
    timed = [Timed(each.call, FOREVER if each.end is None else each.end, each, each is unknown)
             for each in every]  # fmt: skip
    found = narrowed(timed, {unknown.number: 2})
    fine = 5
    assert [(each.begin, each.end, each.operation) for each in found] == [
        (10 * fine, 10 * fine, before),
        (10 * fine + 1, 10 * fine + 1, unknown),
        (30 * fine + 2, 30 * fine + 2, after),
        (1 * fine, 2 * fine + 4, refused),
    ]
    assert not any(each.is_optional for each in found)
    assert [each.operation for each in narrowed(timed, {})] == [before, after, refused]
