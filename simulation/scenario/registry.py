"""All commands by name. The docstring of a command's module is its help text."""

from __future__ import annotations

from types import ModuleType

from simulation.scenario.commands import (
    advance,
    answer,
    backup,
    checkpoint,
    cluster,
    corrupt,
    crash,
    cut,
    deliver,
    drop,
    duplicate,
    elect,
    forge,
    hang,
    heal,
    hold,
    kill,
    load,
    lose,
    pause,
    persist,
    producer,
    propose,
    quiet,
    read,
    refuse,
    renew,
    resign,
    restart,
    scrub,
    send,
    settle,
    show,
    slow,
    tick,
    transfer,
    trim,
    voter,
    wall,
    wipe,
)
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World

_MODULES: tuple[ModuleType, ...] = (
    cluster,
    load,
    elect,
    tick,
    advance,
    propose,
    producer,
    read,
    deliver,
    drop,
    duplicate,
    send,
    answer,
    cut,
    hold,
    slow,
    heal,
    persist,
    hang,
    settle,
    checkpoint,
    trim,
    crash,
    kill,
    refuse,
    restart,
    corrupt,
    scrub,
    lose,
    forge,
    pause,
    wall,
    wipe,
    backup,
    resign,
    renew,
    transfer,
    voter,
    show,
    quiet,
)
COMMANDS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}


def run_command(world: World, args: Arguments) -> None:
    """Run one command.

    Raises:
        ScenarioError: There is no such command, or it does not take these arguments.
    """
    if args.name == "help":
        args.finish()
        world.outlet.print_lines(descriptions())
    elif args.name in COMMANDS:
        COMMANDS[args.name].run(world, args)
    else:
        raise ScenarioError(f"there is no command {args.name}; see help")


def descriptions() -> list[str]:
    """Return the help text of all commands, in the order in which scripts usually need them."""
    lines = []
    for module in _MODULES:
        first, *rest = [line for line in (module.__doc__ or "").strip().split("\n") if line]
        lines += [first, *(f"    {line}" for line in rest)]
    return lines
