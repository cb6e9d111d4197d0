"""A mutant's process: processor time ends it, the clock alone does not, and a slow machine neither.

Method: tests that spin, wait and fail take the place of the real ones in the forked process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import libcst
import psutil
import pytest

from tests.mutation import campaign as module
from tests.mutation.campaign import Campaign, Order
from tests.mutation.children import Child, ended
from tests.mutation.mutants import Mutant
from tests.mutation.recorded import Recordings

MUTANT = Mutant(Path("rules.py"), "rules.grant", range(1, 2), libcst.Pass(), libcst.Pass())


def behave(name: str) -> bool:
    """Replace a test; return whether it fails."""
    while name == "spins":
        pass
    if name == "waits":
        threading.Event().wait()
    return name == "fails"


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    monkeypatch.setattr(module, "TEST_CPU_SECONDS", 0.05)
    monkeypatch.setattr(module, "WALL_FACTOR", 20)
    monkeypatch.setattr(module, "replaced_code", lambda mutant: {})
    monkeypatch.setattr(module, "_fails", lambda item: behave(item))
    monkeypatch.setattr(Mutant, "change", lambda mutant: "- a\n+ b")
    made = Campaign(Order((), 0, 1, 0, 1, 1))
    for name in ("passes", "fails", "spins", "waits"):
        made._items[name] = name  # type: ignore[assignment]
        made._known.seconds[name] = 0.0
    return made


def test_a_starved_mutant_gets_its_processor_time(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the clock's limit is far below the processor's; the test spins all the same. However
    busy the machine is, each look at the process comes after it got some processor time.
    """
    has_worked = Child.has_worked

    def look(child: Child) -> bool:
        process = psutil.Process(child.pid)
        while sum(process.cpu_times()[:2]) <= child.cpu_seconds:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
        return has_worked(child)

    monkeypatch.setattr(Child, "has_worked", look)
    monkeypatch.setattr(module, "TEST_CPU_SECONDS", 1.5)
    monkeypatch.setattr(module, "WALL_FACTOR", 0)
    assert not run(campaign, ["spins"])
    assert [row["status"] for row in campaign.rows] == ["timeout"]


def run(campaign: Campaign, names: list[str], *, replaced: int = 1, is_again: bool = False) -> bool:
    """Run one mutant to its end; whether it is to be tried again."""
    functions = SimpleNamespace(replace=lambda path, code: replaced)
    child = campaign._fork(MUTANT, names, functions, is_again=is_again)  # type: ignore[arg-type]
    while not ended([child]):
        pass
    return campaign._close(child)


@pytest.mark.parametrize(
    ("names", "status", "test"),
    [
        (["passes", "fails", "spins"], "killed", "fails"),
        (["passes", "spins", "fails"], "timeout", "spins"),
    ],
)
def test_the_first_failure_and_used_up_processor_time_kill(
    campaign: Campaign, names: list[str], status: str, test: str
) -> None:
    assert not run(campaign, names)
    found = [(row["function"], row["status"], row["test"], row["stage"]) for row in campaign.rows]
    assert found == [("rules.grant", status, test, "tests")]


def test_the_clock_alone_kills_nothing(campaign: Campaign) -> None:
    """Goal: a loaded machine makes no mutant look killed. Method: a test without processor time."""
    assert run(campaign, ["waits"]), "once more"
    assert campaign.rows == []
    assert not run(campaign, ["waits"], is_again=True)
    assert [row["status"] for row in campaign.rows] == ["unknown"]


def test_a_mutant_that_nothing_notices_survives(campaign: Campaign) -> None:
    assert not run(campaign, ["passes"])
    assert [(row["status"], row["tests"]) for row in campaign.rows] == [("survived", 1)]


