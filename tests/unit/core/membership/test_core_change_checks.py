"""The checks before a change of the voter set, refusal by refusal, at the limits of each."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.membership.voter_change_checks import (
    CAUGHT_UP_WITHIN_MS,
    TOMBSTONES_MAX,
    as_supported,
    why_malformed,
    why_not_begin,
    why_not_caught_up,
    why_not_supported,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, LocalAsker, PendingChange
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Leader, Transfer
from quorum.core.voters.versions import Versions
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Endpoint, ReplicaKey, VersionRange, Voter
from tests.support.core_disk import key, voter

NOW_MS = 10_000_000
KRAFT = VersionRange("kraft.version", 0, 1)
OTHER = VersionRange("metadata.version", 1, 33)


def core_of(voters: VoterSet | None = None, *, offset: int = 3) -> CoreState:
    """A leader's state with a voters record at ``offset``; everything below 9 is committed."""
    core = CoreState(
        config=QuorumConfig(),
        cluster_id="cluster",
        me=key(1),
        rng=random.Random(1),
        bootstrap=(),
    )
    core.voters.add(offset, VoterSet(map(voter, (1, 2, 3))) if voters is None else voters)
    core.now_ms, core.high_watermark = NOW_MS, 9
    return core


def leader(**fields: Any) -> Leader:
    return Leader(0, (), 0, ReadRounds(1, 0), **{"can_write": True, "established": True, **fields})


def change(kind: ChangeKind, entry: Voter, *, readmit: bool = False) -> PendingChange:
    return PendingChange(kind, entry, LocalAsker(1), readmit=readmit)


def with_key(node_id: int, directory_id: bytes | None = None) -> Voter:
    directory_id = key(1).directory_id if directory_id is None else directory_id
    return replace(voter(4), key=ReplicaKey(node_id, directory_id))


def at(*endpoints: Endpoint) -> Voter:
    return replace(voter(4), endpoints=endpoints)


def endpoint(name: str = "CONTROLLER", host: str = "h", port: int = 1) -> Endpoint:
    return Endpoint(name, host, port)


def supporting(lowest: int, highest: int) -> Voter:
    return replace(voter(4), min_supported_version=lowest, max_supported_version=highest)


def listeners(count: int) -> tuple[Endpoint, ...]:
    return (endpoint(), *(endpoint(f"L{number}") for number in range(count - 1)))


AT_LIMITS = [
    voter(4),
    with_key(0),
    with_key(2**31 - 1),
    at(endpoint(port=1)),
    at(endpoint(port=2**16 - 1)),
    at(endpoint(host="h" * 255)),
    at(endpoint(), endpoint("L" * 255)),
    at(*listeners(16)),
    supporting(0, 1),
    supporting(1, 1),
    supporting(0, 2**15 - 1),
]
MALFORMED = [
    (with_key(-1), "no replica"),
    (with_key(2**31), "no replica"),
    (with_key(4, bytes(15)), "no replica"),
    (with_key(4, bytes(17)), "no replica"),
    (with_key(4, ZERO_UUID), "directory id of node 4 is missing"),
    (supporting(-1, 1), "range -1 to 1"),
    (supporting(2, 1), "range 2 to 1"),
    (supporting(0, 2**15), f"range 0 to {2**15}"),
    (supporting(0, 0), "supports kraft.version 0 to 0, in force is 1"),
    (supporting(2, 2), "supports kraft.version 2 to 2, in force is 1"),
    (at(), "no endpoint"),
    (at(*listeners(17)), "17 endpoints"),
    (at(endpoint(name="")), "without listener name or host"),
    (at(endpoint(host="")), "without listener name or host"),
    (at(endpoint(host="h" * 256)), "above 255 bytes"),
    (at(endpoint(host="é" * 128)), "above 255 bytes"),
    (at(endpoint(), endpoint("L" * 256)), "above 255 bytes"),
    (at(endpoint(port=0)), "port 0"),
    (at(endpoint(port=2**16)), f"port {2**16}"),
    (at(endpoint(), endpoint(host="other")), "two endpoints of one listener"),
    (at(endpoint("OTHER")), "the first endpoint must be of listener CONTROLLER"),
]


@pytest.mark.parametrize("entry", AT_LIMITS)
@pytest.mark.parametrize("kind", [ChangeKind.ADD, ChangeKind.UPDATE])
def test_entries_at_the_limits_are_valid(kind: ChangeKind, entry: Voter) -> None:
    assert why_malformed(core_of(), change(kind, entry)) is None


