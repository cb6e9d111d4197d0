"""The ends of a divergence resolution: verified files, failed requests, and a lost poll."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import LogQuarantined
from quorum.core.contract.local_events import LogVerified
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.contract.output import QuarantineLog
from quorum.core.integrity.divergence_resolution import (
    FAILURES_MAX,
    QUIET_MS,
    on_digest_failed,
    on_log_verified,
    poll_divergence_resolution,
)
from quorum.core.state.chain_state import Stage
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peers import backoff_ms
from tests.support.bare_core import LOG_END, NOW_MS, core_of, follower, reported
from tests.unit.core.integrity.test_core_divergence_steps import (
    PEER,
    answer,
    ours,
    outcomes,
    polling,
    searching,
    theirs,
)

CAUSE = "a bad batch"


def quarantined(core: CoreState) -> list[QuarantineLog]:
    return [each for each in core.out.persist if isinstance(each, QuarantineLog)]


# The own files.


@pytest.mark.parametrize("stage", [None, *Stage])
@pytest.mark.parametrize("damaged_offset", [0, 20])
def test_damaged_files_end_it_in_every_stage_and_quarantine_the_log(
    stage: Stage | None, damaged_offset: int
) -> None:
    core = core_of(follower())
    if stage is not None:
        _, resolution = searching(core)
        resolution.stage = stage
    on_log_verified(core, LogVerified(core.log.cuts, damaged_offset, CAUSE))
    settled = [] if stage is None else [(DivergenceOutcome.DAMAGED, damaged_offset)]
    assert outcomes(core) == settled
    # The next start finds the damage by itself, so nothing is set aside for a history.
    assert quarantined(core) == [QuarantineLog(damaged_offset, CAUSE, is_history=False)]
    assert core.chain.resolution is None


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("damaged_offset", [-1, 20])
def test_what_was_verified_before_a_truncation_proves_nothing(
    is_open: bool, damaged_offset: int
) -> None:
    core = core_of(follower())
    if is_open:
        searching(core)
    core.log.cuts += 1
    on_log_verified(core, LogVerified(core.log.cuts - 1, damaged_offset, CAUSE))
    assert outcomes(core) == ([(DivergenceOutcome.CUT, -1)] if is_open else [])
    assert quarantined(core) == []
    assert core.chain.quiet_until_ms == (NOW_MS if is_open else 0)


@pytest.mark.parametrize("stage", [None, Stage.SEARCHING, Stage.POLLING])
def test_intact_files_matter_to_a_resolution_that_waits_for_them_alone(stage: Stage | None) -> None:
    core = core_of(follower())
    if stage is not None:
        _, resolution = searching(core)
        resolution.stage = stage
        requests = resolution.requests
    on_log_verified(core, LogVerified(core.log.cuts))
    assert core.out.events == []
    if stage is not None:
        assert (resolution.stage, resolution.requests) == (stage, requests)


@pytest.mark.parametrize(
    ("peer", "peer_votes", "is_asked"),
    [(PEER, True, True), (3, True, True), (PEER, False, True), (3, False, False)],
)
def test_with_intact_files_a_voter_or_the_leader_is_asked(
    peer: int, peer_votes: bool, is_asked: bool
) -> None:
    """An observer that does not lead is wrong, or it asks the voters itself."""
    core, resolution = searching(peer=peer)
    resolution.stage, resolution.requests, core.chain.due_ms = Stage.VERIFYING, {}, NEVER_MS
    resolution.peer_votes = peer_votes
    on_log_verified(core, LogVerified(core.log.cuts))
    if is_asked:
        assert resolution.stage is Stage.SEARCHING
        assert [*resolution.requests] == [peer]
        assert core.chain.due_ms == resolution.requests[peer].due_ms == NOW_MS
    else:
        assert outcomes(core) == [(DivergenceOutcome.INTACT, -1)]
        assert core.chain.quiet_until_ms == NOW_MS + QUIET_MS


# Requests without an answer.


@pytest.mark.parametrize("is_reported", [False, True])
def test_the_third_failure_ends_a_search_and_another_may_begin_at_once(is_reported: bool) -> None:
    """Method: the runtime reports the failure, or the request times out."""
    core, resolution = searching()
    request = resolution.requests[PEER]
    for failures in range(1, FAILURES_MAX + 1):
        core.now_ms = core.chain.due_ms
        poll_divergence_resolution(core)
        assert request.request_id
        if is_reported:
            on_digest_failed(core, request)
        else:
            core.now_ms = core.chain.due_ms
            poll_divergence_resolution(core)
        assert request.failures == failures
        if failures < FAILURES_MAX:
            assert core.chain.due_ms == core.now_ms + backoff_ms(core.config, failures)
            assert not outcomes(core)
    assert outcomes(core) == [(DivergenceOutcome.SILENT, -1)]
    assert core.chain.due_ms == NEVER_MS
    assert core.chain.quiet_until_ms == core.now_ms


def test_a_poll_goes_on_however_often_a_voter_fails() -> None:
    core, resolution = polling()
    request = resolution.requests[3]
    request.failures = FAILURES_MAX
    poll_divergence_resolution(core)
    on_digest_failed(core, request)
    assert request.failures == FAILURES_MAX + 1
    assert core.chain.resolution is resolution
    assert core.chain.due_ms == request.due_ms


def test_an_earlier_time_is_kept_when_a_request_fails() -> None:
    core, resolution = polling(asked=(3, 4))
    poll_divergence_resolution(core)
    core.chain.due_ms = NOW_MS
    on_digest_failed(core, resolution.requests[3])
    assert core.chain.due_ms == NOW_MS


def test_a_truncated_log_ends_it() -> None:
    core, _ = searching()
    core.log.cuts += 1
    poll_divergence_resolution(core)
    assert outcomes(core) == [(DivergenceOutcome.CUT, -1)]
    assert core.out.immediate == []
    assert core.chain.quiet_until_ms == NOW_MS


def test_no_answer_is_waited_for_after_the_end() -> None:
    core, _ = polling(asked=(3, 4, 5))
    poll_divergence_resolution(core)
    assert len(list(core.requests)) == 3
    answer(core, 3, (ours(15), ours(LOG_END)))
    assert outcomes(core) == [(DivergenceOutcome.WON, 10)]
    assert list(core.requests) == []


# A lost poll.


@pytest.mark.parametrize(
    ("first_offset", "is_low_equal", "is_formatted_anew"),
    [(10, True, False), (1, True, False), (0, True, True), (0, False, False)],
)
def test_only_a_log_that_differs_from_its_first_record_on_was_formatted_anew(
    first_offset: int, is_low_equal: bool, is_formatted_anew: bool
) -> None:
    """If the beginning of one log is gone, nothing is known of the first record."""
    core, _ = polling(first_offset=first_offset, is_low_equal=is_low_equal)
    answer(core, 3, (theirs(15), theirs(LOG_END)))
    assert outcomes(core) == [(DivergenceOutcome.LOST, first_offset)]
    assert bool(core.election.disqualified) == is_formatted_anew
    (found,) = quarantined(core)
    assert (found.first_offset, found.is_history) == (first_offset, True)


@pytest.mark.parametrize("peer_votes", [False, True])
def test_the_other_side_counts_only_as_a_voter(peer_votes: bool) -> None:
    core, resolution = polling()
    resolution.peer_votes = peer_votes
    answer(core, 3, (theirs(15), theirs(LOG_END)))
    outcome = DivergenceOutcome.LOST if peer_votes else DivergenceOutcome.UNDECIDED
    assert outcomes(core) == [(outcome, 10)]
    assert bool(reported(core, LogQuarantined)[0].vote_floor)
    assert (core.election.vote_floor is not None) == peer_votes
