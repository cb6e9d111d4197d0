"""Downloads and their installation, rule by rule, from a state built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.events import DownloadEnded, VoterSetChanged
from quorum.core.contract.local_events import SnapshotRejected, SnapshotSealed
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import ReplaceLogWith
from quorum.core.following.chunk_requests import forget_chunk, request_chunk
from quorum.core.following.snapshot_install import (
    install_if_ready,
    on_snapshot_rejected,
    on_snapshot_sealed,
    replace_log,
)
from quorum.core.following.snapshot_transfer import is_downloading, poll_download
from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.core.messages.received_records import VotersAt
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.positions.download import RESTING, Download, SealedSnapshot
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Candidate, Leader, Prospective, Resigned, Role, Unattached
from quorum.core.state.upstream import RelayPlan
from quorum.core.voters.voter_set import VoterSet
from quorum.types import OffsetAndEpoch
from tests.support.bare_core import (
    EPOCH,
    LEADER,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    reported,
    sent,
)
from tests.support.core_disk import voter

RELAY = 8
NEWER = OffsetAndEpoch(90, EPOCH)
KNOWN = OffsetAndEpoch(LOG_END, EPOCH)
"""A position that the log has."""
VOTERS = (VotersAt(2, (voter(1), voter(2))),)
ROUND = ReadRound(EPOCH, 3)


# The transfer.


@pytest.mark.parametrize(
    ("role", "epoch", "peer", "expected"),
    [
        (follower(), EPOCH, LEADER, True),
        (follower(), EPOCH, RELAY, True),
        (follower(), EPOCH, 3, False),
        (follower(), RESTING, LEADER, False),
        (Unattached(NEVER_MS), EPOCH, LEADER, False),
        (Unattached(NEVER_MS), EPOCH, RELAY, False),
    ],
)
def test_a_download_continues_with_the_leader_or_a_relay(
    role: Role, epoch: int, peer: int, expected: bool
) -> None:
    core = core_of(role, relays=RelayPlan(fetch_from=(RELAY,)))
    assert not is_downloading(core, peer)
    core.following.download = Download(NEWER, epoch)
    assert is_downloading(core, peer) == expected


@pytest.mark.parametrize(("fetch_timeout_ms", "pause_ms"), [(1, 1), (7, 1), (8, 2), (2_000, 500)])
def test_a_file_that_is_being_verified_keeps_contact(fetch_timeout_ms: int, pause_ms: int) -> None:
    """Four Fetches within the fetch timeout, and never two in one millisecond."""
    core = core_of(follower(), fetch_timeout_ms=fetch_timeout_ms)
    core.following.download = download = Download(NEWER, EPOCH, position=5, size=5)
    assert poll_download(core, LEADER)
    assert download.contact_due_ms == NOW_MS + pause_ms
    assert not poll_download(core, LEADER)
    core.now_ms += pause_ms
    assert poll_download(core, LEADER)


@pytest.mark.parametrize(
    ("role", "echo"), [(follower(read_round=ROUND), ROUND), (Unattached(NEVER_MS), NO_ROUND)]
)
def test_a_request_for_a_chunk_echoes_the_read_round_of_a_follower(
    role: Role, echo: ReadRound
) -> None:
    core = core_of(role)
    request_chunk(core, LEADER, Download(NEWER, EPOCH), 7, 100)
    (request,) = sent(core, LEADER)
    assert isinstance(request, FetchSnapshotRequest)
    assert (request.position, request.max_bytes, request.read_round) == (7, 100, echo)


def chained(core: CoreState) -> list[InFlight]:
    """Requests for three chunks, the first of which is in flight."""
    chunks = [
        InFlight(LEADER, Purpose.FETCH_SNAPSHOT, NEVER_MS, request_id, ticket=0)
        for request_id in (5, 6, 7)
    ]
    chunks[0].behind, chunks[1].behind = chunks[1:]
    core.requests.begin_flight(chunks[0])
    return chunks


@pytest.mark.parametrize(
    ("request_id", "left", "asks_ahead"), [(4, 3, True), (5, 3, True), (6, 1, False), (7, 2, False)]
)
def test_a_chunk_that_came_too_early_is_forgotten_with_those_behind_it(
    request_id: int, left: int, asks_ahead: bool
) -> None:
    core = core_of(follower())
    first = chained(core)[0]
    forget_chunk(core, request_id)
    flight: InFlight | None = first
    found = 0
    while flight is not None:
        flight, found = flight.behind, found + 1
    assert (found, first.asks_ahead) == (left, asks_ahead)


def test_without_a_request_under_way_there_is_no_chunk_to_forget() -> None:
    core = core_of(follower())
    forget_chunk(core, 5)
    assert core.requests.in_flight is None


# A file that was verified.


@pytest.mark.parametrize("snapshot_id", [NEWER, KNOWN])
def test_a_sealed_snapshot_is_kept_for_the_log_that_lacks_it(snapshot_id: OffsetAndEpoch) -> None:
    core = core_of(follower())
    core.following.download = Download(snapshot_id, EPOCH)
    on_snapshot_sealed(core, SnapshotSealed(snapshot_id, VOTERS, 500))
    assert core.following.download is None
    if snapshot_id == NEWER:
        assert core.following.sealed_snapshot == SealedSnapshot(NEWER, VOTERS, 500)
        assert core.out.events == []
    else:
        assert core.following.sealed_snapshot is None
        assert core.snapshots.latest == snapshot_id
        assert core.out.events == [DownloadEnded(KNOWN, DownloadOutcome.NOT_NEEDED)]


def test_a_snapshot_with_unusable_voters_is_its_senders_fault() -> None:
    core = core_of(follower())
    core.following.download = Download(NEWER, EPOCH)
    twice = (VotersAt(2, (voter(1), voter(1))),)
    on_snapshot_sealed(core, SnapshotSealed(NEWER, twice, 500))
    (ended,) = reported(core, DownloadEnded)
    assert ended.outcome is DownloadOutcome.UNUSABLE_VOTERS
    assert ended.detail == "a voter id appears twice"
    assert core.following.sealed_snapshot is None
    assert core.following.peers.failures(LEADER) == 1


@pytest.mark.parametrize("found_bytes", [0, 9])
@pytest.mark.parametrize("snapshot_id", [NEWER, KNOWN])
def test_only_the_rejection_of_the_download_under_way_ends_it(
    found_bytes: int, snapshot_id: OffsetAndEpoch
) -> None:
    """Bytes of an earlier process run need not be the sender's fault."""
    core = core_of(follower())
    core.following.download = Download(NEWER, EPOCH, found_bytes=found_bytes)
    core.requests.begin_flight(InFlight(LEADER, Purpose.FETCH_SNAPSHOT, NEVER_MS, 5, ticket=0))
    on_snapshot_rejected(core, SnapshotRejected(snapshot_id, "a bad batch"))
    is_ended = snapshot_id == NEWER
    assert core.out.events == (
        [DownloadEnded(NEWER, DownloadOutcome.REJECTED, "a bad batch")] if is_ended else []
    )
    assert (core.requests.in_flight is None) == is_ended
    assert core.following.peers.failures(LEADER) == (is_ended and not found_bytes)


