"""Deadlines of open requests with one timer, and rate_limited_log without floods."""

from __future__ import annotations

import asyncio
import logging

import pytest

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.transport import rate_limited_log as rate_limited_log_module
from quorum.transport import requests as requests_module
from quorum.transport.rate_limited_log import RateLimitedLog
from quorum.transport.requests import OpenRequests
from tests.support.peer_harness import fetch, run, vote


class FakeLoop:
    """Time that a test moves; timers fire in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, object]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: object) -> FakeTimer:
        self.timers.append((when, call))
        return FakeTimer(self, (when, call))

    def advance(self, to: float) -> None:
        while due := [timer for timer in self.timers if timer[0] <= to]:
            timer = min(due, key=lambda t: t[0])
            self.timers.remove(timer)
            self.now = timer[0]
            timer[1]()  # type: ignore[operator]
        self.now = to


class FakeTimer:
    def __init__(self, loop: FakeLoop, entry: tuple[float, object]) -> None:
        self.loop, self.entry = loop, entry

    def cancel(self) -> None:
        self.loop.timers.remove(self.entry)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> FakeLoop:
    made = FakeLoop()
    monkeypatch.setattr(requests_module.asyncio, "get_running_loop", lambda: made)
    return made


def test_each_request_expires_once_at_its_own_time(loop: FakeLoop) -> None:
    """Asked at 0, 1 and 2 s with 5 s each; the second is answered."""
    expired: list[tuple[int, float, float]] = []
    requests = OpenRequests(5.0, lambda n, asked: expired.append((n, asked, loop.now)))
    for number in (0, 1, 2):
        loop.advance(float(number))
        assert requests.add(fetch(2, number), loop.now) is None
        assert len(loop.timers) == 1
    assert requests.take(1) is FetchRequest
    assert requests.take(1) is None
    loop.advance(20.0)
    assert expired == [(0, 0.0, 5.0), (2, 2.0, 7.0)]
    assert len(requests) == 0
    assert loop.timers == []


def test_an_id_asked_again_waits_anew(loop: FakeLoop) -> None:
    """The retry replaces the first asking, type and deadline."""
    expired: list[int] = []
    requests = OpenRequests(5.0, lambda n, _: expired.append(n))
    requests.add(fetch(2, 7), 0.0)
    loop.advance(4.0)
    requests.add(vote(2, 7), 4.0)
    loop.advance(8.9)
    assert expired == []
    assert requests.take(7) is VoteRequest


def test_a_closed_table_has_no_timer(loop: FakeLoop) -> None:
    """Nothing fires after close."""
    requests = OpenRequests(5.0, lambda *_: pytest.fail("expired"))
    requests.add(fetch(2, 1), 0.0)
    assert requests.take_all() == [1]
    requests.close()
    assert loop.timers == []


def test_the_same_complaint_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Repetitions are counted; another problem or a recovery is logged at once."""
    rate_limited_log = RateLimitedLog(logging.getLogger("test-complaints"))
    with caplog.at_level(logging.INFO):
        for second in range(90):
            rate_limited_log.warn("peer 1", "gone", float(second))
        rate_limited_log.warn("peer 1", "other", 90.0)
        rate_limited_log.settle("peer 1", "answers again")
        rate_limited_log.settle("peer 1", "answers again")
        rate_limited_log.warn("peer 1", "gone", 91.0)
    assert [record.message for record in caplog.records] == [
        "peer 1: gone",
        "peer 1: gone (again 60 times in 60 s)",
        "peer 1: other",
        "peer 1: answers again (after 29 more failures)",
        "peer 1: gone",
    ]


def test_the_memory_of_the_rate_limited_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger causes new problems without end."""
    monkeypatch.setattr(rate_limited_log_module, "_REMEMBERED_MAX", 10)
    rate_limited_log = RateLimitedLog(logging.getLogger("test-complaints"))
    for number in range(1000):
        rate_limited_log.warn("stranger", f"problem {number}", 0.0)
    assert len(rate_limited_log._logged) <= 10


@pytest.mark.parametrize("reason", ["a request", "a voter that calls"])
def test_a_lapsed_channel_wakes_when_needed(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """An unreachable peer without requests is not retried; a request retries it at once.

    So does a stream from that voter: a caller is proven only after a connection to its address.
    """
    from quorum.transport import channel as channel_module
    from quorum.transport.probe import Attempt, Reachability
    from tests.support.peer_harness import replica

    attempts: list[float] = []
    lapsed = asyncio.Event()

    async def connect(*_: object) -> Attempt:
        attempts.append(asyncio.get_running_loop().time())
        return Attempt(Reachability.REFUSED, detail="refused")

    class Watched(asyncio.Event):
        async def wait(self) -> bool:  # type: ignore[override]
            lapsed.set()
            return await super().wait()

    monkeypatch.setattr(channel_module, "connect_once", connect)
    monkeypatch.setattr(channel_module, "LAPSE_AFTER_S", -1.0)
    monkeypatch.setattr(channel_module, "RECONNECT_BACKOFF_S", 0.0)

    async def scenario() -> None:
        async with replica(2) as follower:
            follower.network.set_peers({1: "127.0.0.1:1"})
            channel = follower.network._channels[1]
            channel._wanted = Watched()
            await lapsed.wait()
            assert len(attempts) == 1
            assert "not tried again" in channel.status.problem
            lapsed.clear()
            if reason == "a request":
                follower.network.send(1, fetch(2, 1))
                await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            else:
                follower.network._accepted(1)
                await lapsed.wait()
            assert len(attempts) == 2

    run(scenario())
