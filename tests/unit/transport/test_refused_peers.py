"""A refused peer retries with growing pauses, is logged once, counted always, accepted soon."""

from __future__ import annotations

import asyncio
import logging
import random
import time

import pytest

from quorum.transport import backoff as backoff_module
from quorum.transport import peer_sessions as peer_sessions_module
from quorum.transport.backoff import Backoff
from quorum.transport.hello import Hello
from quorum.transport.limits import RECONNECT_BACKOFF_S, REFUSED_BACKOFF_MAX_S
from tests.support.peer_harness import CLUSTER, PATIENCE_S, Replica, fetch, key, replica, run

pytestmark = pytest.mark.usefixtures("carrier")

FIRST = Hello(CLUSTER, key(2), b"", process_id=b"first")
SECOND = Hello(CLUSTER, key(2), b"", process_id=b"second")
TRIES = 5
"""Its pauses are then at least 50, 100, 200 and 400 ms."""


def test_refusals_double_the_pause_up_to_some_seconds() -> None:
    backoff = Backoff(random.Random(1))
    pauses = [backoff.after_refusal() for _ in range(20)]
    limit = RECONNECT_BACKOFF_S
    for pause in pauses:
        limit = min(limit * 2, REFUSED_BACKOFF_MAX_S)
        assert limit / 2 <= pause <= limit
    assert len({round(pause, 6) for pause in pauses[10:]}) == 10
    backoff.record_contact()
    assert backoff.after_refusal() <= 2 * RECONNECT_BACKOFF_S


def test_a_stream_that_stood_between_two_refusals_does_not_start_over() -> None:
    """A peer that sends its hello and refuses us at once has not read our hello."""
    backoff = Backoff(random.Random(1))
    for _ in range(10):
        backoff.after_refusal()
    assert backoff.after_reaching() == RECONNECT_BACKOFF_S
    assert backoff.after_refusal() >= REFUSED_BACKOFF_MAX_S / 2


