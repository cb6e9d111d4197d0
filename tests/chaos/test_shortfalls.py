"""A run counts by what clients were answered: deliveries to watchers do not make up for it."""

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
from tests.chaos.tally import PROOFS_MIN, Tally
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


def test_isolated_leaders_that_lead_on_are_a_problem() -> None:
    tally = Tally(isolated_leaders=PROOFS_MIN)
    assert tally.without_effect() == ["none of 3 isolated leaders was replaced"]
    tally.deposed_leaders = 1
    assert tally.without_effect() == []


def test_the_half_hour_of_the_evidence_is_held_to_them() -> None:
    assert "--faults-min 300 --operations-min 500000" in BY_NAME["chaos"].command("full")
