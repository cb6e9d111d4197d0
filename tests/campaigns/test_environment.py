"""Faults of a node's environment: each has an effect, and no write is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns import environment
from tests.campaigns.environment import NotPossibleError, Seen, faults, run_faults

NIGHTLY = ("memory_limit", "descriptors")
"""The faults that take longest. ``test_descriptors.py`` covers lack of descriptors as well."""


def test_a_fault_without_an_effect_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "faults", lambda: {"x": lambda _: Seen("", "goes on")})
    report = run_faults(tmp_path, ["x"], 1, lambda _: None)
    assert report.problems == ["x: it had no effect"]


def test_a_fault_that_cannot_be_made_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impossible(_: Path) -> Seen:
        raise NotPossibleError("mounting needs root")

    monkeypatch.setattr(environment, "faults", lambda: {"x": impossible})
    report = run_faults(tmp_path, ["x"], 1, lambda _: None)
    assert not report.is_good
    assert report.shortfalls == ["x was not done: mounting needs root"]


def test_what_is_not_as_expected_is_a_problem() -> None:
    seen = Seen("it was there")
    seen.expect(True, "right")
    seen.expect(False, "wrong")
    assert seen.problems == ["wrong"]


def run(folder: Path, name: str) -> None:
    try:
        seen = faults()[name](folder / "home")
    except NotPossibleError as error:
        pytest.skip(f"needs what this machine does not allow: {error}")
    assert seen.effect, "it had no effect"
    assert seen.problems == []


@pytest.mark.integration
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in NIGHTLY else pytest.mark.long)
        for name in faults()
    ],
)
def test_a_fault_has_its_effect_and_loses_nothing(tmp_path: Path, name: str) -> None:
    run(tmp_path, name)
