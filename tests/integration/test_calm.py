"""An hour of full write load and starved processors without a campaign."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.calm import WRITERS, measure_calm, problems

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

MINUTES = 60.0


def test_full_load_and_contention_cause_no_election(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """``--soak-minutes`` sets its length; ``python -m bench.calm`` prints the figures."""
    minutes = request.config.getoption("--soak-minutes")
    seen = measure_calm(
        tmp_path,
        minutes=MINUTES if minutes is None else float(minutes),
        writers=WRITERS,
        spinning=os.cpu_count() or 1,
    )
    print(seen)
    assert problems(seen) == []
