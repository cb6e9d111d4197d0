"""The runner itself: its input, its reports, and that it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import simulation.scenario.commands
from quorum.core.replication import commitment
from quorum.core.state.roles import Leader
from simulation.invariants.violation import Violation
from simulation.scenario.command_line import main
from simulation.scenario.grammar import ScenarioError, parse, parse_command
from simulation.scenario.outlet import Kind, Outlet
from simulation.scenario.registry import COMMANDS, descriptions
from simulation.scenario.runner import run_file, run_scenario

COMMANDS_DIRECTORY = Path(simulation.scenario.commands.__path__[0])
HERE = Path("a.scn")

SMALL = """# Shows what one voter takes itself for.

cluster voters=(1)
----
1: voters (1) at -1
1: Unattached -> Prospective epoch=0 (election-timeout)
1: Prospective -> Candidate epoch=1 (pre-vote-won)
1: Candidate -> Leader epoch=1 leader=1 (vote-won)

# A comment that stays.
show roles
----
1 Leader epoch=1 leader=none log=[0,0) hw=0
"""


def test_a_file_is_written_back_as_it_was_read() -> None:
    assert parse(HERE, SMALL).text() == SMALL


def test_equal_outputs_are_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "small.scn"
    path.write_text(SMALL, encoding="utf-8")
    assert run_file(path) == []


def test_a_differing_output_is_shown_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "small.scn"
    path.write_text(SMALL.replace("1 Leader", "1 Follower"), encoding="utf-8")
    shown = CliRunner().invoke(main, [str(path)])
    assert shown.exit_code == 1
    assert f"{path}:11: show roles" in shown.output
    assert "-1 Follower epoch=1" in shown.output
    assert "+1 Leader epoch=1" in shown.output


def test_rewrite_puts_what_was_seen_in_place(tmp_path: Path) -> None:
    path = tmp_path / "small.scn"
    path.write_text(SMALL.replace("1 Leader", "1 Follower"), encoding="utf-8")
    assert CliRunner().invoke(main, ["--rewrite", str(path)]).exit_code == 0
    assert path.read_text(encoding="utf-8") == SMALL


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cluster voters=(1)\n----\nok\n", "a.scn:1: a scenario begins with comment lines"),
        ("# Goal.\n\ncluster voters=(1)\nok\n", "a.scn:3: a command is followed by ----"),
        ("# Goal.\n\n# Nothing below.\n", "a.scn:3: comments without a command"),
    ],
)
def test_what_does_not_fit_the_grammar_is_named(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        parse(HERE, text)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("dance 1", "there is no command dance"),
        ("tick 1", "tick needs ms="),
        ("tick one ms=1", "a node is a number, not 'one'"),
        ("tick 1 ms=1 much=2", "tick does not take much"),
        ("tick 7 ms=1", "there is no node 7"),
        ("restart 1", "node 1 is running"),
        ("deliver type=Vote", "no message in flight matches"),
        ("cut 1+2", "1+2 is no link"),
        ("load 1 x:a", "an epoch is a number"),
        ("send 2->1 Vote epoch=1", "needs last= with a position"),
        ("show feelings", "show: one of"),
        ("load 1 x", "neither epoch:item nor"),
        ("crash 1 lose=heart", "lose is one of"),
    ],
)
def test_a_command_that_makes_no_sense_names_its_place(command: str, problem: str) -> None:
    text = f"# Goal.\n\nquiet on\n----\nok\n\ncluster voters=(1)\n----\nok\n\n{command}\n----\nok\n"
    with pytest.raises(ScenarioError, match=r"a\.scn:11: ") as caught:
        run_scenario(parse(HERE, text))
    assert problem in str(caught.value)


@pytest.mark.interpreted
def test_a_broken_core_is_caught_although_no_text_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: the standing invariants run. Method: a leader that commits without a majority."""

    def alone(core: object, leader: Leader) -> list[int]:
        return [core.log.flushed_end]  # type: ignore[attr-defined]

    monkeypatch.setattr(commitment, "voter_ends", alone)
    commands = ("quiet on", "cluster voters=(1,2,3)", "elect 1")
    text = "# Goal.\n\n" + "\n\n".join(f"{each}\n----" for each in commands) + "\n"
    with pytest.raises(Violation, match="committed-on-majority") as caught:
        run_scenario(parse(HERE, text))
    assert caught.value.__notes__ == ["at a.scn:9: elect 1"]


def test_every_command_is_one_file_and_is_explained() -> None:
    files = {path.stem for path in COMMANDS_DIRECTORY.glob("[!_]*.py")}
    assert files == set(COMMANDS)
    starts = [line.split()[0] for line in descriptions() if not line.startswith(" ")]
    assert starts == list(COMMANDS)


def test_two_runs_print_the_same(tmp_path: Path) -> None:
    """Goal: nothing in an output depends on the process. Method: one file, twice."""
    path = Path(__file__).parent / "testdata" / "restart" / "torn_tail.scn"
    scenario = parse(path, path.read_text(encoding="utf-8"))
    assert run_scenario(scenario)[0].text() == run_scenario(scenario)[0].text()


def test_arguments_are_words_names_and_lists() -> None:
    args = parse_command("cluster 1->2 voters=(1,2) seed=7")
    assert (args.word("a link"), args.numbers("voters"), args.number("seed")) == ("1->2", (1, 2), 7)
    args.finish()


def test_lines_of_one_step_are_in_the_order_in_which_a_reader_asks() -> None:
    outlet = Outlet()
    outlet.announce(Kind.MESSAGE, "sent")
    outlet.announce(Kind.EVENT, "decided")
    outlet.end_step()
    outlet.announce(Kind.EVENT, "later")
    assert outlet.take() == ["decided", "sent", "later"]
    outlet.silence("messages")
    outlet.announce(Kind.MESSAGE, "sent")
    assert outlet.take() == ["ok"]
