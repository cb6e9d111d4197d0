"""Every seeded bug is found, and nothing is found in the intact replica."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from simulation.options import Options
from simulation.scenario.runner import run_file
from tests.simulation.experiments.experiment import Experiment
from tests.simulation.zoo import __main__ as command
from tests.simulation.zoo.bug import Bug
from tests.simulation.zoo.hunt import SCENARIOS, Find, hunt, violation_of
from tests.simulation.zoo.published import Row, published
from tests.simulation.zoo.table import BUGS

AHEAD = 60
"""Seeds to try after the published one, which changes whenever the simulator does."""
BUGS_MIN = 40
MEDIAN_MAX = 1_000
WORST_MAX = 200_000
INTACT = Bug("intact", lambda patch: None, (), "nothing is broken")


@cache
def _violation_of_intact(
    seed: int, options: Options, experiment: Experiment | None
) -> tuple[str, str] | None:
    return violation_of(replace(INTACT, options=options, experiment=experiment), seed)


def _check(bug: Bug, found: Find | None, first: int) -> None:
    assert found is not None, f"{bug.name} was not noticed"
    assert found.caught_by in bug.caught_by, found.evidence
    if bug.scenario:
        assert run_file(SCENARIOS / bug.scenario) == []
    for seed in range(first, found.seed + 1):
        assert _violation_of_intact(seed, bug.options, bug.experiment) is None


def _rows() -> dict[str, Row]:
    return {row.name: row for row in published()}


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_it_is_found_from_the_published_seed_on(bug: Bug) -> None:
    """Break the replica and run seeds from the known one on; then run them without the bug."""
    first = max(1, _rows()[bug.name].seed)
    _check(bug, hunt(bug, range(first, first + AHEAD)), first)


@pytest.mark.nightly
def test_all_are_found_from_the_first_seed_on(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The hunt from seed 1, without a chosen seed. Writes the table."""
    result = tmp_path / "zoo.json"
    status = command.main(["--result", str(result)])
    rows = [Row(**each) for each in json.loads(result.read_text(encoding="utf-8"))]
    for row in rows:
        record_property(row.name, f"{row.ran} {row.seed} {row.caught_by}")
    assert status == 0, [row for row in rows if not row.is_found or not row.is_expected]
    seeds = [row.seed for row in rows if row.seed > 0]
    assert statistics.median(seeds) <= MEDIAN_MAX
    assert max(seeds) <= WORST_MAX
    by_name = {bug.name: bug for bug in BUGS}
    for row in rows:
        bug = by_name[row.name]
        for seed in range(1, row.seed + 1):
            intact = _violation_of_intact(seed, bug.options, bug.experiment)
            assert intact is None, (row.name, seed)


def test_the_published_table_is_of_these_bugs() -> None:
    """Every bug has been hunted and is described as it is now; enough of them, soon enough."""
    rows = _rows()
    assert sorted(rows) == sorted(bug.name for bug in BUGS)
    for bug in BUGS:
        row = rows[bug.name]
        assert (row.what, row.source) == (bug.what, bug.source)
        assert row.ran == bug.ran
        assert row.caught_by in bug.caught_by
    seeds = [row.seed for row in rows.values() if row.seed > 0]
    assert len(rows) >= BUGS_MIN
    assert statistics.median(seeds) <= MEDIAN_MAX
    assert max(seeds) <= WORST_MAX


def test_most_bugs_are_found_by_seeds() -> None:
    """Scenarios, which are written for one bug, may find only a few of them."""
    assert sum(not bug.is_drawn for bug in BUGS) <= len(BUGS) // 4


def test_nothing_is_found_where_nothing_is_broken() -> None:
    assert hunt(INTACT, range(1, 2)) is None


def test_the_command_lists_bugs_that_it_did_not_find(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug that nothing notices makes the command fail, and is named."""
    monkeypatch.setattr(command, "BUGS", (INTACT,))
    assert command.main(["--seeds-max", "1"]) == 1
    assert "intact" in capsys.readouterr().out


def test_the_command_complains_of_a_find_by_something_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug that an unexpected property catches needs a review."""
    by_scenario = next(bug for bug in BUGS if bug.scenario)
    stranger = Bug("stranger", by_scenario.install, (), "", scenario=by_scenario.scenario)
    monkeypatch.setattr(command, "BUGS", (stranger,))
    assert command.main(["-o", "json"]) == 1
    assert '"is_expected": false' in capsys.readouterr().out
