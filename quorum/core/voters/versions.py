"""Supported versions of a release, and whether a replica supports the levels in force.

Features are named levels: those of the state machine (``metadata.version`` ...), which the runtime
reports by ``FeatureLevels``, and the quorum's own ``kraft.version``. A voter that does not support
a level in force would acknowledge records that it cannot apply, and could be elected.

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
"""Range that this release's consensus supports."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Supported ranges of this release, ascending by name, and the levels in force."""

    supported: tuple[VersionRange, ...] = (OWN_KRAFT_VERSIONS,)
    in_force: Mapping[str, int] = field(default_factory=dict)
    is_advertised: bool = False
    """Whether the runtime has reported them; before that only the quorum's range is known."""


def with_kraft_version(features: Sequence[VersionRange]) -> tuple[VersionRange, ...]:
    """Return these features and our kraft.version, ascending by name."""
    others = (each for each in features if each.name != KRAFT_VERSION_NAME)
    return tuple(sorted((*others, OWN_KRAFT_VERSIONS), key=lambda each: each.name))


def kraft_versions_of(supported: Sequence[VersionRange]) -> VersionRange | None:
    """Return the kraft.version range that a replica reported; None if it reported none."""
    return next((each for each in supported if each.name == KRAFT_VERSION_NAME), None)


def why_not_run_with(
    node_id: NodeId, supported: Sequence[VersionRange], levels: Mapping[str, int]
) -> str:
    """Return which levels in force the replica does not support, in words; empty for none.

    Level 0 of a feature means that it is not in use, which every replica supports.
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
