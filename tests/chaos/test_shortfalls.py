"""The minima of a run count answered operations of clients; deliveries to watchers do not count."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from history.check import Report
from tests.chaos import __main__ as command
from tests.chaos.run import LONG_FAULTS_MIN, LONG_OPERATIONS_MIN, Result
from tests.chaos.tally import MISS_SECONDS_MAX, PROOFS_MIN, Tally
from tests.evidence.lanes import BY_NAME


def of(faults: int, answered: int) -> Result:
    report = Report("us", operations=10 * answered, answered=answered, deliveries=1_000_000)
    seen = Counter({"SIGKILL": faults - 1, "disk full": 1})
    missed = Counter({"fsync hangs": 1_000})
    return Result(1, 60.0, Tally(seen + missed, seen), report)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (of(300, 500_000), []),
        (of(299, 500_000), ["299 faults with an effect, at least 300 are needed"]),
        (
            of(300, 499_999),
            ["499,999 answered operations of clients, at least 500,000 are needed"],
        ),
    ],
)
def test_only_faults_and_answered_operations_count(result: Result, found: list[str]) -> None:
    assert found == result.shortfalls(
        faults_min=LONG_FAULTS_MIN, operations_min=LONG_OPERATIONS_MIN
    )


@pytest.mark.parametrize(
    ("least", "status"), [((), 0), (("300", "500"), 0), (("301", "500"), 1), (("300", "501"), 1)]
)
def test_the_command_fails_where_too_little_happened(
    least: tuple[str, ...],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*_: object, **__: Callable[[str], None]) -> SimpleNamespace:
        return SimpleNamespace(execute=lambda: of(300, 500))

    names = ("--faults-min", "--operations-min")
    given = [word for pair in zip(names, least, strict=False) for word in pair]
    monkeypatch.setattr(command, "Run", run)
    monkeypatch.setattr(sys, "argv", ["chaos", "--folder", str(tmp_path), *given])
    assert command.main() == status
    assert ("too little happened" in capsys.readouterr().err) == bool(status)


def test_a_kind_of_fault_that_never_had_an_effect_is_a_problem() -> None:
    tally = Tally()
    for _ in range(PROOFS_MIN):
        assert tally.without_effect() == []
        tally.add("two nodes parted", has_effect=False)
    assert tally.without_effect() == ["two nodes parted: none of 3 had an effect"]
    tally.add("two nodes parted", has_effect=True)
    assert tally.without_effect() == []
    assert tally.document()["faults_without_effect"] == PROOFS_MIN


def test_an_isolated_leader_that_leads_on_is_a_problem_unless_the_others_were_disturbed() -> None:
    tally = Tally()
    tally.add_isolated_leader(is_deposed=True, is_disturbed=True)
    tally.add_isolated_leader(is_deposed=False, is_disturbed=True)
    assert tally.without_effect() == []
    tally.add_isolated_leader(is_deposed=False, is_disturbed=False)
    assert tally.without_effect() == ["1 of 2 isolated leaders were not replaced"]
    document = tally.document()
    assert document["isolated_leaders"] == 3
    assert document["deposed_leaders"] == 1
    assert document["not_deposed_beside_another_fault"] == 1


def test_a_long_fault_without_an_effect_is_a_problem_unless_another_explains_it() -> None:
    tally = Tally()
    tally.add("fsync hangs", has_effect=True, seconds=9.0)
    tally.add("fsync hangs", has_effect=False, seconds=9.0, is_beside_another=True)
    tally.add("fsync hangs", has_effect=False, seconds=MISS_SECONDS_MAX)
    assert tally.without_effect() == []
    tally.add("fsync hangs", has_effect=False, seconds=4.0)
    assert tally.without_effect() == [
        "a fault of 4.0 s had no effect, and no other fault explains it"
    ]
    document = tally.document()
    assert document["faults_without_effect"] == 3
    assert document["without_effect_beside_another_fault"] == 1
    assert document["longest_other_without_effect_s"] == 4.0


def test_the_half_hour_of_the_evidence_is_held_to_them() -> None:
    assert "--faults-min 300 --operations-min 500000" in BY_NAME["chaos"].command("full")