@pytest.mark.parametrize(
    ("budget", "names", "status"),
    [
        (0.0, ["fails"], "unfinished"),
        (0.0, ["passes"], "unfinished"),
        (60.0, ["fails"], "killed"),
        (60.0, ["passes"], "survived"),
    ],
)
def test_a_mutant_whose_budget_has_ended_is_not_killed(
    campaign: Campaign, budget: float, names: list[str], status: str
) -> None:
    """Goal: the killed share of a run with a budget is a lower bound."""
    campaign._order = replace(campaign._order, budget=budget)
    assert not run(campaign, names)
    assert [row["status"] for row in campaign.rows] == [status]


def test_the_simulator_comes_after_the_budget(campaign: Campaign) -> None:
    campaign._order = replace(campaign._order, budget=0.0)
    for behaviour in ("fails", "passes"):
        assert not run(campaign, with_seed(campaign, behaviour))
    assert [row["status"] for row in campaign.rows] == ["killed", "unfinished"]


def test_a_mutant_that_is_not_in_place_is_no_mutant(campaign: Campaign) -> None:
    assert not run(campaign, ["fails"], replaced=0)
    assert [row["status"] for row in campaign.rows] == ["error"]


def with_seed(campaign: Campaign, behaviour: str) -> list[str]:
    """The names of a test that passes and of a seed that behaves in this way."""
    name = f"simulator: {behaviour} 1"
    campaign._items[name] = behaviour  # type: ignore[assignment]
    campaign._known.seconds[name] = 0.0
    return ["passes", name]


@pytest.mark.parametrize(("behaviour", "status"), [("fails", "killed"), ("passes", "survived")])
def test_what_survives_the_tests_is_simulated(
    campaign: Campaign, behaviour: str, status: str
) -> None:
    assert not run(campaign, with_seed(campaign, behaviour))
    stage = "simulator" if status == "killed" else None
    assert [(row["status"], row.get("stage")) for row in campaign.rows] == [(status, stage)]


