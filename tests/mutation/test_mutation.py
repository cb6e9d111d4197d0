"""Mutants drop rules; survivors are counted, and only a listed reason excuses one."""

from __future__ import annotations

import json
import math
import signal
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorum.core.voters import majority
from tests.mutation import __main__ as command
from tests.mutation.children import outcome
from tests.mutation.mutants import Mutant, mutants_of, replaced_code
from tests.mutation.operators import operators
from tests.mutation.replacing import Functions
from tests.mutation.report import Share, report
from tests.mutation.simulated import Seed
from tests.mutation.survivors import Survivor, listed, reasons

CORE = Path(majority.__file__).parents[1]
NIGHTS = 10
"""After so many every mutant has been run once."""
KILLED = {"function": "election.grant", "status": "killed"}
CHANGE = "- if vote.is_known:\n+ if (vote.is_known) and False:"
SURVIVED = {"function": "election.grant", "status": "survived", "change": CHANGE}
SOURCE = """
from functools import cache

def grant(core, vote: int = 3):
    if core.epoch > vote.epoch and not vote.pre_vote:
        core.refuse(vote)
    local = 1
    core.count += 1
    return True

@cache
def double(number):
    return [each * 2 for each in (number,)][0]

class Pair:
    @property
    def first(self):
        return 1 if isinstance(self, (Pair, 7)) else 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "rules.py"
    found.write_text(SOURCE)
    return found


def changes(mutants: list[Mutant]) -> list[str]:
    return [each.change() for each in mutants]


def test_conditions_operands_calls_and_stores_are_dropped(file: Path) -> None:
    all_of_them = changes(mutants_of(file, operators(0, 1)))
    before = "- if core.epoch > vote.epoch and not vote.pre_vote:\n+ if"
    for one in (
        f"{before} (core.epoch > vote.epoch and not vote.pre_vote) and False:",
        f"{before} (core.epoch > vote.epoch and not vote.pre_vote) or True:",
        f"{before} (core.epoch > vote.epoch):",
        f"{before} (not vote.pre_vote):",
        f"{before} core.epoch >= vote.epoch and not vote.pre_vote:",
        f"{before} core.epoch > vote.epoch and vote.pre_vote:",
        "- return True\n+ return False",
        "- local = 1\n+ local = 2",
        "- core.refuse(vote)\n+ pass",
        "- core.count += 1\n+ pass",
    ):
        assert all_of_them.count(one) == 1, one
    assert not any("int = 4" in each or "8)" in each for each in all_of_them), "defaults, types"


def test_a_mutant_names_its_function_and_the_lines_of_its_statement(file: Path) -> None:
    made = {each.change(): each for each in mutants_of(file, operators(0, 1))}
    dropped = made["- core.refuse(vote)\n+ pass"]
    assert (dropped.module, dropped.function, dropped.lines) == (
        "rules",
        "rules.grant",
        range(6, 7),
    )
    other = next(each for each in made.values() if each.function == "rules.Pair.first")
    assert other.lines == range(18, 19)
    condition = next(each for each in made.values() if "or True" in each.change())
    assert condition.lines == range(5, 6), "the head alone"


def test_the_shares_are_the_whole(file: Path) -> None:
    whole = sorted(changes(mutants_of(file, operators(0, 1))))
    shares = [changes(mutants_of(file, operators(part, 3))) for part in range(3)]
    assert sorted(each for share in shares for each in share) == whole
    assert all(len(share) < len(whole) for share in shares)


def test_functions_that_others_hold_get_the_mutants_code(file: Path) -> None:
    """Method: a property, and a cached function with a comprehension that has a result already."""
    names: dict[str, object] = {}
    exec(compile(SOURCE, str(file), "exec"), names)
    double, pair = names["double"], names["Pair"]
    assert callable(double)
    assert callable(pair)
    assert (double(4), pair().first) == (8, 1)
    functions = Functions(file.parent)
    for mutant in mutants_of(file, operators(0, 1)):
        if "* 3" in mutant.change() or "return 2 if" in mutant.change():
            assert functions.replace(file, replaced_code(mutant)) >= 3
            seen = (double(4), pair().first)
            assert seen == ((12, 1) if "* 3" in mutant.change() else (8, 2))


@pytest.mark.parametrize(
    ("output_lines", "wait_status", "timed_out", "expected"),
    [
        (["a", "b", "killed"], 0, False, ("killed", "b")),
        (["a", "survived"], 0, False, ("survived", "a")),
        (["a", "unfinished"], 0, False, ("unfinished", "a")),
        # Processor time is up: the mutant did not end.
        (["a", "b"], int(signal.SIGPROF), False, ("timeout", "b")),
        (["a"], int(signal.SIGSEGV), False, ("crashed", "a")),
        (["a"], 1 << 8, False, ("crashed", "a")),
        # The clock, or a kill from outside, proves nothing about the mutant.
        (["a"], int(signal.SIGKILL), True, ("unknown", "a")),
        (["a"], int(signal.SIGKILL), False, ("unknown", "a")),
        # No test was begun: the mutant could not be made.
        ([], 1 << 8, False, ("error", "")),
        (["error"], 0, False, ("error", "")),
    ],
)
def test_only_tests_and_processor_time_kill(
    output_lines: list[str], wait_status: int, timed_out: bool, expected: tuple[str, str]
) -> None:
    assert outcome(output_lines, wait_status, timed_out=timed_out) == expected


@pytest.mark.parametrize("status", ["survived", "unfinished", "no tests", "unknown", "error"])
def test_what_is_not_known_to_be_killed_counts_as_a_survivor(status: str) -> None:
    found = report([KILLED, {**SURVIVED, "status": status}], frozenset())
    assert (found.killed, len(found.without_a_reason)) == (1, 1)


def test_a_survivor_counts_unless_its_reason_is_listed() -> None:
    rows = [KILLED] * 19 + [SURVIVED]
    known = frozenset({Survivor("election.grant", CHANGE)})
    assert report(rows, known).without_a_reason == []
    assert report(rows, known).killed_share == 0.95
    assert report(rows, frozenset()).without_a_reason == [Survivor("election.grant", CHANGE)]


def test_kills_are_given_by_stage() -> None:
    simulated = {**KILLED, "stage": "simulator"}
    assert report([KILLED, simulated, SURVIVED], frozenset()).stages == {
        "tests": 1,
        "simulator": 1,
    }


@pytest.mark.parametrize("breaks", [False, True])
def test_a_seed_of_the_simulator_notices_a_broken_core(
    breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: half of the voters are enough for a majority."""
    if breaks:
        monkeypatch.setattr(majority, "quorum_size", lambda voters: voters // 2)
    assert any(Seed("network", number).fails() for number in range(1, 4)) == breaks


def test_only_survivors_are_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps({"rows": [KILLED, SURVIVED]}))
    orders = []
    came_to = {"rows": [KILLED], "made": 1, "seconds": 1.0, "cpu_seconds": 1.0}
    monkeypatch.setattr(command, "run", lambda order, rows: orders.append(order) or came_to)
    ended = CliRunner().invoke(command.main, ["--again", str(rows)])
    assert ended.exit_code == 0, ended.output
    assert orders[0]["only"] == [("election.grant", CHANGE)]


