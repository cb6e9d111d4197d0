"""Whom an observer fetches from after each answer and failure, and when it looks elsewhere."""

from __future__ import annotations

import random

import pytest

from quorum.config import QuorumConfig
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.upstream import Upstream
from quorum.types import ReplicaKey
from tests.support.core_disk import key

RELAYS = (8, 9)
CONFIG = QuorumConfig(relay_patience_ms=100, relay_retry_ms=300)
NOW_MS = 5_000


def fail(upstream: Upstream, peer: int, now_ms: int = NOW_MS, seed: int = 1) -> None:
    upstream.failed(peer, now_ms, CONFIG, random.Random(seed))


@pytest.mark.parametrize(
    ("current", "order"), [(-1, (8, 9)), (2, (8, 9)), (8, (8, 9)), (9, (9, 8))]
)
def test_the_relay_that_answered_last_comes_first(current: int, order: tuple[int, ...]) -> None:
    upstream = Upstream(RELAYS, current)
    assert upstream.in_order() == order
    assert [each for each in range(12) if upstream.is_relay(each)] == [8, 9]


def test_the_first_failure_of_a_relay_begins_a_wait_of_random_length() -> None:
    begun = set()
    for seed in range(200):
        upstream = Upstream(RELAYS)
        fail(upstream, 8, seed=seed)
        begun.add(upstream.direct_from_ms)
        before_ms = upstream.direct_from_ms
        fail(upstream, 9, NOW_MS + 50, seed=seed + 1)
        assert upstream.direct_from_ms == before_ms, "the first in a row counts"
        assert upstream.retry_ms == 0
    assert NOW_MS + 100 <= min(begun) < NOW_MS + 110
    assert NOW_MS + 190 <= max(begun) < NOW_MS + 200


@pytest.mark.parametrize("is_direct", [True, False])
def test_what_is_no_relay_may_fail(is_direct: bool) -> None:
    upstream = Upstream(RELAYS, is_direct=is_direct, retry_ms=7)
    fail(upstream, 2)
    assert (upstream.direct_from_ms, upstream.retry_ms) == (NEVER_MS, 7)


@pytest.mark.parametrize("direct_from_ms", [NEVER_MS, 40])
def test_a_relay_that_fails_while_the_leader_serves_is_tried_again_later(
    direct_from_ms: int,
) -> None:
    upstream = Upstream(RELAYS, is_direct=True, direct_from_ms=direct_from_ms)
    fail(upstream, 8)
    assert upstream.retry_ms == NOW_MS + 300
    assert upstream.direct_from_ms == direct_from_ms


def test_only_the_change_to_the_leader_begins_the_wait_for_the_next_try() -> None:
    upstream = Upstream(RELAYS)
    upstream.go_direct(NOW_MS, CONFIG)
    assert (upstream.is_direct, upstream.retry_ms) == (True, NOW_MS + 300)
    upstream.go_direct(NOW_MS + 50, CONFIG)
    assert (upstream.is_direct, upstream.retry_ms) == (True, NOW_MS + 300)


@pytest.mark.parametrize(
    ("peer", "is_direct", "direct_from_ms"), [(8, False, NEVER_MS), (2, True, 40)]
)
def test_the_answer_of_a_relay_ends_the_fetches_from_the_leader(
    peer: int, is_direct: bool, direct_from_ms: int
) -> None:
    upstream = Upstream(RELAYS, is_direct=True, direct_from_ms=40)
    upstream.succeeded(peer)
    assert upstream.current == peer
    assert (upstream.is_direct, upstream.direct_from_ms) == (is_direct, direct_from_ms)


@pytest.mark.parametrize(
    ("epoch", "at_ms", "confirmed_ms"), [(3, 90, 100), (3, 110, 110), (4, 90, 90), (4, 110, 110)]
)
def test_the_time_at_which_a_leader_led_falls_only_with_another_epoch(
    epoch: int, at_ms: int, confirmed_ms: int
) -> None:
    upstream = Upstream(RELAYS)
    upstream.confirm((), 3, 100)
    path: tuple[ReplicaKey, ...] = (key(8),)
    upstream.confirm(path, epoch, at_ms)
    assert (upstream.path, upstream.epoch) == (path, epoch)
    assert upstream.confirmed_ms == confirmed_ms
