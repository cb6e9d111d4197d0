"""What a release can run with, and whether a replica can take part in what is in force here.

Features are named levels: of the state machine's own (``metadata.version`` ...), which the
runtime tells by ``FeatureLevels``, and ``kraft.version``, which is the quorum's. A voter that
cannot run with a level in force would acknowledge records that it cannot apply, and could lead.

See: KIP-584; KIP-853 (AddRaftVoter, UpdateRaftVoter); docs/reference/voters.md (Releases).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorum.types import NodeId, VersionRange

KRAFT_VERSION_NAME: Final = "kraft.version"
KRAFT_VERSION: Final = 1
"""The finalised kraft.version of every log of ours."""
OWN_KRAFT_VERSIONS: Final = VersionRange(KRAFT_VERSION_NAME, 0, KRAFT_VERSION)
"""What this release's consensus can run with."""


@dataclass(frozen=True, slots=True)
class Versions:
    """What this release can run with, ascending by name, and the levels in force."""

    supported: tuple[VersionRange, ...] = (OWN_KRAFT_VERSIONS,)
    in_force: Mapping[str, int] = field(default_factory=dict)
    is_advertised: bool = False
    """Whether the runtime has said so; before that the node knows the quorum's own range only."""


def with_kraft_version(features: Sequence[VersionRange]) -> tuple[VersionRange, ...]:
    """These features and our kraft.version, ascending by name."""
    others = (each for each in features if each.name != KRAFT_VERSION_NAME)
    return tuple(sorted((*others, OWN_KRAFT_VERSIONS), key=lambda each: each.name))


def kraft_versions_of(supported: Sequence[VersionRange]) -> VersionRange | None:
    """The kraft.version range that a replica told of itself; None when it told none."""
    return next((each for each in supported if each.name == KRAFT_VERSION_NAME), None)


def why_not_run_with(
    node_id: NodeId, supported: Sequence[VersionRange], levels: Mapping[str, int]
) -> str:
    """Which levels in force the replica cannot run with, in words; empty when it can with all.

    Level 0 of a feature means that it is not in use, which everybody can run with.
    """
    ranges = {each.name: each for each in supported}
    lacking = []
    for name, level in sorted(levels.items()):
        known = ranges.get(name)
        if level == 0 or (known is not None and known.lowest <= level <= known.highest):
            continue
        can = f"{known.lowest} to {known.highest}" if known is not None else "no level of it"
        lacking.append(f"{name} {level} is in force, it supports {can}")
    return f"node {node_id} cannot take part: {'; '.join(lacking)}" if lacking else ""