def test_silence_and_refusal_are_counted_apart() -> None:
    backoff = Backoff(random.Random(1))
    assert [backoff.after_silence() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.after_refusal() <= 2 * RECONNECT_BACKOFF_S


async def established(first: Replica, leader: Replica) -> None:
    leader.echo()
    first.network.set_peers({1: leader.address})
    first.network.send(1, fetch(2, 1))
    await first.handler.until(lambda: len(first.handler.received) == 1)


def lines_about(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [each.message for each in caplog.records if words in each.message]


class Pauses:
    """Records the pauses after refusals, and reports when a number was reached.

    The last of them does not end during the test, however late a busy machine goes on with it.
    """

    def __init__(self, patch: pytest.MonkeyPatch, wanted: int) -> None:
        self.drawn: list[float] = []
        self.are_all_drawn = asyncio.Event()
        after_refusal = Backoff.after_refusal

        def record(backoff: Backoff) -> float:
            self.drawn.append(after_refusal(backoff))
            if len(self.drawn) < wanted:
                return self.drawn[-1]
            self.are_all_drawn.set()
            return 2 * PATIENCE_S

        patch.setattr(Backoff, "after_refusal", record)


@pytest.fixture
def patient_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is paused by a busy machine does not count as dead."""
    monkeypatch.setattr(peer_sessions_module, "PEER_SESSION_ANSWER_S", 2 * PATIENCE_S)


@pytest.mark.usefixtures("patient_peers")
def test_a_clone_comes_back_ever_more_rarely_and_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused after the hellos, so its stream is open for a moment each time.

    Counted in tries, not in what fits in a time: each try costs as much as the machine makes it.
    """

    async def scenario() -> None:
        pauses = Pauses(monkeypatch, TRIES)
        loop = asyncio.get_running_loop()
        async with (
            replica(1) as leader,
            replica(2, hello=FIRST) as first,
            replica(2, hello=SECOND) as clone,
        ):
            await established(first, leader)
            began = loop.time()
            clone.network.set_peers({1: leader.address})
            await pauses.are_all_drawn.wait()
            # The last pause has only begun: nothing is under way.
            waited = sum(pauses.drawn[:-1])
            assert (
                loop.time() - began >= waited - TRIES * time.get_clock_info("monotonic").resolution
            )
            # A stream that moved to TCP may have been refused as well, behind its hello.
            moved = min(1, clone.link.hello.tcp_port)
            assert TRIES <= leader.link.counters.clones_refused <= TRIES + moved
            # The status may overtake the hello that it was sent behind.
            counters = clone.link.counters
            assert counters.refused_by_peers + counters.hellos_refused == TRIES
            assert counters.connects == counters.refused_by_peers
        for tried, pause in enumerate(pauses.drawn, start=1):
            limit = RECONNECT_BACKOFF_S * 2**tried
            assert limit / 2 <= pause <= limit

    with caplog.at_level(logging.INFO, logger="quorum"):
        run(scenario())
    assert len(lines_about(caplog, "stream refused")) == 1
    assert len(lines_about(caplog, "refused by the peer")) == 1


def test_requests_to_a_refusing_peer_fail_at_once_with_its_reason() -> None:
    """The caller may ask another node, and an operator waits for the reason."""

    async def scenario() -> None:
        async with replica(1, cluster="other") as leader, replica(2, timeout_s=60.0) as follower:
            follower.network.set_peers({1: leader.address})
            for request_id in range(1, 30):
                follower.network.send(1, fetch(2, request_id))
                await follower.handler.until(lambda n=request_id: (1, n) in follower.handler.failed)
            assert len(follower.handler.failed) == 29
            assert all("belongs to cluster" in why for why in follower.handler.refusals)
            assert follower.link.counters.hellos_refused < 10

    run(scenario())


@pytest.mark.usefixtures("patient_peers")
def test_who_was_refused_is_back_within_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """The original ends; the clone is accepted at its next try, and that is logged."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=SECOND) as clone:
            async with replica(2, hello=FIRST) as first:
                await established(first, leader)
                clone.network.set_peers({1: leader.address})
                while leader.link.counters.clones_refused < 3:
                    await asyncio.sleep(0)
            began = asyncio.get_running_loop().time()
            request_id = 1
            while not clone.handler.received:
                clone.network.send(1, fetch(2, request_id))
                await clone.handler.until(
                    lambda n=request_id: (
                        bool(clone.handler.received) or (1, n) in clone.handler.failed
                    )
                )
                request_id += 1
                await asyncio.sleep(0.01)
            assert asyncio.get_running_loop().time() - began < 2 * REFUSED_BACKOFF_MAX_S

    with caplog.at_level(logging.INFO, logger="quorum"):
        run(scenario())
    assert len(lines_about(caplog, "peer 1: answers again")) == 1


def test_a_peer_that_connects_by_itself_is_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its configuration was fixed and it was restarted: the pause does not delay it."""
    for name in ("RECONNECT_BACKOFF_S", "REFUSED_BACKOFF_MAX_S"):
        monkeypatch.setattr(backoff_module, name, 4 * PATIENCE_S)

    async def scenario() -> None:
        async with replica(1, digest=b"new") as changed:
            changed.echo()
            async with replica(2, digest=b"old") as before:
                port = before.server.port
                changed.network.set_peers({2: before.address})
                changed.network.send(2, fetch(1, 1))
                await changed.handler.until(lambda: bool(changed.handler.failed))
            async with replica(2, digest=b"new", port=port) as after:
                after.network.set_peers({1: changed.address})
                after.network.send(1, fetch(2, 1))
                await after.handler.until(lambda: bool(after.handler.received))
                while not changed.network.statuses()[0].is_connected:
                    await asyncio.sleep(0)
                assert [sender for sender, _ in after.handler.received] == [1]

    run(scenario())
