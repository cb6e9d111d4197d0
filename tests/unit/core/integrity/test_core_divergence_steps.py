"""The steps of a divergence resolution, each from a state built by hand at its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import (
    DivergenceResolutionEnded,
    DivergenceResolutionStarted,
    LeaderLost,
    LogQuarantined,
)
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.contract.output import VerifyLog
from quorum.core.contract.reasons import DivergenceReason
from quorum.core.integrity.divergence_resolution import (
    QUIET_MS,
    on_chain_digest_response,
    on_digest_failed,
    poll_divergence_resolution,
    start_divergence_resolution,
)
from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.core.state.chain_state import DigestRequest, DivergenceResolution, Stage
from quorum.core.state.core_state import CoreState
from quorum.core.state.digest_tally import Held
from quorum.core.state.held_fetches import NEVER_MS
from quorum.errors import ErrorCode
from quorum.types import DigestAt, OffsetAndEpoch, ReplicaKey
from tests.support.bare_core import (
    EPOCH,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    reported,
    sent,
)
from tests.support.core_disk import key

PEER = 2
ABSENT = DigestAt(-1, b"")


def same(offset: int) -> DigestAt:
    return DigestAt(offset, b"same")


def ours(offset: int) -> DigestAt:
    return DigestAt(offset, b"ours")


def theirs(offset: int) -> DigestAt:
    return DigestAt(offset, b"theirs")


def searching(
    core: CoreState | None = None,
    *,
    peer: int = PEER,
    low: int = -1,
    high: int = LOG_END,
    **fields: Any,
) -> tuple[CoreState, DivergenceResolution]:
    """A search between two offsets whose first request is due."""
    core = core or core_of(follower())
    resolution = DivergenceResolution(
        peer, True, LOG_END, core.log.cuts, low, high, Stage.SEARCHING, **fields
    )
    resolution.requests = {peer: DigestRequest(peer, NOW_MS)}
    core.chain.resolution = resolution
    core.chain.due_ms = NOW_MS
    return core, resolution


def polling(
    core: CoreState | None = None, *, peer: int = PEER, asked: tuple[int, ...] = (3,), **fields: Any
) -> tuple[CoreState, DivergenceResolution]:
    """A poll of other voters about a first difference at offset 15."""
    values = {
        "is_high_known": True,
        "is_low_equal": True,
        "first_offset": 10,
        "own": Held(ours(15), ours(LOG_END)),
        "theirs": Held(theirs(15), theirs(LOG_END)),
        **fields,
    }
    core, resolution = searching(core, peer=peer, low=10, high=15, **values)
    resolution.stage = Stage.POLLING
    resolution.requests = {each: DigestRequest(each, NOW_MS) for each in asked}
    return core, resolution


def asked(core: CoreState, peer: int) -> list[tuple[int, ...]]:
    requests = [each for each in sent(core, peer) if isinstance(each, ChainDigestRequest)]
    return [each.offsets for each in requests]


def answer(
    core: CoreState,
    peer: int,
    points: tuple[DigestAt, ...],
    own: tuple[DigestAt, ...] = (),
    **fields: Any,
) -> None:
    """Ask what is due, and answer the newest request to ``peer``."""
    poll_divergence_resolution(core)
    requests = [each for each in sent(core, peer) if isinstance(each, ChainDigestRequest)]
    request = requests[-1]
    response = ChainDigestResponse(
        request.request_id,
        ErrorCode.NONE,
        core.leader_id,
        EPOCH,
        request.offsets,
        points,
        own or points,
        replica=key(peer),
    )
    on_chain_digest_response(core, peer, replace(response, **fields))


def outcomes(core: CoreState) -> list[tuple[DivergenceOutcome, int]]:
    return [(each.outcome, each.first_offset) for each in reported(core, DivergenceResolutionEnded)]


# Begin.


@pytest.mark.parametrize(
    "why_not", ["", "one is under way", "a wrong log", "quiet", "no more quiet"]
)
def test_a_resolution_begins_unless_one_did_or_the_log_is_known_to_be_wrong(why_not: str) -> None:
    core = core_of(follower(), start=OffsetAndEpoch(5, 2))
    core.log.cuts = 3
    match why_not:
        case "one is under way":
            searching(core)
        case "a wrong log":
            core.chain.quarantined_log = "a bad batch"
        case "quiet":
            core.chain.quiet_until_ms = NOW_MS + 1
        case "no more quiet":
            core.chain.quiet_until_ms = NOW_MS
    before = core.chain.resolution
    start_divergence_resolution(core, 3, 30, DivergenceReason.DIGEST_REFUSED, peer_votes=False)
    if why_not not in ("", "no more quiet"):
        assert core.chain.resolution is before
        assert not core.out.events
        return
    assert core.chain.resolution == DivergenceResolution(3, False, 30, 3, low=4, high=30)
    assert core.out.progress == [VerifyLog(LOG_END, 3)]
    started = DivergenceResolutionStarted(3, 30, DivergenceReason.DIGEST_REFUSED)
    assert core.out.events == [started]


# What is asked for.


@pytest.mark.parametrize(
    ("low", "high", "offsets"),
    [
        (-1, 0, ()),
        (-1, 1, (0,)),
        (9, 12, (10, 11)),
        (-1, CHAIN_OFFSETS_MAX - 2, tuple(range(CHAIN_OFFSETS_MAX - 2))),
        (0, 310, tuple(range(10, 310, 10))),
        (100, 162, tuple(range(102, 162, 2))),
        (0, 2, (1,)),
    ],
)
@pytest.mark.parametrize("is_high_known", [False, True])
def test_the_undecided_range_is_divided_evenly_and_its_end_asked_for_once(
    low: int, high: int, offsets: tuple[int, ...], is_high_known: bool
) -> None:
    core, _ = searching(low=low, high=high, is_high_known=is_high_known)
    poll_divergence_resolution(core)
    expected = offsets if is_high_known else (*offsets, high)
    assert asked(core, PEER) == [expected]
    assert len(expected) < CHAIN_OFFSETS_MAX
    assert core.chain.due_ms == NOW_MS + core.config.request_timeout_ms


def test_without_a_resolution_nothing_is_asked() -> None:
    core = core_of(follower())
    core.chain.due_ms = NOW_MS
    poll_divergence_resolution(core)
    assert core.chain.due_ms == NEVER_MS
    assert core.out.immediate == []


def test_an_answer_behind_the_end_of_the_resolution_has_no_effect() -> None:
    core, _ = searching()
    poll_divergence_resolution(core)
    (request,) = core.requests
    core.chain.resolution = None
    on_digest_failed(core, request)
    response = ChainDigestResponse(request.request_id, ErrorCode.NONE, 3, EPOCH + 1)
    on_chain_digest_response(core, PEER, response)
    assert core.epoch == EPOCH
    assert core.out.events == []


# Which answers count.


@pytest.mark.parametrize(
    ("peer", "fields", "counts"),
    [
        (PEER, {}, True),
        (PEER, {"offsets": (0, 2)}, False),
        (PEER, {"replica": None}, False),
        (PEER, {"replica": key(3)}, False),
        (PEER, {"replica": ReplicaKey(PEER, b"x" * 16)}, False),
        # A leader that is no voter by this log has any disk, but its own number.
        (9, {}, True),
        (9, {"replica": ReplicaKey(9, b"x" * 16)}, True),
        (9, {"replica": key(8)}, False),
    ],
)
def test_an_answer_counts_for_the_log_that_was_asked_about(
    peer: int, fields: dict[str, Any], counts: bool
) -> None:
    core, resolution = searching(peer=peer, low=9, high=11)
    answer(core, peer, (same(10), theirs(11)), (same(10), ours(11)), **fields)
    assert resolution.is_high_known == counts
    assert resolution.requests.get(peer) is None or resolution.requests[peer].failures


# The search.


def test_the_first_answer_has_both_ends_and_later_ones_do_not() -> None:
    core, resolution = searching(high=LOG_END)
    poll_divergence_resolution(core)
    (offsets,) = asked(core, PEER)
    answer(core, PEER, tuple(map(theirs, offsets)), tuple(map(ours, offsets)))
    assert (resolution.low, resolution.high) == (-1, offsets[0])
    assert (resolution.own.end, resolution.theirs.end) == (ours(LOG_END), theirs(LOG_END))

    core, resolution = searching(low=8, high=12, is_high_known=True)
    resolution.own, resolution.theirs = Held(ours(12), ours(40)), Held(theirs(12), theirs(40))
    answer(core, PEER, (same(9), theirs(10), theirs(11)), (same(9), ours(10), ours(11)))
    assert resolution.own == Held(ours(10), ours(40))
    assert resolution.theirs == Held(theirs(10), theirs(40))


@pytest.mark.parametrize(
    ("points", "own", "low", "is_low_equal", "first_offset"),
    [
        # Behind the first difference nothing counts: the logs may agree again by chance.
        ("s d s", "s d s", 9, True, 9),
        ("s d -", "s d -", 9, True, 9),
        ("- d s", "s d s", 9, False, -1),
        ("s d s", "- d s", 9, False, -1),
        ("d s s", "d s s", 8, False, -1),
    ],
)
def test_the_range_narrows_to_the_first_difference(
    points: str, own: str, low: int, is_low_equal: bool, first_offset: int
) -> None:
    def at(kinds: str, different: Any) -> tuple[DigestAt, ...]:
        kind = {"s": same, "d": different, "-": lambda _: ABSENT}
        return tuple(kind[each](9 + index) for index, each in enumerate(kinds.split()))

    # 12 is known to differ, as 9 + the index of the first difference will be.
    core, resolution = searching(low=8, high=12, is_high_known=True)
    answer(core, PEER, at(points, theirs), at(own, ours))
    assert resolution.high == 9 + points.split().index("d")
    assert (resolution.low, resolution.is_low_equal) == (low, is_low_equal)
    assert resolution.stage is Stage.POLLING
    assert resolution.first_offset == (first_offset if is_low_equal else 0)


def test_a_range_of_more_than_one_offset_is_asked_about_again_at_once() -> None:
    core, resolution = searching(low=0, high=310, is_high_known=True)
    poll_divergence_resolution(core)
    (offsets,) = asked(core, PEER)
    found = tuple(same(each) if each <= 100 else theirs(each) for each in offsets)
    answer(core, PEER, found, tuple(same(each) if each <= 100 else ours(each) for each in offsets))
    assert resolution.stage is Stage.SEARCHING
    assert (resolution.low, resolution.high) == (100, 110)
    assert core.chain.due_ms == resolution.requests[PEER].due_ms == NOW_MS
    poll_divergence_resolution(core)
    assert asked(core, PEER)[-1] == tuple(range(101, 110))


def test_equal_ends_are_equal_logs_and_an_unknown_end_is_not_comparable() -> None:
    for points, outcome in (
        ((theirs(10), same(11)), []),
        ((same(10), same(11)), [(DivergenceOutcome.EQUAL, -1)]),
        ((same(10), ABSENT), [(DivergenceOutcome.NOT_COMPARABLE, -1)]),
        ((ABSENT, same(11)), [(DivergenceOutcome.EQUAL, -1)]),
        ((ABSENT, ABSENT), [(DivergenceOutcome.NOT_COMPARABLE, -1)]),
    ):
        core, _ = searching(low=9, high=11)
        answer(core, PEER, points, (ours(10) if points[0] == theirs(10) else same(10), same(11)))
        assert outcomes(core) == outcome
        assert core.chain.resolution is None or not outcome


# The poll.


def test_a_voter_is_asked_at_the_first_difference_and_at_the_end() -> None:
    core, resolution = polling(asked=(3, 4))
    poll_divergence_resolution(core)
    assert asked(core, 3) == asked(core, 4) == [(15, LOG_END)]
    resolution.requests[3].held = Held(ours(15), ours(LOG_END))
    core.now_ms = NOW_MS + core.config.request_timeout_ms
    poll_divergence_resolution(core)
    assert resolution.requests[3].failures == 0
    assert resolution.requests[4].failures == 1


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3, 4)])
def test_only_a_voters_own_log_counts(voters: tuple[int, ...]) -> None:
    """Two of three decide: for an observer that takes both of the others."""
    core = core_of(follower(), voters=voters)
    polling(core, asked=(3, 4) if 4 in voters else (3,))
    answer(core, 3, (ours(15), ours(LOG_END)))
    assert bool(outcomes(core)) == core.is_voter


@pytest.mark.parametrize(
    ("is_low_equal", "first_offset", "near", "is_undecided"),
    [
        # The common part ends at 10, where the last equal batch did.
        (True, 10, 10, True),
        (True, 10, 11, False),
        (True, 1, 1, True),
        (True, 1, 2, False),
        # It is not known: below the nearer of both sides' boundaries nothing is decided.
        (False, 0, 14, True),
        (False, 0, 1, True),
        (False, 0, 15, False),
    ],
)
def test_a_voter_that_ends_within_the_common_part_is_asked_again(
    is_low_equal: bool, first_offset: int, near: int, is_undecided: bool
) -> None:
    core, resolution = polling(is_low_equal=is_low_equal, first_offset=first_offset)
    answer(core, 3, (DigestAt(near, b"x"), DigestAt(near, b"x")))
    if is_undecided:
        assert not outcomes(core)
        assert resolution.requests[3].held is None
        assert resolution.requests[3].failures == 1
    else:
        assert outcomes(core) == [(DivergenceOutcome.UNDECIDED, first_offset)]


@pytest.mark.parametrize("first_offset", [0, 1, 10])
def test_the_first_different_offset_is_named(first_offset: int) -> None:
    core, _ = polling(first_offset=first_offset)
    answer(core, 3, (ours(15), ours(LOG_END)))
    assert outcomes(core) == [(DivergenceOutcome.WON, first_offset)]
    assert core.chain.quiet_until_ms == NOW_MS + QUIET_MS
    assert core.chain.due_ms == NEVER_MS
    assert not reported(core, LogQuarantined)


@pytest.mark.parametrize("jitter_ms", [0, 1, 3])
def test_a_follower_that_is_right_loses_the_leader_that_is_wrong(jitter_ms: int) -> None:
    waits = set()
    for seed in range(50):
        role = follower()
        core, _ = polling(core_of(role, lost_leader_jitter_ms=jitter_ms))
        core.rng.seed(seed)
        answer(core, 3, (ours(15), ours(LOG_END)))
        assert reported(core, LeaderLost) == [LeaderLost(PEER, EPOCH)]
        waits.add(role.campaign_at_ms - NOW_MS)
    assert waits == {*range(jitter_ms + 1)}


def test_one_that_is_right_about_another_replica_keeps_its_leader() -> None:
    role = follower(3)
    core, _ = polling(core_of(role, leader_id=3))
    answer(core, 3, (ours(15), ours(LOG_END)))
    assert outcomes(core) == [(DivergenceOutcome.WON, 10)]
    assert role.campaign_at_ms == NEVER_MS
    core, leader = leading()
    polling(core)
    answer(core, 3, (ours(15), ours(LOG_END)))
    assert core.role is leader
    assert not reported(core, LeaderLost)
