"""What the log's leader knows of its voters reaches the judge of a command."""

from __future__ import annotations

from quorum.errors import ErrorCode
from quorum.types import VersionRange
from statemachine.commands import FeatureUpdate, UpdateFeatures
from tests.support.controller_bench import Bench


def test_a_level_that_a_voter_does_not_support_is_refused():
    """The supported levels of the voters are those that the leader knows at evaluation."""
    bench = Bench()
    able = (VersionRange("metadata.version", 7, 33),)
    upgrade = UpdateFeatures((FeatureUpdate("metadata.version", 33),))
    for second in ((), able):
        bench.log.versions = {1: able, 2: second}
        bench.submit(upgrade, "able" if second else "unable")
        bench.flush()
    bench.log.confirm_reads()
    bench.log.settle()
    (_, refused), (_, done) = bench.answers
    assert refused.code == ErrorCode.INVALID_UPDATE_VERSION
    assert "voter 2 (it supports no level of it)" in refused.message
    assert "voter" not in done.message