@pytest.mark.parametrize(("entry", "problem"), MALFORMED)
@pytest.mark.parametrize("kind", [ChangeKind.ADD, ChangeKind.UPDATE])
def test_entries_beyond_the_limits_are_named(kind: ChangeKind, entry: Voter, problem: str) -> None:
    refusal = why_malformed(core_of(), change(kind, entry))
    assert refusal is not None
    assert refusal[0] is ErrorCode.INVALID_REQUEST
    assert problem in refusal[1]


def test_any_listener_may_come_first_where_voters_have_none() -> None:
    core = core_of(VoterSet([replace(voter(1), endpoints=())]))
    assert why_malformed(core, change(ChangeKind.ADD, at(endpoint("OTHER")))) is None


def test_of_a_removal_only_the_key_counts() -> None:
    entry = replace(with_key(2), endpoints=(), min_supported_version=5, max_supported_version=4)
    assert why_malformed(core_of(), change(ChangeKind.REMOVE, entry)) is None
    assert why_malformed(core_of(), change(ChangeKind.REMOVE, with_key(2, ZERO_UUID))) is not None


ADDED = change(ChangeKind.ADD, voter(4))
TRANSFER = Transfer(key(2), 1, 5, PeerRequest(2, Purpose.TRANSFER))


@pytest.mark.parametrize(
    ("fields", "offset", "problem"),
    [
        ({}, 3, None),
        ({}, 8, None),
        ({}, 9, "the voters record at 9 is not committed yet"),
        ({"can_write": False}, 3, "nothing of epoch 0 is committed yet"),
        (
            {"transfer": Transfer(key(2), 1, 5, PeerRequest(2, Purpose.TRANSFER))},
            3,
            "transfer is under way",
        ),
        ({"change": change(ChangeKind.REMOVE, voter(2))}, 3, "remove of node 2"),
    ],
)
def test_a_change_waits_for_what_is_under_way(
    fields: dict[str, Any], offset: int, problem: str | None
) -> None:
    refusal = why_not_begin(core_of(offset=offset), leader(**fields), ADDED)
    if problem is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal[0] is ErrorCode.REQUEST_TIMED_OUT
        assert problem in refusal[1]


def test_what_no_leader_could_do_is_refused_first() -> None:
    refusal = why_not_begin(core_of(offset=9), leader(), change(ChangeKind.ADD, with_key(-1)))
    assert refusal is not None
    assert refusal[0] is ErrorCode.INVALID_REQUEST


ELSEWHERE = bytes(15) + b"x"


