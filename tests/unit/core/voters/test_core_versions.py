"""A voter must support the levels in force; the leader asks its endpoint before the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.local_events import (
    AddVoter,
    FeatureLevels,
    LocalEvent,
    RequestFailed,
    UpdateVoter,
)
from quorum.core.contract.output import RequestSettled
from quorum.core.following import fetching
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.state.replica_progress import VERSIONS_KNOWN_MS
from quorum.core.voters.versions import why_not_run_with, with_kraft_version
from quorum.errors import ErrorCode
from quorum.types import NodeId, VersionRange
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import voter

FEATURE = VersionRange("f", 2, 5)
FETCH_ANSWERED_MS = 1_100
"""So long a Fetch may be held that was sent before the node knew its own release, and one more."""


def asked(*supported: VersionRange, change: LocalEvent, level: int = 4) -> RequestSettled:
    """How it ends when the replica at the endpoint answers with these versions."""
    cluster = led()
    cluster.call(
        1, lambda node: node.on_local_event(cluster.now_ms, FeatureLevels((FEATURE,), {"f": level}))
    )
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, change))
    peer, request = probe_in(cluster)
    answer = BeginQuorumEpochResponse(request.request_id, ErrorCode.NONE, 1, 1, (), supported)
    cluster.queue.clear()
    cluster.call(1, lambda node: node.receive(cluster.now_ms, peer, answer))
    cluster.settle()
    return answered(cluster)


def led() -> CoreCluster:
    cluster = CoreCluster((1, 2, 3), (4,))
    cluster.elect(1)
    cluster.advance(600)
    return cluster


def probe_in(cluster: CoreCluster) -> tuple[NodeId, BeginQuorumEpochRequest]:
    peer, message = next(
        (to, each) for _, to, each in cluster.queue if isinstance(each, BeginQuorumEpochRequest)
    )
    return peer, message


def answered(cluster: CoreCluster) -> RequestSettled:
    (found,) = (each for each in cluster.members[1].progress if isinstance(each, RequestSettled))
    return found


def moved(**versions: int) -> UpdateVoter:
    """Node 2 at another place."""
    return UpdateVoter(1, replace(voter(2), endpoints=voter(9).endpoints, **versions))


@pytest.mark.parametrize("change", [AddVoter(1, voter(4)), moved()])
def test_one_that_supports_what_is_in_force_is_let_in(change: LocalEvent) -> None:
    answer = asked(*with_kraft_version((FEATURE,)), change=change)
    assert answer.error == ErrorCode.NONE
    assert answer.offset >= 0


@pytest.mark.parametrize("change", [AddVoter(1, voter(4)), moved()])
@pytest.mark.parametrize(
    ("supported", "error", "words"),
    [
        ((), ErrorCode.UNSUPPORTED_VERSION, "reports no supported versions"),
        (with_kraft_version(()), ErrorCode.UNSUPPORTED_VERSION, "f 4 is in force"),
        (
            with_kraft_version((VersionRange("f", 2, 3),)),
            ErrorCode.UNSUPPORTED_VERSION,
            "it supports 2 to 3",
        ),
        (
            (VersionRange("kraft.version", 2, 3), FEATURE),
            ErrorCode.INVALID_REQUEST,
            "kraft.version 2 to 3",
        ),
    ],
)
def test_one_that_cannot_take_part_is_refused_with_words(
    change: LocalEvent, supported: tuple[VersionRange, ...], error: ErrorCode, words: str
) -> None:
    answer = asked(*supported, change=change)
    assert (answer.error, answer.offset) == (error, -1)
    assert words in answer.message


def test_an_update_must_match_the_versions_that_the_replica_reports() -> None:
    """The record would promise what the voter does not keep."""
    answer = asked(*with_kraft_version((FEATURE,)), change=moved(max_supported_version=2))
    assert (answer.error, answer.offset) == (ErrorCode.INVALID_REQUEST, -1)
    assert "not 0 to 2 as in the request" in answer.message


def test_other_versions_at_the_same_place_are_asked_for_too() -> None:
    cluster = led()
    wider = UpdateVoter(1, replace(voter(2), max_supported_version=2))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, wider))
    assert probe_in(cluster)[0] == 2
    cluster.settle()
    assert answered(cluster).error == ErrorCode.INVALID_REQUEST


def test_the_voter_record_has_the_versions_that_the_new_voter_reports() -> None:
    cluster = led()
    wrong = replace(voter(4), min_supported_version=1, max_supported_version=7)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(1, wrong)))
    cluster.settle()
    assert answered(cluster).error == ErrorCode.NONE
    (entry,) = (each for each in cluster[2].voters if each.key.id == 4)
    assert (entry.min_supported_version, entry.max_supported_version) == (0, 1)


@pytest.mark.parametrize(
    ("why", "code", "expected"),
    [
        ("it understands frame versions 3 to 4", ErrorCode.NONE, ErrorCode.INVALID_REQUEST),
        ("of another log", *[ErrorCode.LOG_INCARNATION_MISMATCH] * 2),
    ],
)
def test_a_refused_handshake_is_reported_at_the_timeout(
    why: str, code: ErrorCode, expected: ErrorCode
) -> None:
    cluster = led()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(1, voter(4))))
    peer, request = probe_in(cluster)
    cluster.cut |= {(1, 4)}
    cluster.queue.clear()
    refused = RequestFailed(peer, request.request_id, why, code)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, refused))
    cluster.hold |= {(1, 4)}
    for _ in range(300):
        if any(isinstance(each, RequestSettled) for each in cluster.members[1].progress):
            break
        cluster.advance(10)
        for _, to, each in cluster.sent[-4:]:
            if to == peer and isinstance(each, BeginQuorumEpochRequest):
                again = RequestFailed(peer, each.request_id, why, code)
                cluster.call(
                    1, lambda node, event=again: node.on_local_event(cluster.now_ms, event)
                )
    answer = answered(cluster)
    assert (answer.error, answer.offset) == (expected, -1)
    assert why in answer.message


def test_a_feature_at_level_0_is_required_of_no_voter() -> None:
    assert why_not_run_with(4, (), {"f": 0}) == ""
    assert why_not_run_with(4, (), {"f": 1}).endswith("f 1 is in force, it supports no level of it")


def test_every_level_in_force_must_be_one_that_the_replica_supports() -> None:
    """Method: both ends of a range, and a level that it lacks behind one that it has."""
    supported = (VersionRange("f", 2, 5), VersionRange("g", 1, 1))
    for level, is_supported in ((1, False), (2, True), (5, True), (6, False)):
        assert (why_not_run_with(4, supported, {"f": level}) == "") == is_supported
    problem = why_not_run_with(4, supported, {"f": 3, "g": 2, "h": 1})
    assert problem == (
        "node 4 cannot take part: g 2 is in force, it supports 1 to 1; "
        "h 1 is in force, it supports no level of it"
    )


def versions(cluster: CoreCluster) -> dict[NodeId, int | None]:
    """Highest level of the feature that each voter supports, as node 1 knows it."""
    return {
        each.key.id: None
        if each.supported is None
        else max((one.highest for one in each.supported if one.name == "f"), default=0)
        for each in cluster[1].replicas()
        if each.is_voter
    }


def runs(cluster: CoreCluster, node_id: NodeId, highest: int) -> None:
    event = FeatureLevels((VersionRange("f", 0, highest),), {})
    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, event))


def test_a_leader_requests_versions_from_voters_that_report_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: levels rise only where all voters support them. Method: one is down at first, then
    replaced; releases whose Fetch has no versions."""
    monkeypatch.setattr(fetching, "versions_to_advertise", lambda core, peer: ())
    cluster = CoreCluster((1, 2, 3))
    for node_id, highest in ((1, 5), (2, 4), (3, 3)):
        runs(cluster, node_id, highest)
    cluster.crash(3)
    cluster.elect(1)
    cluster.advance(600)
    assert versions(cluster) == {1: 5, 2: 4, 3: None}
    cluster.restart(3)
    runs(cluster, 3, 3)
    cluster.advance(3_000)
    assert versions(cluster) == {1: 5, 2: 4, 3: 3}
    runs(cluster, 3, 5)
    cluster.advance(VERSIONS_KNOWN_MS // 2)
    assert versions(cluster)[3] == 3
    cluster.advance(VERSIONS_KNOWN_MS // 2 + 2_000)
    assert versions(cluster)[3] == 5


def test_a_release_that_was_replaced_is_known_from_its_first_fetches() -> None:
    """Goal: no level is evaluated by a release that is gone. Method: restart one with other ranges,
    both ways, within the same leadership term and far from the time when the leader asks again."""
    cluster = CoreCluster((1, 2, 3))
    for node_id in (1, 2, 3):
        runs(cluster, node_id, 4)
    cluster.elect(1)
    cluster.advance(3_000)
    for highest in (6, 3):
        cluster.crash(3)
        cluster.restart(3)
        runs(cluster, 3, highest)
        cluster.advance(FETCH_ANSWERED_MS)
        assert versions(cluster) == {1: 4, 2: 4, 3: highest}
    assert cluster[1].epoch == 1


def test_a_voter_reports_its_versions_until_its_leader_has_answered() -> None:
    """Goal: Fetches stay small, and one that is lost is made good for. Method: lose the first."""
    cluster = CoreCluster((1, 2, 3))
    cluster.elect(1)
    cluster.advance(3_000)
    cluster.crash(3)
    cluster.restart(3)
    runs(cluster, 3, 5)

    def reports() -> list[bool]:
        found = [
            bool(each.supported)
            for sender, to, each in cluster.sent
            if (sender, to) == (3, 1) and isinstance(each, FetchRequest)
        ]
        cluster.sent.clear()
        return found

    reports()
    cluster.cut |= {(3, 1)}
    cluster.advance(2_500)
    assert reports()[0], "the first, which is lost; what follows asks who leads"
    cluster.cut.clear()
    cluster.advance(5_000)
    answered = reports()
    assert answered.count(True) >= 1, "the first was lost"
    after = answered[answered.index(True) :]
    assert after == sorted(after, reverse=True), "and none after the answer"
    assert after.count(False) >= 3
    assert versions(cluster)[3] == 5


def test_an_observer_reports_its_versions_to_no_node() -> None:
    cluster = led()
    runs(cluster, 4, 5)
    cluster.sent.clear()
    cluster.advance(2_000)
    fetches = [
        each for sender, _, each in cluster.sent if sender == 4 and isinstance(each, FetchRequest)
    ]
    assert fetches
    assert not any(each.supported for each in fetches)


def test_a_voter_whose_answer_got_lost_is_asked_again_though_it_fetches() -> None:
    cluster = CoreCluster((1, 2, 3))
    cluster.elect_without_replicating(1)
    cluster.queue = type(cluster.queue)(
        each for each in cluster.queue if not isinstance(each[2], BeginQuorumEpochRequest)
    )
    cluster.settle()
    cluster.advance(2_500)
    assert None not in versions(cluster).values()


def test_the_answer_to_a_probe_counts_as_well() -> None:
    """Goal: a voter that was just added is known at once. Method: before any upkeep."""
    cluster = led()
    runs(cluster, 4, 6)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(1, voter(4))))
    cluster.settle()
    assert answered(cluster).error is ErrorCode.NONE
    assert versions(cluster)[4] == 6
