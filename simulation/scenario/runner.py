"""Run a scenario, compare its output, and check the invariants after each command."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path

from simulation.scenario.coverage import Coverage
from simulation.scenario.grammar import Block, Scenario, ScenarioError, parse, parse_command
from simulation.scenario.registry import run_command
from simulation.scenario.world import World


@dataclass(frozen=True, slots=True)
class Difference:
    """A block whose output differs from its file."""

    block: Block
    seen: list[str]

    def text(self, path: Path) -> str:
        """Return the command and the lines that differ."""
        lines = difflib.unified_diff(
            self.block.output, self.seen, "expected", "seen", lineterm="", n=2
        )
        return "\n".join([f"{path}:{self.block.line}: {self.block.command}", *lines])


def run_scenario(
    scenario: Scenario, coverage: Coverage | None = None
) -> tuple[Scenario, list[Difference]]:
    """Run every block; return the scenario with the output seen, and the differences.

    ``coverage`` counts what the nodes did.

    Raises:
        ScenarioError: A command cannot be carried out; names file and line.
        Violation: A standing invariant does not hold after a command.
    """
    world = World(coverage=coverage if coverage is not None else Coverage())
    world.coverage.begin()
    blocks, differences = [], []
    for block in scenario.blocks:
        try:
            run_command(world, parse_command(block.command))
        except ScenarioError as error:
            raise ScenarioError(f"{scenario.path}:{block.line}: {error}") from error
        except BaseException as error:
            error.add_note(f"at {scenario.path}:{block.line}: {block.command}")
            raise
        seen = world.outlet.take()
        blocks.append(replace(block, output=seen))
        if seen != block.output:
            differences.append(Difference(block, seen))
    return replace(scenario, blocks=blocks), differences


def run_file(
    path: Path, *, rewrite: bool = False, coverage: Coverage | None = None
) -> list[Difference]:
    """Run a scenario file; with ``rewrite`` replace its outputs by what was seen.

    Raises:
        ScenarioError: The file cannot be read or rewritten, or is not a scenario.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not a scenario: no UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from error
    seen, differences = run_scenario(parse(path, text), coverage)
    if rewrite:
        try:
            path.write_text(seen.text(), encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"{path}: cannot be rewritten: {error.strerror}") from error
    return differences