@pytest.mark.parametrize(
    ("asked", "voters", "error"),
    [
        (ADDED, None, None),
        (change(ChangeKind.ADD, voter(2)), None, ErrorCode.DUPLICATE_VOTER),
        (change(ChangeKind.ADD, with_key(2, ELSEWHERE)), None, ErrorCode.DUPLICATE_VOTER),
        (ADDED, VoterSet([voter(1)], [key(4)]), ErrorCode.VOTER_REMOVED),
        (ADDED, VoterSet([voter(1)], [ReplicaKey(4, ELSEWHERE)]), None),
        (change(ChangeKind.ADD, voter(4), readmit=True), VoterSet([voter(1)], [key(4)]), None),
        (change(ChangeKind.REMOVE, voter(2)), None, None),
        (change(ChangeKind.REMOVE, voter(4)), None, ErrorCode.VOTER_NOT_FOUND),
        (change(ChangeKind.REMOVE, with_key(2, ELSEWHERE)), None, ErrorCode.VOTER_NOT_FOUND),
        (change(ChangeKind.REMOVE, voter(1)), VoterSet([voter(1)]), ErrorCode.VOTER_NOT_FOUND),
        (change(ChangeKind.UPDATE, voter(2)), None, None),
        (change(ChangeKind.UPDATE, voter(4)), None, ErrorCode.VOTER_NOT_FOUND),
        (change(ChangeKind.UPDATE, with_key(2, ELSEWHERE)), None, ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_a_change_fits_the_set_in_force(
    asked: PendingChange, voters: VoterSet | None, error: ErrorCode | None
) -> None:
    refusal = why_not_begin(core_of(voters), leader(), asked)
    assert (refusal and refusal[0]) == error


@pytest.mark.parametrize("is_refused", [False, True])
def test_so_many_removed_voters_are_remembered(is_refused: bool) -> None:
    count = TOMBSTONES_MAX - (not is_refused)
    removed = [ReplicaKey(number, ELSEWHERE) for number in range(10, 10 + count)]
    core = core_of(VoterSet([voter(1), voter(2)], removed))
    refusal = why_not_begin(core, leader(), change(ChangeKind.REMOVE, voter(2)))
    assert (refusal is not None and refusal[0] is ErrorCode.RESOURCE_EXHAUSTED) == is_refused


@pytest.mark.parametrize(
    ("kind", "asked", "supported", "error"),
    [
        (ChangeKind.ADD, (0, 1), (KRAFT, OTHER), None),
        (ChangeKind.ADD, (5, 9), (KRAFT, OTHER), None),
        (ChangeKind.UPDATE, (0, 1), (KRAFT, OTHER), None),
        (ChangeKind.UPDATE, (1, 1), (KRAFT, OTHER), ErrorCode.INVALID_REQUEST),
        (ChangeKind.UPDATE, (0, 2), (KRAFT, OTHER), ErrorCode.INVALID_REQUEST),
        (ChangeKind.ADD, (0, 1), (OTHER,), ErrorCode.UNSUPPORTED_VERSION),
        (ChangeKind.ADD, (0, 1), (), ErrorCode.UNSUPPORTED_VERSION),
        (ChangeKind.ADD, (0, 1), (replace(KRAFT, highest=0), OTHER), ErrorCode.INVALID_REQUEST),
        (ChangeKind.ADD, (0, 1), (VersionRange("kraft.version", 2, 3), OTHER),
         ErrorCode.INVALID_REQUEST),
        (ChangeKind.ADD, (0, 1), (VersionRange("kraft.version", 1, 1), OTHER), None),
        (ChangeKind.ADD, (0, 1), (KRAFT,), ErrorCode.UNSUPPORTED_VERSION),
        (ChangeKind.ADD, (0, 1), (KRAFT, replace(OTHER, highest=19)),
         ErrorCode.UNSUPPORTED_VERSION),
        (ChangeKind.ADD, (0, 1), (KRAFT, replace(OTHER, lowest=20, highest=20)), None),
    ],
)  # fmt: skip
def test_a_replica_must_support_the_levels_in_force(
    kind: ChangeKind,
    asked: tuple[int, int],
    supported: tuple[VersionRange, ...],
    error: ErrorCode | None,
) -> None:
    core = core_of()
    core.process.versions = Versions(in_force={"metadata.version": 20, "unused": 0})
    refusal = why_not_supported(core, change(kind, supporting(*asked)), supported)
    assert (refusal and refusal[0]) == error


def test_an_update_that_differs_from_the_replica_is_named() -> None:
    asked = change(ChangeKind.UPDATE, supporting(0, 2))
    refusal = why_not_supported(core_of(), asked, (KRAFT,))
    assert refusal is not None
    assert refusal[1].endswith("supports kraft.version 0 to 1, not 0 to 2 as in the request")


def test_an_entry_gets_the_range_that_the_replica_reports() -> None:
    assert as_supported(voter(4), (VersionRange("kraft.version", 1, 7),)) == supporting(1, 7)
    assert as_supported(supporting(0, 3), (OTHER,)) == supporting(0, 3)


def fetching(**fields: int) -> ReplicaProgress:
    times = {"last_fetch_ms": NOW_MS, "last_caught_up_ms": 0, **fields}
    return ReplicaProgress(key(4), is_voter=False, live_since_ms=NOW_MS, **times)


@pytest.mark.parametrize(
    ("progress", "problem"),
    [
        (None, "does not fetch from this leader"),
        (fetching(last_caught_up_ms=-1), "has not caught up"),
        (fetching(last_caught_up_ms=0), None),
        (fetching(last_fetch_ms=NOW_MS - CAUGHT_UP_WITHIN_MS), None),
        (fetching(last_fetch_ms=NOW_MS - CAUGHT_UP_WITHIN_MS - 1), "not fetched for too long"),
    ],
)
def test_a_future_voter_has_caught_up_and_still_fetches(
    progress: ReplicaProgress | None, problem: str | None
) -> None:
    observers = {} if progress is None else {key(4): progress}
    refusal = why_not_caught_up(core_of(), leader(observers=observers), voter(4))
    if problem is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal[0] is ErrorCode.REQUEST_TIMED_OUT
        assert problem in refusal[1]


@pytest.mark.parametrize("readmit", [False, True])
def test_a_disk_that_never_votes_is_no_future_voter(readmit: bool) -> None:
    progress = fetching()
    progress.is_disqualified = True
    role = leader(observers={key(4): progress})
    asked = change(ChangeKind.ADD, voter(4), readmit=readmit)
    for refusal in (
        why_not_begin(core_of(), role, asked),
        why_not_caught_up(core_of(), role, voter(4)),
    ):
        assert refusal is not None
        assert refusal[0] is ErrorCode.INELIGIBLE_REPLICA
