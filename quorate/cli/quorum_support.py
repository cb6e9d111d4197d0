"""Whether a node that is to vote can run with what is in force, asked before the leader asks.

The leader asks the same question of the replica's own endpoint before it writes anything, so this
only says beforehand what the leader would answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate import client as library
from quorate.cli.connection import client_of
from quorate.cli.session import Session
from quorate.client.results.admin import FeatureDescription

if TYPE_CHECKING:
    from quorate.client import Client


async def objections_to_versions(
    session: Session, client: Client, at: str | None, node: int
) -> list[str]:
    """Levels in force that ``node`` cannot run with; empty too if no address of it is known."""
    if at is None:
        return []
    in_force = await client.describe_features(read=library.LINEARIZABLE)
    async with client_of(session, (at,)) as there:
        supported = await there.describe_features()
    return unsupported_levels(node, list(supported.features), list(in_force.features))


def unsupported_levels(
    node: int, supported: list[FeatureDescription], in_force: list[FeatureDescription]
) -> list[str]:
    """One sentence per level that is in force and that ``node`` does not support."""
    ranges = {each.name: (each.supported_min, each.supported_max) for each in supported}
    found = []
    for feature in in_force:
        level = feature.finalized_level
        low, high = ranges.get(feature.name, (0, 0))
        if level and not low <= level <= high:
            found.append(
                f"node {node} cannot take part: {feature.name} {level} is in force, "
                f"it supports {low} to {high}"
            )
    return found


def warnings_about_versions(at: str | None, node: int) -> list[str]:
    """What is not known without ``--at``."""
    if at is not None:
        return []
    return [f"which versions node {node} supports the leader asks before it acts; --at asks now"]
