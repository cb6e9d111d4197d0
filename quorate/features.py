"""Feature levels that this release can run with, and those a new cluster starts at.

See: docs/formats.md, KIP-584, KIP-853 (kraft.version).
"""

from __future__ import annotations

from quorum.types import VersionRange
from statemachine.commands import FeatureRange
from statemachine.prepare.features import SUPPORTED_FEATURES as JUDGED_FEATURES
from statemachine.records import METADATA_VERSION

KRAFT_VERSION = "kraft.version"
KRAFT_VERSION_MAX = 1
METADATA_VERSION_MAX = JUDGED_FEATURES[METADATA_VERSION][1]

SUPPORTED_FEATURES = tuple(
    FeatureRange(name, low, high)
    for name, (low, high) in sorted(
        {**JUDGED_FEATURES, KRAFT_VERSION: (0, KRAFT_VERSION_MAX)}.items()
    )
)
"""By name."""

SUPPORTED_VERSIONS = tuple(
    VersionRange(each.name, each.min_level, each.max_level) for each in SUPPORTED_FEATURES
)
"""The same, as replicas tell each other."""

INITIAL_LEVELS = {METADATA_VERSION: METADATA_VERSION_MAX}
"""What `quorate format` finalises unless told otherwise. kraft.version is not among them: it is
a control record and follows from how the voters are given."""


def level_problem(name: str, level: int) -> str:
    """Why ``name`` cannot be finalised at ``level`` here; empty when it can."""
    ranges = {feature.name: feature for feature in SUPPORTED_FEATURES}
    if name not in ranges:
        return f"unknown feature {name}; this release knows {', '.join(sorted(ranges))}"
    low, high = ranges[name].min_level, ranges[name].max_level
    if low <= level <= high:
        return ""
    return f"{name} must be from {low} to {high}, not {level}"
