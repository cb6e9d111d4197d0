"""Feature levels: ranges, who must support them, downgrades."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import FeatureUpdate, UpdateFeatures, UpgradeType
from statemachine.prepare import prepare
from statemachine.records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    SupportedFeature,
)
from tests.support.image_builder import (
    after,
    fenced,
    judging,
    registration,
    replayed,
    small_cluster,
    topic_id,
)

ELR = "eligible.leader.replicas.version"
MV = "metadata.version"
DOWN, UNSAFE = UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def update(image, *updates):
    return prepare(image, UpdateFeatures(tuple(FeatureUpdate(*u) for u in updates)), judging())


def refusal(image, *updates):
    with pytest.raises(CommandError) as caught:
        update(image, *updates)
    return caught.value


def cluster(level=20, ranges=((MV, 7, 33), (ELR, 0, 1)), **fields):
    features = tuple(SupportedFeature(*entry) for entry in ranges)
    return replayed(
        FeatureLevelRecord(MV, level),
        registration(1, features=features),
        registration(2, features=features, **fields),
    )


def test_an_upgrade_is_one_record_and_its_level_the_answer():
    prepared = update(cluster(), (MV, 33))
    assert prepared.records == [FeatureLevelRecord(MV, 33)]
    assert prepared.result == {"features": [{"name": MV, "level": 33}]}


def test_the_present_level_is_no_change():
    assert update(cluster(), (MV, 20)).records == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ((MV, 34), ErrorCode.INVALID_UPDATE_VERSION),
        ((MV, 6), ErrorCode.INVALID_UPDATE_VERSION),
        ((MV, 0, UNSAFE), ErrorCode.INVALID_UPDATE_VERSION),
        ((MV, 19), ErrorCode.INVALID_UPDATE_VERSION),
        (("no.such.version", 1), ErrorCode.INVALID_UPDATE_VERSION),
        (("kraft.version", 1), ErrorCode.INVALID_UPDATE_VERSION),
        ((MV, 21, 9), ErrorCode.INVALID_REQUEST),
        (("group.version", 1), ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_refusals(change, code):
    assert refusal(cluster(), change).code is code


def test_updates_take_effect_together_or_not_at_all():
    assert refusal(cluster(), (MV, 33), (ELR, 2)).code is ErrorCode.INVALID_UPDATE_VERSION
    assert refusal(cluster(), (MV, 33), (MV, 33)).code is ErrorCode.INVALID_REQUEST
    assert refusal(cluster()).code is ErrorCode.INVALID_REQUEST


def test_a_dead_broker_that_blocks_an_upgrade_is_named():
    image = cluster(ranges=((MV, 7, 25),), fenced=True)
    error = refusal(image, (MV, 33))
    assert error.code is ErrorCode.INVALID_UPDATE_VERSION
    assert "broker 1, broker 2 (fenced; unregister it if it is gone)" in error.message


def test_a_safe_downgrade_says_what_it_would_lose():
    image = small_cluster(
        PartitionChangeRecord(0, topic_id(1), eligible_leader_replicas=(1,)), fenced(3)
    )
    error = refusal(image, (MV, 20, DOWN))
    assert error.code is ErrorCode.FEATURE_UPDATE_FAILED
    assert "1 PartitionRecord" in error.message
    assert update(image, (MV, 20, UNSAFE)).records == [FeatureLevelRecord(MV, 20)]
    assert update(small_cluster(), (MV, 20, DOWN)).records == [FeatureLevelRecord(MV, 20)]


def test_enabling_elr_fixes_the_default_it_rests_on_and_disabling_clears_it():
    enabled = update(cluster(), (ELR, 1)).records
    assert enabled == [
        ConfigRecord(4, "", "min.insync.replicas", "1"),
        FeatureLevelRecord(ELR, 1),
    ]
    image = after(cluster(), enabled)
    assert update(image, (ELR, 0, DOWN)).records == [
        ClearElrRecord(""),
        FeatureLevelRecord(ELR, 0),
    ]
