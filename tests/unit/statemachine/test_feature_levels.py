"""The table of feature levels, and what follows from it."""

from __future__ import annotations

import pytest

from quorate.features import level_problem
from statemachine.feature_levels import RELEASES, supported_range

KAFKA_4_4_DEFAULTS = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "metadata.version": 33,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}
"""The default feature levels of kafka-storage in Kafka 4.4.0."""


@pytest.mark.parametrize("name", RELEASES)
def test_levels_leave_no_gap_and_releases_only_rise(name: str) -> None:
    releases = RELEASES[name]
    assert sorted(releases) == list(range(min(releases), max(releases) + 1))
    ordered = [tuple(map(int, releases[level].split("."))) for level in sorted(releases)]
    assert ordered == sorted(ordered)


def test_every_default_of_kafkas_newest_release_can_be_imported() -> None:
    assert KAFKA_4_4_DEFAULTS.keys() == RELEASES.keys()
    for name, level in KAFKA_4_4_DEFAULTS.items():
        assert level_problem(name, level) == ""
        assert supported_range(name)[1] == level
