"""What a Fetch carries, and which answers count for what, each from a state built by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import (
    DivergenceResolutionStarted,
    DownloadEnded,
    LeaderLost,
    MessageIgnored,
    RecordsAppended,
    VoteFloorReached,
    VoterDisqualified,
    VoterSetChanged,
)
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.following.advertised_versions import versions_to_advertise
from quorum.core.following.fetching import on_fetch_response, poll_fetch, poll_search
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse, ReceivedFetchResponse
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.positions.download import RESTING, Download
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Follower, Role, Unattached
from quorum.core.state.timers import Timer
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.core.voters.versions import Versions
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, EpochStart, OffsetAndEpoch, VersionRange
from tests.support.bare_core import (
    EPOCH,
    LEADER,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    reported,
    sent,
)
from tests.support.core_disk import key, voter

RELAY = 8
SUPPORTED = (VersionRange("kraft.version", 0, 1),)
SNAPSHOT = OffsetAndEpoch(90, EPOCH)
DUE_MS = NOW_MS + 1_000


def asking(
    role: Role | None = None,
    *,
    peer: int = LEADER,
    due_ms: int = DUE_MS,
    relays: RelayPlan = NO_RELAYS,
    **of_core: Any,
) -> CoreState:
    """A Fetch to ``peer`` is under way."""
    core = core_of(follower() if role is None else role, relays=relays, **of_core)
    core.requests.begin_flight(InFlight(peer, Purpose.FETCH, due_ms, 5, ticket=0))
    return core


def answer(
    core: CoreState, *, sender: int = LEADER, records: ReceivedRecords | None = None, **fields: Any
) -> None:
    values = {"error": ErrorCode.NONE, "leader_id": LEADER, "epoch": EPOCH, **fields}
    response = FetchResponse(5, **values)
    on_fetch_response(core, sender, ReceivedFetchResponse(response, records))


def ignored(core: CoreState) -> list[IgnoreReason]:
    return [each.reason for each in reported(core, MessageIgnored)]


# The advertised versions.


@pytest.mark.parametrize(
    ("role", "is_advertised", "peer", "voters", "expected"),
    [
        (follower(), True, LEADER, (1, 2), SUPPORTED),
        (follower(advertised_versions=SUPPORTED), True, LEADER, (1, 2), ()),
        (follower(), False, LEADER, (1, 2), ()),
        (follower(), True, 3, (1, 2, 3), ()),
        (follower(), True, LEADER, (2, 3), ()),
        (Unattached(NEVER_MS), True, LEADER, (1, 2), ()),
    ],
)
def test_a_voter_advertises_its_versions_to_its_leader_until_it_has_them(
    role: Role,
    is_advertised: bool,
    peer: int,
    voters: tuple[int, ...],
    expected: tuple[VersionRange, ...],
) -> None:
    core = core_of(role, voters=voters)
    core.process.versions = Versions(SUPPORTED, is_advertised=is_advertised)
    assert versions_to_advertise(core, peer) == expected


@pytest.mark.parametrize("before", [(), (VersionRange("kraft.version", 0, 0),)])
@pytest.mark.parametrize("carried", [(), SUPPORTED])
def test_an_answer_confirms_the_versions_that_its_fetch_carried(
    before: tuple[VersionRange, ...], carried: tuple[VersionRange, ...]
) -> None:
    role = follower(advertised_versions=before)
    core = asking(role)
    assert core.requests.in_flight is not None
    core.requests.in_flight.supported = carried
    answer(core)
    assert role.advertised_versions == (carried or before)


# What is sent.


@pytest.mark.parametrize("is_quarantined", [False, True])
@pytest.mark.parametrize("poll", [poll_fetch, poll_search])
def test_a_log_known_to_be_wrong_fetches_nothing(poll: Any, is_quarantined: bool) -> None:
    core = core_of(follower(), bootstrap=(1, LEADER))
    core.chain.quarantined_log = "a bad batch" if is_quarantined else ""
    poll(core)
    assert len(sent(core, LEADER)) == (not is_quarantined)


@pytest.mark.parametrize(
    ("peer", "due_ms", "is_leader_ready", "is_set_aside"),
    [
        (3, DUE_MS, True, True),
        (3, DUE_MS, False, False),
        (LEADER, DUE_MS, True, False),
        # It waits for the disk; what has not left has cost nobody's time.
        (3, NEVER_MS, True, False),
    ],
)
def test_a_search_makes_room_for_the_leader_once_it_may_be_asked(
    peer: int, due_ms: int, is_leader_ready: bool, is_set_aside: bool
) -> None:
    core = asking(peer=peer, due_ms=due_ms)
    if not is_leader_ready:
        core.following.peers.failed(LEADER, NOW_MS)
    poll_fetch(core)
    purposes = [each.purpose for each in core.requests]
    assert (Purpose.LEADER_SEARCH in purposes) == is_set_aside
    assert len(sent(core, LEADER)) == is_set_aside


@pytest.mark.parametrize(
    ("relays", "is_direct", "direct_from_ms", "fires"),
    [
        (NO_RELAYS, False, NEVER_MS, False),
        (RelayPlan(fetch_from=(RELAY,)), False, NOW_MS, True),
        (RelayPlan(fetch_from=(RELAY,)), True, NEVER_MS, False),
    ],
)
def test_the_patience_with_relays_fires_where_there_are_some(
    relays: RelayPlan, is_direct: bool, direct_from_ms: int, fires: bool
) -> None:
    core = core_of(follower(), voters=(2, 3), relays=relays)
    upstream = core.following.upstream
    upstream.is_direct, upstream.direct_from_ms, upstream.retry_ms = (
        is_direct,
        direct_from_ms,
        DUE_MS,
    )
    poll_fetch(core)
    assert [type(each) for each in sent(core, LEADER)] == [FetchRequest]
    assert core.timers_fired[Timer.RELAY_PATIENCE] == fires


@pytest.mark.parametrize("has_download", [True, False])
def test_chunks_are_asked_for_ahead_of_a_download_alone(has_download: bool) -> None:
    core = core_of(follower())
    core.requests.begin_flight(InFlight(LEADER, Purpose.FETCH_SNAPSHOT, DUE_MS, 5, ticket=0))
    if has_download:
        core.following.download = Download(SNAPSHOT, EPOCH, size=100, chunk_bytes=60)
    poll_fetch(core)
    assert len(sent(core, LEADER)) == has_download


# The search.


@pytest.mark.parametrize(
    ("purpose", "sender", "is_learned"),
    [
        (Purpose.LEADER_SEARCH, 3, True),
        (Purpose.LEADER_SEARCH, 2, False),
        (Purpose.VOTE, 3, False),
    ],
)
def test_the_answer_of_a_search_names_the_leader_and_brings_nothing_else(
    purpose: Purpose, sender: int, is_learned: bool
) -> None:
    core = core_of(follower())
    search = InFlight(3, purpose, DUE_MS, ticket=0)
    core.requests.open(search, 5)
    records = ReceivedRecords(LOG_END, LOG_END + 1, (EpochStart(EPOCH, LOG_END),), (), b"r")
    answer(core, sender=sender, epoch=EPOCH + 1, leader_id=3, records=records)
    assert core.epoch == EPOCH + is_learned
    assert core.log.end_offset == LOG_END
    assert ignored(core) == ([] if is_learned else [IgnoreReason.NEVER_ASKED])
    assert list(core.requests) == ([] if is_learned else [search])


def test_a_search_that_was_answered_is_closed() -> None:
    core = core_of(follower())
    search = InFlight(3, Purpose.LEADER_SEARCH, DUE_MS, ticket=0)
    core.requests.open(search, 5)
    answer(core, sender=3)
    assert (search.request_id, list(core.requests)) == (0, [])


# Which answers count.


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
@pytest.mark.parametrize("relays", [(), (RELAY,)])
def test_a_route_is_checked_in_answers_and_not_in_refusals(
    error: ErrorCode, relays: tuple[int, ...]
) -> None:
    core = asking(voters=(2, 3), relays=RelayPlan(fetch_from=relays))
    answer(core, error=error, path=(key(RELAY), key(1)))
    if error is not ErrorCode.NONE:
        assert ignored(core) == []
        return
    assert ignored(core) == [IgnoreReason.ROUTE_LOOP if relays else IgnoreReason.RELAY_NOT_USED]
    (event,) = reported(core, MessageIgnored)
    assert not event.is_violation, "the layout of the relays is to blame"
    assert core.following.peers.failures(LEADER) == 1
    assert core.following.upstream.path == ()


@pytest.mark.parametrize("role", [follower(), Unattached(NEVER_MS)])
@pytest.mark.parametrize("leader_id", [LEADER, NO_NODE])
def test_an_answer_that_names_no_leader_brings_nothing(role: Role, leader_id: int) -> None:
    core = asking(replace(role), leader_id=leader_id)
    answer(core, leader_id=NO_NODE)
    assert ignored(core) == [IgnoreReason.NOT_FROM_LEADER]


@pytest.mark.parametrize(
    ("role", "peer", "fields", "is_resolved"),
    [
        (follower(), LEADER, {}, True),
        (follower(), 3, {}, False),
        (follower(), LEADER, {"epoch": EPOCH - 1}, False),
        (Unattached(NEVER_MS), LEADER, {"leader_id": NO_NODE}, False),
    ],
)
def test_the_leaders_refusal_by_digest_is_a_contact_and_begins_a_resolution(
    role: Role, peer: int, fields: dict[str, Any], is_resolved: bool
) -> None:
    role = replace(role)
    core = asking(role, peer=peer)
    if isinstance(role, Unattached):
        core.adopt_election(replace(core.election, leader_id=NO_NODE))
    answer(core, sender=peer, error=ErrorCode.DIGEST_MISMATCH, **fields)
    assert len(reported(core, DivergenceResolutionStarted)) == is_resolved
    if isinstance(role, Follower):
        assert role.has_fetched == is_resolved
        deadline_ms = NOW_MS + role.fetch_timeout_ms if is_resolved else NEVER_MS
        assert role.fetch_deadline_ms == deadline_ms


@pytest.mark.parametrize(
    ("peer", "fields", "counts"),
    [
        (LEADER, {}, True),
        (3, {}, False),
        (LEADER, {"epoch": EPOCH - 1}, False),
        (LEADER, {"error": ErrorCode.UNKNOWN_LEADER_EPOCH}, False),
    ],
)
@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REPLICA_REGRESSED])
def test_only_the_leaders_own_word_of_this_epoch_ends_its_time_or_disqualifies(
    error: ErrorCode, peer: int, fields: dict[str, Any], counts: bool
) -> None:
    core = asking(peer=peer)
    answer(core, sender=peer, **{"error": error, **fields})
    is_lost = counts and error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(reported(core, LeaderLost)) == is_lost
    is_disqualified = counts and error is ErrorCode.REPLICA_REGRESSED
    assert len(reported(core, VoterDisqualified)) == is_disqualified
    assert bool(core.election.disqualified) == is_disqualified


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REPLICA_REGRESSED])
def test_a_refusal_that_names_the_leader_first_ends_nothing(error: ErrorCode) -> None:
    """The request was not one to the leader when it left."""
    core = asking(Unattached(NEVER_MS), peer=3, leader_id=NO_NODE)
    answer(core, sender=3, leader_id=3, error=error)
    assert isinstance(core.role, Follower)
    assert core.role.leader_id == 3
    assert reported(core, LeaderLost) == []
    assert not core.election.disqualified


def test_an_unattached_replica_is_not_disqualified_by_a_peer() -> None:
    core = asking(Unattached(NEVER_MS), peer=3, leader_id=NO_NODE)
    answer(core, sender=3, leader_id=NO_NODE, error=ErrorCode.REPLICA_REGRESSED)
    assert not core.election.disqualified


# What an answer brings.


def test_records_are_appended_and_reported_and_a_download_ends() -> None:
    core = asking()
    core.following.download = Download(SNAPSHOT, RESTING)
    epochs = (EpochStart(EPOCH, LOG_END),)
    answer(core, records=ReceivedRecords(LOG_END, LOG_END + 3, epochs, (), b"records"))
    assert core.log.end_offset == LOG_END + 3
    assert reported(core, RecordsAppended) == [RecordsAppended(LOG_END, LOG_END + 3, EPOCH)]
    assert reported(core, DownloadEnded) == [
        DownloadEnded(SNAPSHOT, DownloadOutcome.RECORDS_SERVED)
    ]
    assert core.following.download is None
    assert reported(core, VoterSetChanged) == []


def test_a_voters_record_changes_the_set_at_its_offset() -> None:
    core = asking()
    voters = (VotersAt(LOG_END + 1, (voter(1), voter(2))),)
    epochs = (EpochStart(EPOCH, LOG_END),)
    answer(core, records=ReceivedRecords(LOG_END, LOG_END + 3, epochs, voters, b"records"))
    assert reported(core, VoterSetChanged) == [VoterSetChanged(LOG_END + 1, (1, 2))]


@pytest.mark.parametrize("peer", [LEADER, RELAY])
def test_only_the_leaders_end_lifts_a_vote_floor(peer: int) -> None:
    """A relay serves what is committed; the leader may have more."""
    core = asking(peer=peer, voters=(2, 3), relays=RelayPlan(fetch_from=(RELAY,)))
    floor = OffsetAndEpoch(LOG_END + 9, EPOCH + 1)
    core.adopt_election(replace(core.election, vote_floor=floor))
    answer(core, sender=peer, path=() if peer == LEADER else (key(RELAY),))
    assert len(reported(core, VoteFloorReached)) == (peer == LEADER)
    assert ignored(core) == []