def test_the_simulator_gets_so_much_processor_time_and_no_more(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a mutant that is only slow is not killed. Method: the time is over at once."""
    monkeypatch.setattr(module, "SIMULATED_CPU_SECONDS", 0.0)
    assert not run(campaign, with_seed(campaign, "fails"))
    assert [row["status"] for row in campaign.rows] == ["survived"]


def test_killers_come_first_then_tests_of_the_package_then_quick_ones(campaign: Campaign) -> None:
    """Goal: a budget that ends early still covers the tests that are most likely to notice."""
    path = Path("quorum/core/election/rules.py")
    mutant = replace(MUTANT, path=path)
    names = [
        "tests/unit/core/voters/test_b.py::killer",
        "tests/unit/core/election/test_a.py::quick",
        "tests/unit/core/voters/test_b.py::quickest",
        "tests/unit/core/election/test_a.py::slow",
        "tests/unit/core/voters/test_b.py::quicker",
    ]
    campaign._known.by_line = {path: {1: set(names)}}
    campaign._known.seconds = dict(zip(names, (9.0, 3.9, 1.0, 7.9, 2.0), strict=True))
    campaign._kills[mutant.function][names[0]] += 1
    assert campaign._tests(mutant) == names


def test_tests_come_before_the_simulator(campaign: Campaign) -> None:
    """Method: the seed is quicker and has killed another mutant of the function before."""
    names = with_seed(campaign, "fails")
    campaign._known.by_line = {MUTANT.path: {1: set(names)}}
    campaign._known.seconds["passes"] = 5.0
    campaign._kills[MUTANT.function][names[1]] += 1
    assert campaign._tests(MUTANT) == names


@pytest.mark.parametrize(("names", "kills"), [(["passes"], False), (["passes", "fails"], True)])
def test_tests_that_fail_in_any_process_like_a_mutants_prove_nothing(
    campaign: Campaign, names: list[str], kills: bool
) -> None:
    """Goal: something that the first process left behind makes no mutant look killed."""
    functions = SimpleNamespace(replace=lambda path, code: 1)
    assert campaign._kills_unchanged(MUTANT, names, functions) == kills  # type: ignore[arg-type]
    assert (campaign.rows, campaign._kills) == ([], {})


def test_where_every_recording_is_known_nothing_is_measured(
    tmp_path: Path,
) -> None:
    """Goal: a second run starts. Method: coverage warns if it measures nothing; here warnings
    are errors.
    """
    known = Recordings(Path.cwd(), tmp_path / "recordings")
    known.keep("passes", Path(__file__), 0.5, {"rules.py": frozenset({1})})
    known.save()
    campaign = Campaign(Order((), 0, 1, 0, 1, 1), None, tmp_path / "recordings")
    campaign._items["passes"] = SimpleNamespace(path=Path(__file__))  # type: ignore[assignment]
    campaign._learn()
    assert campaign._known.seconds == {"passes": 0.5}


def test_a_run_that_pytest_gives_up_ends_with_an_error(tmp_path: Path) -> None:
    """Goal: no figures of a run that was none. Method: a file of tests that does not exist."""
    order = {
        "modules": ["voting"], "part": 0, "parts": 1, "sample": 0, "seed": 1, "jobs": 1,
        "first_stage": True, "tests": [str(tmp_path / "absent.py")],
    }  # fmt: skip
    rows = tmp_path / "rows.json"
    command = [sys.executable, "-m", "tests.mutation.campaign", str(rows), str(tmp_path)]
    ended = subprocess.run(
        [*command, json.dumps(order)], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "USAGE_ERROR" in ended.stderr
    assert not rows.exists()


@pytest.fixture
def two_mutants(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """No test reaches the first mutant, and a test kills the second."""
    far = Mutant(MUTANT.path, "rules.far", range(9, 10), libcst.Pass(), libcst.Pass())
    items = dict(campaign._items)
    monkeypatch.setattr(campaign, "_order", replace(campaign._order, first_stage=True))
    monkeypatch.setattr(campaign, "_learn", lambda: campaign._items.update(items))
    monkeypatch.setattr(campaign, "_chosen", lambda: [far, MUTANT])
    monkeypatch.setattr(campaign, "_tests", lambda mutant: ["fails"] if mutant is MUTANT else [])
    monkeypatch.setattr(module, "Functions", lambda core: SimpleNamespace(replace=lambda *_: 1))
    monkeypatch.setattr(module.gc, "freeze", lambda: None)
    return campaign


def test_a_mutant_that_no_test_reaches_needs_no_control(
    two_mutants: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_mutants, "_kills_unchanged", lambda mutant, names, _: names == [])
    assert two_mutants.pytest_runtestloop(SimpleNamespace(items=()))  # type: ignore[arg-type]
    assert two_mutants.failed == []
    assert [row["status"] for row in two_mutants.rows] == ["no tests", "killed"]


def test_kills_count_only_while_unchanged_code_passes(
    two_mutants: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: what the first process leaves behind in the middle of a run makes no mutant look
    killed. Method: unchanged code passes once, and fails after the mutants.
    """
    fails = iter([False, True])
    monkeypatch.setattr(two_mutants, "_kills_unchanged", lambda *_: next(fails))
    monkeypatch.setattr(two_mutants, "_file", tmp_path / "rows.json")
    assert two_mutants.pytest_runtestloop(SimpleNamespace(items=()))  # type: ignore[arg-type]
    assert two_mutants.failed
    assert not (tmp_path / "rows.json").exists()


def test_a_control_forgets_no_kill(campaign: Campaign) -> None:
    """Killers of a function's other mutants are run first."""
    run(campaign, ["fails"])
    functions = SimpleNamespace(replace=lambda path, code: 1)
    assert not campaign._kills_unchanged(MUTANT, ["passes"], functions)  # type: ignore[arg-type]
    assert campaign._kills[MUTANT.function]["fails"] == 1