@pytest.mark.parametrize(("arguments", "budget"), [((), math.inf), (("--budget", "4"), 4.0)])
def test_a_budget_is_part_of_the_order(
    arguments: tuple[str, ...], budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = []
    came_to = {"rows": [KILLED], "made": 1, "seconds": 1.0, "cpu_seconds": 1.0}
    monkeypatch.setattr(command, "run", lambda order, rows: orders.append(order) or came_to)
    ended = CliRunner().invoke(command.main, [*arguments])
    assert ended.exit_code == 0, ended.output
    assert json.loads(json.dumps(orders[0]))["budget"] == budget


def test_shares_are_given_by_module_with_their_confidence() -> None:
    other = {"function": "peers.add", "status": "killed"}
    found = report([KILLED] * 9 + [SURVIVED, other], frozenset())
    assert [(each.name, each.mutants, each.killed) for each in found.by_module()] == [
        ("election", 10, 9),
        ("peers", 1, 1),
    ]
    low, high = Share("all", 400, 380).interval()
    assert (round(low, 3), round(high, 3)) == (0.924, 0.967)
    assert Share("none", 0, 0).interval() == (0.0, 1.0)


@pytest.mark.parametrize(
    ("killed", "known", "status"), [(19, True, 0), (18, True, 1), (19, False, 1)]
)
def test_the_command_fails_for_too_many_and_for_one_without_a_reason(
    monkeypatch: pytest.MonkeyPatch, killed: int, known: bool, status: int
) -> None:
    came_to = {
        "rows": [KILLED] * killed + [SURVIVED],
        "made": 100,
        "seconds": 60.0,
        "cpu_seconds": 6.0,
    }
    monkeypatch.setattr(command, "run", lambda *_: came_to)
    survivors = frozenset({Survivor("election.grant", CHANGE)} if known else ())
    monkeypatch.setattr(command, "listed", lambda: survivors)
    for form in ("text", "json"):
        ended = CliRunner().invoke(command.main, ["-o", form])
        assert ended.exit_code == status, ended.output


def test_an_entry_needs_a_reason_and_comes_once(tmp_path: Path) -> None:
    entry = '[[survivor]]\nfunction = "a.b"\nchange = """\n- x\n+ y\n"""\nreason = "{}"\n'
    file = tmp_path / "survivors.toml"
    file.write_text(entry.format("the value is never read"))
    assert reasons(file) == {Survivor("a.b", "- x\n+ y"): "the value is never read"}
    for text in (entry.format(""), entry.format("r") * 2):
        file.write_text(text)
        with pytest.raises(ValueError, match="one entry, with a reason"):
            reasons(file)
    assert isinstance(listed(), frozenset)


@pytest.mark.parametrize("share", ["3/2", "0/2", "1", "a/b"])
def test_a_share_out_of_range_is_a_usage_error(share: str) -> None:
    ended = CliRunner().invoke(command.main, ["--share", share])
    assert ended.exit_code == 2
    assert "K must be from 1 to N" in ended.output


@pytest.mark.nightly
def test_a_tenth_of_the_mutants_of_the_core_is_noticed() -> None:
    """Goal: at least 95 % are killed, and every survivor is listed. Method: a tenth each night."""
    share = f"{time.gmtime().tm_yday % NIGHTS + 1}/{NIGHTS}"
    ended = CliRunner().invoke(command.main, ["--share", share])
    assert ended.exit_code == 0, f"share {share}\n{ended.output}"


@pytest.mark.long
def test_every_listed_survivor_is_a_mutant_of_the_code_as_it_is() -> None:
    """An entry for renamed code is stale, and its mutant counts as open again."""
    functions = {each.function for each in listed()}
    modules = {each.partition(".")[0] for each in functions}
    found = {
        Survivor(mutant.function, mutant.change())
        for path in sorted(CORE.rglob("*.py"))
        if path.stem in modules
        for mutant in mutants_of(path, operators(0, 1))
        if mutant.function in functions
    }
    assert listed() - found == frozenset()
