"""Feature levels: ranges, the nodes that must support them, downgrades."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from quorum.types import VersionRange
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
    evaluation,
    fenced,
    registration,
    replayed,
    small_cluster,
    topic_id,
)

ELR = "eligible.leader.replicas.version"
MV = "metadata.version"
DOWN, UNSAFE = UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def update(image, *updates, voters=None):
    context = evaluation()
    context.voter_versions = lambda: voters or {}
    return prepare(image, UpdateFeatures(tuple(FeatureUpdate(*u) for u in updates)), context)


def refusal(image, *updates, voters=None):
    with pytest.raises(CommandError) as caught:
        update(image, *updates, voters=voters)
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


def test_every_voter_must_support_a_level():
    """Goal: no voter gets records it cannot apply. Method: newer, older and silent voters."""
    new, old = (VersionRange(MV, 7, 33), VersionRange(ELR, 0, 1)), (VersionRange(MV, 7, 25),)
    assert update(cluster(), (MV, 33), voters={1: new, 2: new}).records
    error = refusal(cluster(), (MV, 33), voters={1: new, 2: old, 3: None})
    assert error.code == ErrorCode.INVALID_UPDATE_VERSION
    assert error.message == (
        "metadata.version level 33 is not supported by voter 2 (it supports 7 to 25), "
        "voter 3 (versions unknown; start it, or remove it if it is gone)"
    )
    assert "voter 2 (it supports no level of it)" in str(
        refusal(cluster(), (ELR, 1), voters={1: new, 2: old})
    )


def test_a_voter_that_is_silent_keeps_no_level_from_falling():
    """An unused level does not matter; a level that a voter no longer supports does."""
    old = (VersionRange(MV, 7, 25),)
    assert update(cluster(25), (MV, 20, DOWN), voters={1: old, 2: None}).records
    too_new = (VersionRange(MV, 21, 33),)
    assert "voter 1 (it supports 21 to 33)" in str(
        refusal(cluster(25), (MV, 20, DOWN), voters={1: too_new})
    )
    with_elr = replayed(FeatureLevelRecord(MV, 20), FeatureLevelRecord(ELR, 1))
    assert update(with_elr, (ELR, 0, UNSAFE), voters={1: old, 2: None}).records


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


def test_a_safe_downgrade_lists_what_it_would_lose():
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
