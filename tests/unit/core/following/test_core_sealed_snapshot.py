"""A sealed checkpoint takes the place of the log, or is kept beside it."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import DownloadEnded
from quorum.core.contract.local_events import SnapshotSealed
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import ReplaceLogWith, VotersChanged
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.messages.vote_messages import VoteRequest
from quorum.errors import ErrorCode
from quorum.types import EpochStart, OffsetAndEpoch, SnapshotId
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with, voter
from tests.support.download_steps import SNAPSHOT, follow, following, name_snapshot


def seal(
    cluster: CoreCluster, snapshot_id: SnapshotId = SNAPSHOT, voters: tuple[VotersAt, ...] = ()
) -> None:
    sealed = SnapshotSealed(snapshot_id, voters, 10)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, sealed))


def ended(cluster: CoreCluster) -> list[tuple[SnapshotId, DownloadOutcome]]:
    events = cluster.members[1].events
    return [(each.snapshot_id, each.outcome) for each in events if isinstance(each, DownloadEnded)]


def replaced(cluster: CoreCluster) -> list[SnapshotId]:
    effects = cluster.members[1].effects
    return [each.snapshot_id for each in effects if isinstance(each, ReplaceLogWith)]


def test_one_whose_position_the_log_has_is_kept_beside_it() -> None:
    """The log throws no record away for it, and the file is a checkpoint like any other."""
    cluster = following(disk_with("1:a 1:b 1:c"))
    held = OffsetAndEpoch(2, 1)
    seal(cluster, held)
    assert cluster[1].log_end_offset == 3
    assert replaced(cluster) == []
    assert cluster[1].snapshots == (held,)
    assert ended(cluster) == [(held, DownloadOutcome.NOT_NEEDED)]


@pytest.mark.parametrize("other", [OffsetAndEpoch(2, 1), OffsetAndEpoch(7, 3)])
def test_one_that_is_not_the_download_does_not_end_it(other: SnapshotId) -> None:
    """Whether the log needs it or not; the download is for a later position."""
    cluster = following(disk_with("1:a 1:b 1:c"))
    name_snapshot(cluster)
    seal(cluster, other)
    assert cluster[1].is_downloading
    seal(cluster)
    assert not cluster[1].is_downloading
    assert cluster[1].log_end == SNAPSHOT


def prospective() -> CoreCluster:
    """Node 1 asks for pre-votes while the checkpoint that it downloaded is verified."""
    cluster = following(disk_with("1:a 1:b"))
    name_snapshot(cluster)
    cluster.isolate(1)
    cluster.advance(2_300)
    assert cluster[1].role_name == "Prospective"
    return cluster


def asked(cluster: CoreCluster) -> list[int]:
    return sorted(to for by, to, each in cluster.sent if by == 1 and type(each) is VoteRequest)


def test_a_campaign_that_has_asked_for_pre_votes_goes_on_with_the_voters_of_the_checkpoint() -> (
    None
):
    """No voter has granted anything yet, so the new voters get requests, with the new position."""
    cluster = prospective()
    cluster.sent.clear()
    seal(cluster, SNAPSHOT, (VotersAt(9, (voter(1), voter(4), voter(5))),))
    assert cluster[1].role_name == "Prospective"
    assert replaced(cluster) == [SNAPSHOT]
    assert asked(cluster) == [4, 5]
    requests = [each for _, _, each in cluster.sent if isinstance(each, VoteRequest)]
    assert all(each.pre_vote and each.last == SNAPSHOT for each in requests)


def test_voters_that_only_the_replaced_log_named_are_no_voters_any_more() -> None:
    """The checkpoint names none, and the record that did was never committed."""
    cluster = following(disk_with("1:a 1:b 1:c"))
    request = cluster.sent_by(1, FetchRequest)[-1]
    named = (VotersAt(4, (voter(1), voter(2), voter(4))),)
    records = ReceivedRecords(3, 5, (EpochStart(5, 3),), named, b"data")
    answer = FetchResponse(request.request_id, ErrorCode.NONE, 2, 5, 0, records=records)  # type: ignore[arg-type]
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, answer))
    assert [each.key.id for each in cluster[1].voters] == [1, 2, 4]
    follow(cluster, 3, 6)
    cluster.members[1].progress.clear()
    seal(cluster, OffsetAndEpoch(4, 3))
    assert replaced(cluster) == [OffsetAndEpoch(4, 3)]
    assert [each.key.id for each in cluster[1].voters] == [1, 2, 3]
    assert [each for each in cluster.members[1].progress if isinstance(each, VotersChanged)]
