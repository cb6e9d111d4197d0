"""Bad histories are refused, each with the broken rule; good ones pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from history.check import check
from history.operation import Action, Level
from history.search import CheckResult
from tests.unit.history.bad import BAD
from tests.unit.history.histories import UNKNOWN, B, Script, T


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history(name: str) -> None:
    rule, write = BAD[name]
    script = Script()
    write(script)

    report = script.check()

    assert report.check_result is CheckResult.INVALID
    assert rule in {violation.rule for violation in report.violations}
    assert report.explanation()


def test_there_are_many_bad_histories() -> None:
    assert len(BAD) >= 40


def concurrent_write_and_reads(s: Script) -> None:
    s.set("c1", "1", (0, 10))
    s.get("c2", None, (1, 2))
    s.get("c2", "1", (3, 4))


def unknown_write_that_never_shows(s: Script) -> None:
    s.set("c1", "1", (0, None), **UNKNOWN)
    s.get("c2", None, (5, 6))


def unknown_write_that_shows_late(s: Script) -> None:
    s.set("c1", "1", (0, None), **UNKNOWN)
    s.set("c1", "2", (1, 2))
    s.get("c2", "2", (3, 4))
    s.get("c2", "1", (5, 6))


def unknown_creation_is_named_by_a_read(s: Script) -> None:
    s.create("c1", (0, None), arguments={"partitions": -1}, **UNKNOWN)
    s.look("c2", {"exists": True, "topic_id": "A", "partitions": 3}, (1, 2))
    s.delete("c2", (3, 4), arguments={"topic_id": "A"})
    s.look("c2", {"exists": False}, (5, 6))


def chain_of_unknown_writes(s: Script) -> None:
    s.create("c1", (0, None), **UNKNOWN)
    s.set("c1", "1", (1, None), key=T, **UNKNOWN)
    s.append("c1", "2", (2, None), key=T, **UNKNOWN)
    s.get("c2", "1,2", (3, 4), key=T)


def refusals_that_fit(s: Script) -> None:
    s.refused("c1", Action.DELETE, "UNKNOWN_TOPIC_OR_PARTITION", (0, 1))
    s.create("c1", (2, 3), "A", arguments={"partitions": 4})
    s.refused("c2", Action.CREATE, "TOPIC_ALREADY_EXISTS", (4, 5))
    s.refused("c2", Action.GROW, "INVALID_PARTITIONS", (6, 7), arguments={"partitions": 4})
    s.refused("c2", Action.ALTER, "QUEUE_FULL", (8, 9))


def appends_in_either_order(s: Script) -> None:
    s.append("c1", "1", (0, 5))
    s.append("c2", "2", (0, 5))
    s.get("c3", "2,1", (6, 7))


def local_reads_lag(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=5)
    s.set("c1", "2", (2, 3), offset=6)
    s.get("c2", "1", (4, 5), level=Level.LOCAL, offset=5, session="n1.1")
    s.get("c2", None, (4, 5), level=Level.LOCAL, offset=4, session="n2.1")
    s.get("c2", "2", (6, 7), level=Level.LOCAL, offset=6, session="n2.1")
    s.get("c2", None, (8, 9), level=Level.LOCAL, offset=2, session="n2.2")


def log_with_every_write_once(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=2, mark="m1")
    s.set("c1", "2", (2, None), mark="m2", **UNKNOWN)
    s.set("c1", "3", (3, None), mark="m3", **UNKNOWN)
    s.refused("c1", Action.ALTER, "INVALID_CONFIG", (4, 5), key=B, mark="m4")
    s.log(1, 2, 3, marks={2: ("m1",), 3: ("m2",)})


def watch_with_resumes_and_states(s: Script) -> None:
    s.log(1, 4, 6, 7)
    s.delivered(
        ("state", -1, 0), ("batch", 0, 1), ("progress", -1, 1), ("resume", -1, 1), ("batch", 1, 4),
        ("progress", -1, 4), ("state", -1, 5), ("resume", -1, 5), ("batch", 4, 6), ("batch", 6, 7),
    )  # fmt: skip


def watch_that_fell_behind_and_began_again(s: Script) -> None:
    s.log(1, 4, 6, 7)
    s.delivered(
        ("resume", -1, 0), ("batch", 0, 1), ("resume", -1, 1), ("refused", 4, 6), ("state", -1, 6),
        ("batch", 6, 7),
    )  # fmt: skip


GOOD: tuple[Callable[[Script], None], ...] = (
    concurrent_write_and_reads,
    unknown_write_that_never_shows,
    unknown_write_that_shows_late,
    unknown_creation_is_named_by_a_read,
    chain_of_unknown_writes,
    refusals_that_fit,
    appends_in_either_order,
    local_reads_lag,
    log_with_every_write_once,
    watch_with_resumes_and_states,
    watch_that_fell_behind_and_began_again,
)


@pytest.mark.parametrize("write", GOOD, ids=lambda each: each.__name__)
def test_a_good_history(write: Callable[[Script], None]) -> None:
    script = Script()
    write(script)
    report = script.check()
    assert report.explanation() == []
    assert report.check_result is CheckResult.VALID


def test_what_exceeds_the_budget_is_called_so() -> None:
    script = Script()
    for value in range(8):
        script.set("c1", str(value), (0, 100))
    script.get("c2", "no such value", (101, 102))
    assert check(script.history, steps_max=50).check_result is CheckResult.UNKNOWN
    assert check(script.history, steps_max=50).undecided == [B]
    assert check(script.history).check_result is CheckResult.INVALID


def test_the_shortest_failing_prefix_is_explained() -> None:
    script = Script()
    for value in range(30):
        script.set("c1", str(value), (10 * value, 10 * value + 1))
    script.get("c2", "28", (1000, 1001))
    script.get("c2", "29", (1002, 1003))
    (violation,) = script.check().violations
    numbers = {each.number for each in violation.operations}
    assert 30 in numbers
    assert 31 not in numbers
    text = "\n".join(script.check().explanation())
    assert "#30 read linearizable -> exists=true configs={a=28}" in text
    assert "#29 set a=29 -> done" in text


def test_many_writes_of_unknown_outcome_stay_cheap() -> None:
    script = Script()
    moment = 0
    for value in range(300):
        outcome = UNKNOWN if value % 5 == 0 else {}
        script.set("c1", str(value), (moment, None if outcome else moment + 1), **outcome)
        if value % 10 in (0, 9):
            script.get("c2", str(value), (moment + 2, moment + 3))
        moment += 5
    report = script.check()
    assert report.check_result is CheckResult.VALID
    assert report.steps < 20_000


def test_records_trimmed_before_reading_are_counted_and_not_checked() -> None:
    script = Script()
    script.set("c1", "1", (0, 1), offset=3, mark="m1")
    script.set("c1", "2", (2, 3), offset=6, mark="m2")
    script.trimmed_log((1, 2), (4, 6), marks={6: ("m2",)})
    script.delivered(("state", 0, 1), ("batch", 1, 2), ("batch", 2, 4), ("batch", 4, 6))

    report = script.check()

    assert report.check_result is CheckResult.VALID, report.explanation()
    assert (report.gaps, report.unread) == (1, 3)


def test_what_clients_were_answered_is_counted_without_deliveries() -> None:
    """Goal: only operations of known outcome count. Method: one of each sort, and deliveries."""
    s = Script()
    s.set("c1", "1", (0, 1))
    s.get("c2", "1", (2, 3))
    s.refused("c1", Action.DELETE, "UNKNOWN_TOPIC_OR_PARTITION", (4, 5))
    s.set("c1", "2", (6, None), **UNKNOWN)
    s.refused("c1", Action.DELETE, "", (7, 8))
    s.refused("c2", Action.READ, "UnavailableError", (9, 10), level=Level.LOCAL)
    s.delivered(("state", -1, 0), ("batch", 0, 1))

    report = s.check()

    assert (report.operations, report.answered, report.deliveries) == (6, 3, 2)
