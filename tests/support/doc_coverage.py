"""Tables of docs/testing/scenario-coverage.md: what scenarios have to show."""

from __future__ import annotations

from quorum.core.state.timers import Timer, all_timers, name_of
from simulation.scenario.coverage import answer_table, declared_answers, declared_transitions
from tests.support.doc_regions import table


def answers() -> str:
    """Every possible answer, by kind of request."""
    return table(
        ["Request", "Answers, each shown by a scenario"],
        ([kind, ", ".join(codes)] for kind, codes in answer_table().items()),
    )


def timers() -> str:
    """Every timer of the core; timers of requests are listed once for each purpose."""
    return table(
        ["Timer", "Runs for", "When it fires"],
        (
            (name_of(each), kind.length, kind.action)
            for each in all_timers()
            for kind in [(each if isinstance(each, Timer) else each[0]).value]
        ),
    )


def totals() -> str:
    """Return the sentence with the counts of role changes, answers and timers."""
    return (
        f"All {len(declared_transitions())} changes of role, {len(declared_answers())} answers and "
        f"{len(Timer)} timers ({len(list(all_timers()))} when those of requests are counted by "
        "purpose) are shown, and nothing else happens in any scenario."
    )


MAKERS = {
    "scenario-totals": totals,
    "scenario-answers": answers,
    "scenario-timers": timers,
}
