"""A divergence about a log that was cut while its files were read again."""

from __future__ import annotations

import random

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import DivergenceResolutionEnded
from quorum.core.contract.local_events import LogVerified
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.integrity.divergence_resolution import on_log_verified, start_divergence_resolution
from quorum.core.state.core_state import CoreState
from tests.support.bare_core import reported
from tests.support.core_cluster import CLUSTER
from tests.support.core_disk import key


@pytest.mark.parametrize("cuts", [0, 1])
def test_a_reader_that_may_have_seen_half_a_cut_proves_nothing(cuts: int) -> None:
    """Goal: reported damage quarantines no log then, and another divergence resolution may begin at
    once.
    """
    core = CoreState(
        config=QuorumConfig(), cluster_id=CLUSTER, me=key(1), rng=random.Random(1), bootstrap=()
    )
    core.now_ms = 1_000
    start_divergence_resolution(core, 2, 10, "its digest is not ours", peer_votes=True)
    on_log_verified(core, LogVerified(core.log.cuts + cuts, 3, "a bad batch"))
    assert core.chain.resolution is None
    assert bool(core.chain.quarantined_log) == (cuts == 0)
    (ended,) = reported(core, DivergenceResolutionEnded)
    outcome = (ended.outcome, ended.first_offset)
    if cuts:
        assert outcome == (DivergenceOutcome.CUT, -1)
        assert core.chain.quiet_until_ms == core.now_ms
    else:
        assert outcome == (DivergenceOutcome.DAMAGED, 3)
