"""The fuzz of the wire rules is fuzzed: a handler that breaks one of them is found by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.property import test_core_wire_rules as core_rules
from tests.property import wire_bugs
from tests.support.core_situations import SITUATIONS
from tests.unit.services import test_mutated_requests as service_rules
from tests.unit.transport import test_mutated_snapshot_requests as snapshot_rules

CASES: dict[str, tuple[wire_bugs.Install, Callable[[str], None], tuple[str, ...]]] = {
    "a negative number is trusted": (
        wire_bugs.negative_number_trusted,
        core_rules.test_a_negative_number_is_refused,
        tuple(sorted(SITUATIONS)),
    ),
    "a negative offset of a client is trusted": (
        wire_bugs.negative_offset_trusted,
        service_rules.test_a_read_at_a_negative_offset_is_invalid,
        tuple(sorted(service_rules.READING)),
    ),
    "an answer never asked for is applied": (
        wire_bugs.answer_never_asked_for,
        core_rules.test_answers_to_nothing_are_ignored,
        tuple(sorted(SITUATIONS)),
    ),
    "a stale number is accepted": (
        wire_bugs.stale_number_accepted,
        core_rules.test_answers_to_nothing_are_ignored,
        tuple(sorted(SITUATIONS)),
    ),
    "a wrong topic is accepted": (
        wire_bugs.wrong_topic_accepted,
        snapshot_rules.test_only_what_was_named_rightly_is_asked_for,
        snapshot_rules.SEEDS,
    ),
}


@pytest.mark.parametrize("bug", sorted(CASES))
def test_a_broken_handler_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break one rule and run the fuzz that states it, as it is."""
    install, fuzz, cases = CASES[bug]
    for case in cases:
        fuzz(case)
    install(monkeypatch)
    found = 0
    for case in cases:
        try:
            fuzz(case)
        except AssertionError:
            found += 1
    assert found, f"{install.__doc__} Nothing noticed."
