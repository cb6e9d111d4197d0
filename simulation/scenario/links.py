"""Names of links: ``1->2`` one way, ``1--2`` both ways, ``*`` for every other node."""

from __future__ import annotations

import re

from quorum.types import NodeId
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World

_LINK = re.compile(r"(\d+|\*)(->|--)(\d+|\*)")


def links_of(world: World, args: Arguments) -> set[tuple[NodeId, NodeId]]:
    """Return the links that the plain words of a command name."""
    found: set[tuple[NodeId, NodeId]] = set()
    for word in args.rest():
        match = _LINK.fullmatch(word)
        if match is None:
            raise ScenarioError(f"{args.name}: {word} is no link such as 1->2 or 1--*")
        pairs = {(a, b) for a in _ends(world, match[1]) for b in _ends(world, match[3]) if a != b}
        found |= pairs
        if match[2] == "--":
            found |= {(b, a) for a, b in pairs}
    args.finish()
    if not found:
        raise ScenarioError(f"{args.name} needs a link such as 1->2")
    return found


def _ends(world: World, text: str) -> list[NodeId]:
    return sorted(world.members) if text == "*" else [int(text)]