def test_a_rejection_leaves_a_fetch_under_way() -> None:
    core = core_of(follower())
    core.following.download = Download(NEWER, EPOCH)
    flight = InFlight(LEADER, Purpose.FETCH, NEVER_MS, 5, ticket=0)
    core.requests.begin_flight(flight)
    on_snapshot_rejected(core, SnapshotRejected(NEWER, "a bad batch"))
    assert core.requests.in_flight is flight


# The installation.


@pytest.mark.parametrize(
    ("role", "is_installed"),
    [
        (follower(), True),
        (Unattached(NEVER_MS), True),
        (Prospective(NEVER_MS, {}, fail_fast=False), True),
        (Candidate(NEVER_MS, {}, fail_fast=False), False),
        (leading()[1], False),
        (Resigned(NEVER_MS, (), {}), False),
    ],
)
def test_a_snapshot_waits_while_its_position_could_fall_below_a_promised_one(
    role: Role, is_installed: bool
) -> None:
    core = core_of(role if isinstance(role, Leader) else replace(role))
    core.following.sealed_snapshot = SealedSnapshot(NEWER, VOTERS, 500)
    install_if_ready(core)
    assert (core.following.sealed_snapshot is None) == is_installed
    assert reported(core, DownloadEnded) == (
        [DownloadEnded(NEWER, DownloadOutcome.INSTALLED)] if is_installed else []
    )
    assert core.out.persist[:1] == ([ReplaceLogWith(NEWER)] if is_installed else [])
    assert core.log.end_offset == (NEWER.offset if is_installed else LOG_END)
    if isinstance(core.role, Prospective):
        assert [*core.role.ballots] == [2], "the voters of the snapshot"


def test_without_a_sealed_snapshot_nothing_is_installed() -> None:
    core = core_of(follower())
    install_if_ready(core)
    assert core.out.events == []
    assert core.out.persist == []


@pytest.mark.parametrize(
    ("known_at", "voters", "changes"),
    [
        (20, (), []),
        (90, (), [VoterSetChanged(-1, (1, 2, 3))]),
        (20, VOTERS, [VoterSetChanged(2, (1, 2))]),
    ],
)
def test_the_voters_change_with_the_log_only_if_its_last_record_of_them_is_gone(
    known_at: int, voters: tuple[VotersAt, ...], changes: list[VoterSetChanged]
) -> None:
    core = core_of(follower())
    core.voters.add(known_at, VoterSet(map(voter, (1, 2, 3, 4))))
    replace_log(core, NEWER, voters)
    assert reported(core, VoterSetChanged) == changes
    assert core.high_watermark == NEWER.offset
