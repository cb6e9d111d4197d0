"""Feature levels that this release supports, and those that a new cluster starts with.

See: docs/reference/formats.md, KIP-584, KIP-853 (kraft.version).
"""

from __future__ import annotations

from collections.abc import Mapping

from quorum.types import VersionRange
from statemachine.commands import FeatureRange
from statemachine.feature_levels import KRAFT_VERSION, RELEASES, supported_range
from statemachine.records import METADATA_VERSION

KRAFT_VERSION_MAX = supported_range(KRAFT_VERSION)[1]
METADATA_VERSION_MAX = supported_range(METADATA_VERSION)[1]

SUPPORTED_FEATURES = tuple(FeatureRange(name, *supported_range(name)) for name in sorted(RELEASES))
"""By name."""

SUPPORTED_VERSIONS = tuple(
    VersionRange(each.name, each.min_level, each.max_level) for each in SUPPORTED_FEATURES
)
"""The same, as replicas tell each other."""

INITIAL_LEVELS = {METADATA_VERSION: METADATA_VERSION_MAX}
"""What `quorate format` finalises unless told otherwise. kraft.version is not among them: it is
a control record and follows from how the voters are given."""

KAFKA_INITIAL_LEVELS = {
    METADATA_VERSION: max(
        level
        for level, release in RELEASES[METADATA_VERSION].items()
        if release != RELEASES[METADATA_VERSION][METADATA_VERSION_MAX]
    )
}
"""The same under Kafka's record codec: a level that Kafka's release before the newest reads too.
A reader of an older release than a level belongs to refuses the log."""


def readers_of(levels: Mapping[str, int]) -> str:
    """Kafka's oldest release whose readers take a log at this metadata.version."""
    return RELEASES[METADATA_VERSION][levels[METADATA_VERSION]]


def level_problem(name: str, level: int) -> str:
    """Why ``name`` cannot be finalised at ``level`` here; empty when it can."""
    ranges = {feature.name: feature for feature in SUPPORTED_FEATURES}
    if name not in ranges:
        return f"unknown feature {name}; this release knows {', '.join(sorted(ranges))}"
    low, high = ranges[name].min_level, ranges[name].max_level
    if low <= level <= high:
        return ""
    return f"{name} must be from {low} to {high}, not {level}"
