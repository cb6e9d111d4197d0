"""A run with a slow fail-over fails, and reports the excess."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench.failover_bounds import LONGEST_MAX_MS, P50_MAX_MS, exceeded
from tests.evidence.lanes import BY_NAME

KEPT = [60.0, 80.0, 225.0, 600.0]
SLOW = [60.0, 226.0, 226.0, 600.0]
ONE_LONG = [60.0, 80.0, 90.0, 601.0]


def broken(times_ms: list[float]) -> list[str]:
    return exceeded(times_ms, p50_max_ms=P50_MAX_MS, longest_max_ms=LONGEST_MAX_MS)


def test_the_bounds_themselves_are_kept() -> None:
    assert broken([P50_MAX_MS, P50_MAX_MS, LONGEST_MAX_MS]) == []
    assert broken(KEPT) == []


def test_each_bound_is_named_with_what_was_seen() -> None:
    assert broken(SLOW) == [
        "fail-over: p50 of 4 kills is 226 ms, above the bound of 225 ms",
    ]
    assert broken(ONE_LONG) == [
        "fail-over: the longest of 4 kills is 601 ms, above the bound of 600 ms",
    ]
    assert len(broken([5_000.0])) == 2


def test_no_kill_keeps_no_bound() -> None:
    assert broken([]) == ["fail-over: no leader was killed, so the bounds were not checked"]
    assert exceeded([], p50_max_ms=None, longest_max_ms=None) == []


@pytest.mark.parametrize(
    ("times", "bounds", "status"),
    [
        (KEPT, ("225", "600"), 0),
        (SLOW, ("225", "600"), 1),
        (ONE_LONG, ("225", "600"), 1),
        (SLOW, (), 0),
    ],
)
def test_the_command_fails_by_its_bounds_and_leaves_its_figures(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    times: list[float],
    bounds: tuple[str, ...],
    status: int,
) -> None:
    def measured(_options: argparse.Namespace) -> dict[str, Any]:
        return {"failover": bench._spread(times, "_ms"), "peers": {}, "writes": []}

    place = tmp_path / "figures"
    names = ("--fail-over-p50-max", "--fail-over-max")
    given = [word for pair in zip(names, bounds, strict=False) for word in pair]
    monkeypatch.setattr(bench, "_measure", measured)
    monkeypatch.setattr(
        sys, "argv", ["bench", "--only", "failover", *given, "--output", str(place)]
    )
    assert bench.main() == status
    assert ("above the bound" in capsys.readouterr().err) == bool(status)
    assert json.loads(place.read_text())["failover"]["all"] == times


def test_a_bound_without_its_measurement_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--only", "image", "--fail-over-max", "600"])
    with pytest.raises(SystemExit):
        bench.main()


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_the_lane_of_the_evidence_is_evaluated_by_them(scale: str) -> None:
    assert "--kills 50 --fail-over-p50-max 225 --fail-over-max 600" in (
        BY_NAME["failover"].command(scale)
    )
