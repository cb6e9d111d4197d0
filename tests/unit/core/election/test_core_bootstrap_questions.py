"""Requests of a bootstrap voter: their receivers, their rate, and limits of the responses."""

from __future__ import annotations

import random

import pytest

from quorum.core.contract.local_events import RequestFailed
from quorum.core.election.bootstrapping import (
    _draw_incarnation_id,
    why_not_bootstrapped,
    why_not_vote,
)
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import Unattached
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, ElectionState
from tests.support.bare_core import core_of
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import FRESH
from tests.unit.core.election.test_core_bootstrap import (
    answer,
    bootstrap_state,
    core,
    fresh,
    incarnation,
    notify,
    question,
    receive,
    request,
    whole_voter_list,
)

RETRIED = Timer.RETRY_BACKOFF, Purpose.BOOTSTRAP
TIMED_OUT = Timer.REQUEST_TIMEOUT, Purpose.BOOTSTRAP


def questions(cluster: CoreCluster, to: int) -> int:
    sent = [each for each in cluster.sent if each[:2] == (1, to)]
    return len([each for each in sent if isinstance(each[2], BootstrapRequest)])


def pass_time(cluster: CoreCluster, ms: int) -> None:
    cluster.now_ms += ms
    cluster.tick(1)


def test_only_those_are_named_that_are_waited_for() -> None:
    """Not one that has agreed, and not one that the operator does without."""
    cluster = fresh((1, 2, 3, 4))
    core(cluster, 1).bootstrap.without = frozenset({4})
    assert "[2, 3]" in why_not_bootstrapped(core(cluster, 1))
    notify(cluster, 2, whole_voter_list(cluster))
    assert "[3]" in why_not_bootstrapped(core(cluster, 1))


def test_a_disk_that_has_asked_nobody_yet_waits_for_all_others() -> None:
    fresh_core = core_of(Unattached(0))
    fresh_core.adopt_election(ElectionState())
    assert "[2, 3] have not reported" in why_not_bootstrapped(fresh_core)


def test_an_observer_waits_for_no_bootstrap_to_vote() -> None:
    """It has promised nothing, and may be a voter by a record that it lacks."""
    cluster = CoreCluster(observers=(9,), disks={9: FRESH})
    assert why_not_vote(core(cluster, 9)) is None


def test_a_voter_that_has_agreed_is_asked_no_more() -> None:
    cluster = fresh()
    notify(cluster, 2, whole_voter_list(cluster))
    before = questions(cluster, 2)
    receive(cluster, 1, 2, request(cluster, voter_list=whole_voter_list(cluster)))
    for _ in range(10):
        pass_time(cluster, 1_000)
    assert questions(cluster, 2) == before
    assert questions(cluster, 3) > 2


def test_a_question_that_fails_is_asked_again_after_its_pause_and_no_other() -> None:
    cluster = fresh()
    asked = question(cluster, 1, 2).request_id
    for request_id in (asked + 1000, asked):
        failure = RequestFailed(2, request_id)
        cluster.call(1, lambda node, event=failure: node.on_local_event(cluster.now_ms, event))
        pass_time(cluster, cluster.config.retry_backoff_ms - 1)
        assert questions(cluster, 2) == 1
    pass_time(cluster, 1)
    assert (questions(cluster, 2), questions(cluster, 3)) == (2, 1)
    fired = cluster[1].timers_fired
    assert (fired[RETRIED], fired[TIMED_OUT]) == (1, 0)


def test_a_question_without_an_answer_counts_as_one_timeout_and_one_retry() -> None:
    cluster = fresh((1, 2))
    pass_time(cluster, cluster.config.request_timeout_ms)
    assert questions(cluster, 2) == 1
    pass_time(cluster, cluster.config.retry_backoff_ms)
    assert questions(cluster, 2) == 2
    fired = cluster[1].timers_fired
    assert (fired[RETRIED], fired[TIMED_OUT]) == (1, 1)


def test_an_unexpected_response_is_ignored() -> None:
    """0 is no request id; it means no request while the next one waits for its pause."""
    cluster = fresh()
    notify(cluster, 2, (), incarnation_id=ZERO_UUID)
    response = BootstrapResponse(
        0, ErrorCode.NONE, -1, 0, incarnation(cluster, 2), whole_voter_list(cluster)
    )
    receive(cluster, 1, 2, response)
    assert bootstrap_state(cluster, 1).voter_list == ()
    assert core(cluster, 1).bootstrap.peers[2].incarnation_id == ZERO_UUID


def test_a_voter_list_without_its_senders_incarnation_is_ignored() -> None:
    cluster = fresh()
    notify(cluster, 2, whole_voter_list(cluster), incarnation_id=ZERO_UUID)
    assert bootstrap_state(cluster, 1).voter_list == ()


def test_a_question_that_is_refused_is_no_reason_to_ask() -> None:
    """Its sender is a voter, and node 1 waits for its pause to end; the voter list is out of
    order.
    """
    cluster = fresh()
    notify(cluster, 2, (), incarnation_id=incarnation(cluster, 2))
    before = questions(cluster, 2)
    receive(cluster, 1, 2, request(cluster, voter_list=whole_voter_list(cluster)[::-1]))
    assert answer(cluster, 1).error is ErrorCode.INVALID_REQUEST
    assert questions(cluster, 2) == before


@pytest.mark.parametrize("drawn", [0, 1, (1 << 128) - 1])
def test_a_drawn_incarnation_id_is_never_empty(drawn: int) -> None:
    """Sixteen zero bytes mean that there is none."""

    class Drawn(random.Random):
        def getrandbits(self, bits: int) -> int:
            assert bits == 128
            return drawn

    state = core(fresh(), 1)
    state.rng = Drawn()
    assert _draw_incarnation_id(state) == max(1, drawn).to_bytes(16, "big") != ZERO_UUID
