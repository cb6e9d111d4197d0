"""Voices in a divergence: an outsider has none, and a question that fails is put again."""

from __future__ import annotations

import pytest

from quorum.core.contract.local_events import LogVerified, RequestFailed
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.messages.chain_messages import ChainDigestRequest
from tests.unit.core.integrity.test_core_divergence_resolution import THEIRS, Table, begun


@pytest.mark.parametrize("votes", [True, False])
def test_only_a_voters_history_counts(votes: bool) -> None:
    """Two of three hold the other history, or one of three and an outsider."""
    table = Table(leads=False)
    table.answers[3] = THEIRS
    table.open()
    resolution = table.cluster[2].chain.resolution
    assert resolution is not None
    resolution.peer_votes = votes
    table.verified()
    table.run()
    settled = table.settled()
    assert settled is not None
    expected = DivergenceOutcome.LOST if votes else DivergenceOutcome.UNDECIDED
    assert settled.outcome is expected


def test_a_question_that_fails_is_put_again_after_its_pause_and_no_other() -> None:
    table = begun()
    cluster = table.cluster

    def asked() -> list[ChainDigestRequest]:
        return cluster.sent_by(1, ChainDigestRequest)

    (first,) = asked()
    for request_id, expected in ((first.request_id + 1000, 1), (first.request_id, 2)):
        failure = RequestFailed(2, request_id)
        cluster.call(1, lambda node, event=failure: node.on_local_event(cluster.now_ms, event))
        cluster.now_ms += cluster.config.retry_backoff_ms - 1
        cluster.tick(1)
        assert len(asked()) == 1
        cluster.now_ms += 1
        cluster.tick(1)
        assert len(asked()) == expected


def test_files_without_a_divergence_may_be_read_again() -> None:
    cluster = Table().cluster
    before = len(cluster.sent)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, LogVerified(0, -1, "")))
    assert (cluster[1].chain.resolution, len(cluster.sent)) == (None, before)
