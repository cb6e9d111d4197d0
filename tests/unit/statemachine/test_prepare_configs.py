"""Incremental configuration changes: no-ops, lists, ranges, protected and unknown names."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import ConfigChange, ConfigOperation, IncrementalAlterConfigs
from statemachine.config_catalog import CATALOG, check_value
from statemachine.prepare import prepare
from statemachine.records import ClearElrRecord, ConfigRecord
from tests.support.image_builder import evaluation, small_cluster, topic_config

SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
APPEND, SUBTRACT = ConfigOperation.APPEND, ConfigOperation.SUBTRACT


def alter(image, *changes, resource=(2, "t")):
    command = IncrementalAlterConfigs(resource[0], resource[1], tuple(changes))
    return prepare(image, command, evaluation()).records


def refusal(image, *changes, resource=(2, "t")):
    with pytest.raises(CommandError) as caught:
        alter(image, *changes, resource=resource)
    return caught.value


def test_set_and_delete_become_one_record_each():
    image = small_cluster(topic_config("segment.ms", "5"))
    records = alter(
        image, ConfigChange("retention.ms", SET, "100"), ConfigChange("segment.ms", DELETE)
    )
    assert records == [
        ConfigRecord(2, "t", "retention.ms", "100"),
        ConfigRecord(2, "t", "segment.ms", None),
    ]


@pytest.mark.parametrize(
    "change",
    [
        ConfigChange("retention.ms", SET, "100"),
        ConfigChange("segment.ms", DELETE),
        ConfigChange("cleanup.policy", APPEND, "compact"),
        ConfigChange("cleanup.policy", SUBTRACT, "delete"),
    ],
)
def test_what_is_so_already_yields_no_record(change):
    image = small_cluster(
        topic_config("retention.ms", "100"), topic_config("cleanup.policy", "compact")
    )
    assert alter(image, change) == []


def test_lists_grow_from_their_default_and_shrink():
    image = small_cluster()
    assert alter(image, ConfigChange("cleanup.policy", APPEND, "compact")) == [
        ConfigRecord(2, "t", "cleanup.policy", "delete,compact")
    ]
    image = small_cluster(topic_config("cleanup.policy", "delete,compact"))
    assert alter(image, ConfigChange("cleanup.policy", SUBTRACT, "delete")) == [
        ConfigRecord(2, "t", "cleanup.policy", "compact")
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (ConfigChange("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, "-2"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, "1_000"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, str(2**63)), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, None), ErrorCode.INVALID_CONFIG),
        (ConfigChange("min.insync.replicas", SET, "0"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("min.cleanable.dirty.ratio", SET, "nan"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("preallocate", SET, "yes"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("cleanup.policy", SET, "delete,shred"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("cleanup.policy", APPEND, "shred"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("quorate.note", SET, "x" * 32_768), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (
            ConfigChange("leader.replication.throttled.replicas", SET, "0:1,x"),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_values_outside_their_type_are_refused(change, code):
    assert refusal(small_cluster(), change).code is code


def test_an_unknown_name_is_refused_with_the_closest_one():
    error = refusal(small_cluster(), ConfigChange("retention.msec", SET, "1"))
    assert error.code is ErrorCode.INVALID_CONFIG
    assert "did you mean retention.ms" in error.message


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        ((2, "none"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((2, "__cluster_metadata"), ErrorCode.POLICY_VIOLATION),
        ((4, "9"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        ((4, "one"), ErrorCode.INVALID_REQUEST),
        ((4, "01"), ErrorCode.INVALID_REQUEST),
        ((4, "99999999999"), ErrorCode.INVALID_REQUEST),
        ((8, ""), ErrorCode.INVALID_REQUEST),
        ((3, "t"), ErrorCode.INVALID_REQUEST),
        ((32, "g" * 40_000), ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_are_checked(resource, code):
    change = ConfigChange("min.insync.replicas", SET, "2")
    assert refusal(small_cluster(), change, resource=resource).code is code


def test_the_metadata_topic_shows_its_cleanup_policy():
    error = refusal(
        small_cluster(),
        ConfigChange("cleanup.policy", SET, "delete"),
        resource=(2, "__cluster_metadata"),
    )
    assert "cleanup.policy=snapshot" in error.message


def test_a_key_may_be_named_once_and_only_so_many():
    twice = ConfigChange("retention.ms", SET, "1")
    assert refusal(small_cluster(), twice, twice).code is ErrorCode.INVALID_REQUEST
    many = [ConfigChange(f"x{i}", SET, "1") for i in range(1_001)]
    assert refusal(small_cluster(), *many).code is ErrorCode.POLICY_VIOLATION


def test_min_isr_changes_clear_the_elr_of_what_they_concern():
    image = small_cluster(elr=True)
    change = ConfigChange("min.insync.replicas", SET, "2")
    assert alter(image, change)[-1] == ClearElrRecord("t")
    assert alter(image, change, resource=(4, "1"))[-1] == ClearElrRecord("")
    assert len(alter(small_cluster(), change)) == 1


def test_every_default_is_a_value_its_key_takes():
    """No numeric key takes a word, so the check above can fail."""
    evaluated = 0
    for keys in CATALOG.values():
        for key in keys.values():
            if key.default is not None:
                check_value(key, key.name, key.default)
                assert key.check(key.default) is None, key.name
                evaluated += 1
            if (key.default or "").removeprefix("-").isdecimal():
                assert key.check("many") is not None, key.name
    assert evaluated >= 20
