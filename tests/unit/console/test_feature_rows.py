"""What the page about features says is what an upgrade answers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from quorate.client.results.admin import DescribeFeaturesResponse, FeatureDescription
from quorate.console.feature_rows import feature_rows
from quorum.errors import CommandError
from statemachine.commands import FeatureUpdate, UpdateFeatures
from statemachine.feature_levels import KRAFT_VERSION
from statemachine.image import MetadataImage
from statemachine.prepare import prepare
from statemachine.prepare.features import SUPPORTED_FEATURES
from statemachine.records import FeatureLevelRecord, SupportedFeature
from tests.support.image_builder import evaluation, fenced, registration, replayed

MV, TV = "metadata.version", "transaction.version"
RANGES = {
    "old": (SupportedFeature(MV, 7, 25),),
    "half": (SupportedFeature(MV, 7, 33), SupportedFeature(TV, 0, 1)),
    "new": (SupportedFeature(MV, 7, 33), SupportedFeature(TV, 0, 2)),
}


def answer(levels: dict[str, int]) -> DescribeFeaturesResponse:
    ranges = {**SUPPORTED_FEATURES, KRAFT_VERSION: (0, 1)}
    features = (
        FeatureDescription(
            name=name, supported_min=low, supported_max=high, finalized_level=levels.get(name, 0)
        )
        for name, (low, high) in ranges.items()
    )
    return DescribeFeaturesResponse(features=tuple(features))


def cluster(*brokers: str) -> MetadataImage:
    return replayed(
        FeatureLevelRecord(MV, 20),
        *(registration(number, features=RANGES[each]) for number, each in enumerate(brokers, 1)),
    )


def rows(image: MetadataImage) -> dict[str, dict[str, Any]]:
    levels = {MV: 20, KRAFT_VERSION: 1}
    return {each["name"]: each for each in feature_rows(image, answer(levels))}


def is_accepted(image: MetadataImage, name: str, level: int) -> bool:
    context = evaluation()
    context.voter_versions = dict
    try:
        prepare(image, UpdateFeatures((FeatureUpdate(name, level),)), context)
    except CommandError:
        return False
    return True


@pytest.mark.parametrize("brokers", list(itertools.product(RANGES, repeat=2)))
def test_the_page_promises_what_the_command_accepts(brokers: tuple[str, ...]) -> None:
    image = cluster(*brokers)
    for name, row in rows(image).items():
        higher = range(row["level"] + 1, row["supported_max"] + 1)
        accepted = [level for level in higher if is_accepted(image, name, level)]
        assert row["can_rise_to"] == max(accepted, default=row["level"]), name
        assert row["can_rise"] == bool(accepted), name
        is_blocked = bool(higher) and row["supported_max"] not in accepted
        assert bool(row["blocked_by"]) == is_blocked, name


def test_a_member_that_does_not_name_a_feature_blocks_it() -> None:
    image = replayed(fenced(1), base=cluster("old", "new"))
    blocked = rows(image)[TV]["blocked_by"]
    assert blocked == [{"who": "broker 1", "is_fenced": True, "max_level": 0}]
    assert rows(image)[MV]["blocked_by"][0]["max_level"] == 25


def test_the_level_of_the_quorum_is_its_own_and_no_command_raises_it() -> None:
    row = rows(cluster("new"))[KRAFT_VERSION]
    assert (row["level"], row["changes_with_voters"], row["can_rise"]) == (1, True, False)
