"""Outcomes of a divergence resolution where the logs are equal, or the divergence is gone."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import DivergenceResolutionEnded
from quorum.core.contract.local_events import LogVerified
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.errors import ErrorCode
from quorum.types import DigestAt, OffsetAndEpoch
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with
from tests.support.download_steps import follow, following
from tests.unit.core.integrity.test_core_divergence_resolution import OURS, begun


@pytest.mark.parametrize("leads", [True, False])
def test_equal_logs_end_it_without_further_requests(leads: bool) -> None:
    """The digests differed for another reason, so no offset is named and no node stops."""
    table = begun(leads=leads, **{f"n{2 if leads else 1}": OURS})
    table.run()
    settled = table.settled()
    assert settled is not None
    assert (settled.outcome, settled.first_offset) == (DivergenceOutcome.EQUAL, -1)
    assert not table.is_quarantined
    asked = {to for by, to, each in table.cluster.sent if isinstance(each, ChainDigestRequest)}
    assert asked == {table.other}


@pytest.mark.parametrize("leads", [True, False])
def test_logs_without_a_position_in_common_cannot_be_compared(leads: bool) -> None:
    """The other log begins behind all that is in question."""
    table = begun(leads=leads, **{f"n{2 if leads else 1}": lambda offset: DigestAt(-1, b"")})
    table.run()
    settled = table.settled()
    assert settled is not None
    assert (settled.outcome, settled.first_offset) == (DivergenceOutcome.NOT_COMPARABLE, -1)
    assert not table.is_quarantined


def answer(cluster: CoreCluster, leader: int, epoch: int, **fields: object) -> None:
    request = cluster.sent_by(1, FetchRequest)[-1]
    values = {"error": ErrorCode.NONE, "high_watermark": 0, **fields}
    response = FetchResponse(
        request.request_id,
        leader_id=leader,
        epoch=epoch,
        **values,  # type: ignore[arg-type]
    )
    cluster.call(1, lambda node: node.receive(cluster.now_ms, leader, response))


def test_a_log_that_is_cut_meanwhile_ends_it_and_another_may_begin() -> None:
    """What the other side has yet to answer would be about the log before."""
    cluster = following(disk_with("1:a 1:b 1:c"))
    answer(cluster, 2, 5, error=ErrorCode.DIGEST_MISMATCH)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, LogVerified(0)))
    assert len(cluster.sent_by(1, ChainDigestRequest)) == 1
    follow(cluster, 3, 6)
    answer(cluster, 3, 6, diverging=OffsetAndEpoch(1, 1))
    assert cluster[1].log_end_offset == 1
    cluster.now_ms += cluster.config.request_timeout_ms
    cluster.tick(1)
    ended = [e for e in cluster.members[1].events if isinstance(e, DivergenceResolutionEnded)]
    assert [each.outcome for each in ended] == [DivergenceOutcome.CUT]
    assert len(cluster.sent_by(1, ChainDigestRequest)) == 1
    assert cluster[1].chain.quiet_until_ms <= cluster.now_ms
