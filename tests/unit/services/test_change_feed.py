"""The steps of the feed's end, on an event loop whose time passes only while it is idle."""

from __future__ import annotations

import asyncio
import itertools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quorate.services import change_feed
from quorate.services.change_feed import (
    CACHED_MESSAGES_MAX,
    CONVERTED_AT_ONCE_MAX,
    PROGRESS_SECONDS,
    WOKEN_PER_TURN,
    ChangeFeed,
)
from quorate.services.change_message import message_of
from quorate.services.fan_out_pace import (
    SHARE_MAX,
    WATCHER_SECONDS_AT_FIRST,
    WATCHER_SECONDS_MAX,
    WATCHER_SECONDS_MIN,
    FanOutPace,
)
from quorum.errors import StorageError
from quorum.v1.metadata_pb2 import WatchResponse
from tests.support.served_node import FakeNode, cluster


class IdleSelector(selectors.SelectSelector):
    """Return at once, and advance the loop's time by the timeout."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "nothing is due: the test would wait for ever"
        self.now += max(timeout, 0.0)
        return super().select(0)


def with_feed(scenario: Callable[[FakeNode, ChangeFeed], Awaitable[None]]) -> None:
    async def run() -> None:
        _log, nodes = cluster(1)
        nodes[0].commit()
        feed = ChangeFeed(nodes[0])
        await scenario(nodes[0], feed)
        feed.close()

    selector = IdleSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time()


async def batches(feed: ChangeFeed, offset: int) -> list[int]:
    """Wait for what follows ``offset``; the end offset of each batch."""
    while not await feed.wait_beyond(offset):
        pass
    response = WatchResponse.FromString((await feed.changes(offset)).data)
    return [batch.end_offset for batch in response.changes.batches]


def end(node: FakeNode) -> int:
    return node.image.provenance.end_offset


def test_the_first_change_after_a_pause_is_passed_on_at_once() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        for _ in range(3):
            waiting = [asyncio.create_task(batches(feed, end(node))) for _ in range(100)]
            await asyncio.sleep(1)
            began = now()
            expected = node.commit()
            assert await asyncio.gather(*waiting) == [[expected]] * 100
            assert now() == began

    with_feed(scenario)


def test_the_next_step_waits_for_each_watcher_and_takes_all_changes_of_that_time() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        waiting = [asyncio.create_task(batches(feed, end(node))) for _ in range(100)]
        await asyncio.sleep(0)
        began = now()
        first = node.commit()
        await asyncio.gather(*waiting)
        waiting = [asyncio.create_task(batches(feed, first)) for _ in range(100)]
        ends = []
        for _ in range(5):
            await asyncio.sleep(WATCHER_SECONDS_AT_FIRST)
            ends.append(node.commit())
        assert await asyncio.gather(*waiting) == [ends] * 100
        assert abs(now() - began - 100 * WATCHER_SECONDS_AT_FIRST) < 1e-9
        assert node.log_reads == 2

    with_feed(scenario)


class Processor:
    seconds = 0.0

    def fan_out(self, pace: FanOutPace, watchers: int, each: float, ended: int = 0) -> None:
        pace.begin(watchers)
        self.seconds += watchers * each
        for _ in range(watchers - ended):
            pace.returned()


def paced() -> tuple[Processor, FanOutPace]:
    processor = Processor()
    return processor, FanOutPace(lambda: processor.seconds)


def test_fan_outs_get_their_share_of_the_loop_and_no_more() -> None:
    processor, pace = paced()
    assert pace.step_seconds(100) == 100 * WATCHER_SECONDS_AT_FIRST
    for _ in range(30):
        processor.fan_out(pace, 100, 0.00006)
    assert abs(100 * 0.00006 / pace.step_seconds(100) - SHARE_MAX) < 0.001
    assert abs(pace.step_seconds(1) - pace.step_seconds(100) / 100) < 1e-9


def test_a_step_has_bounds_however_slow_the_machine_is() -> None:
    processor, pace = paced()
    for _ in range(30):
        processor.fan_out(pace, 100, 0.01)
    assert pace.step_seconds(100) == pytest.approx(100 * WATCHER_SECONDS_MAX, rel=0.001)
    before = pace.step_seconds(100)
    processor.fan_out(pace, 100, 0.0)
    assert pace.step_seconds(100) < before, "the bound is that of each measurement"
    for _ in range(60):
        processor.fan_out(pace, 100, 0.0)
    assert pace.step_seconds(100) == 100 * WATCHER_SECONDS_MIN


def test_a_fan_out_whose_watchers_ended_is_not_counted() -> None:
    processor, pace = paced()
    before = pace.step_seconds(100)
    processor.fan_out(pace, 100, 0.01, ended=1)
    processor.seconds += 1000
    processor.fan_out(pace, 100, 0.01, ended=1)
    assert pace.step_seconds(100) == before


def test_the_feed_measures_its_fan_outs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the next step waits as long as the measured ones need. Method: each watcher takes
    twice what is assumed at first.
    """
    processor, pace = paced()

    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        monkeypatch.setattr(feed, "_pace", pace)

        async def watch() -> None:
            offset = end(node)
            while True:
                await feed.wait_beyond(offset)
                offset = (await feed.changes(offset)).end_offset
                processor.seconds += 2 * WATCHER_SECONDS_AT_FIRST * SHARE_MAX

        watchers = [asyncio.create_task(watch()) for _ in range(10)]
        await asyncio.sleep(0)
        for _ in range(40):
            node.commit()
            await asyncio.sleep(1)
        assert abs(pace.step_seconds(10) - 20 * WATCHER_SECONDS_AT_FIRST) < 0.0001
        for each in watchers:
            each.cancel()

    with_feed(scenario)


def test_a_watcher_that_is_behind_the_end_does_not_wait() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        for _ in range(3):
            node.commit()
        await asyncio.sleep(0)
        began = now()
        assert await batches(feed, end(node) - 2) == [end(node) - 1, end(node)]
        assert now() == began

    with_feed(scenario)


def test_requests_are_served_while_many_watchers_are_woken() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        waiting = [
            asyncio.create_task(batches(feed, end(node))) for _ in range(10 * WOKEN_PER_TURN)
        ]
        await asyncio.sleep(0)
        node.commit()
        woken_by_turn = []
        while not all(task.done() for task in waiting):
            woken_by_turn.append(sum(task.done() for task in waiting))
            await asyncio.sleep(0)
        steps = [b - a for a, b in itertools.pairwise(woken_by_turn)]
        assert max(steps) <= WOKEN_PER_TURN

    with_feed(scenario)


def test_only_the_forms_that_watchers_want_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them once, before its watchers wake."""
    made: list[tuple[bool, bool]] = []

    def recorded(data: bytes, digest: bytes, *, is_typed: bool, with_secrets: bool) -> Any:
        made.append((is_typed, with_secrets))
        return message_of(data, digest, is_typed=is_typed, with_secrets=with_secrets)

    monkeypatch.setattr(change_feed, "message_of", recorded)

    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        async def watcher(*, is_typed: bool, with_secrets: bool) -> None:
            form = {"is_typed": is_typed, "with_secrets": with_secrets}
            at = end(node)
            assert await feed.wait_beyond(at, **form)
            assert (is_typed, with_secrets) in made, "made for all of them, not by the first"
            assert (await feed.changes(at, **form)).base_offset == at

        for forms in ([(True, False)], [(False, False), (True, True)]):
            made.clear()
            waiting = [
                asyncio.create_task(watcher(is_typed=is_typed, with_secrets=with_secrets))
                for is_typed, with_secrets in forms * 3
            ]
            await asyncio.sleep(1)
            node.commit()
            await asyncio.gather(*waiting)
            assert made == forms

    with_feed(scenario)


def test_a_watcher_gets_its_position_after_a_while_without_a_change() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        first = asyncio.create_task(feed.wait_beyond(end(node)))
        await asyncio.sleep(1)
        second = asyncio.create_task(feed.wait_beyond(end(node)))
        assert not await first
        assert now() == PROGRESS_SECONDS
        assert not second.done()
        assert not await second
        assert now() == PROGRESS_SECONDS + 1

    with_feed(scenario)


def test_a_watcher_that_leaves_is_forgotten() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        waiting = asyncio.create_task(feed.wait_beyond(end(node)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert not feed._waiting
        node.commit()
        assert await batches(feed, end(node) - 1) == [end(node)]

    with_feed(scenario)


def test_every_watcher_gets_the_failure_to_read_the_log() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        async def damaged(offset: int, max_bytes: int, end_offset: int) -> bytes:
            raise StorageError("damaged")

        waiting = [asyncio.create_task(batches(feed, end(node))) for _ in range(3)]
        await asyncio.sleep(0)
        read_log, node.read_log = node.read_log, damaged  # type: ignore[method-assign]
        node.commit()
        await asyncio.wait(waiting)
        assert [str(task.exception()) for task in waiting] == ["damaged"] * 3
        node.read_log = read_log  # type: ignore[method-assign]
        assert await batches(feed, end(node) - 1) == [end(node)]

    with_feed(scenario)


def test_a_failure_at_one_offset_keeps_no_watcher_of_another_asleep() -> None:
    """Whatever fails: here what no caller expects."""

    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        read_log, first = node.read_log, end(node)

        async def broken(offset: int, max_bytes: int, end_offset: int) -> bytes:
            if offset == first:
                raise ValueError("unexpected")
            return await read_log(offset, max_bytes, end_offset)

        node.read_log = broken  # type: ignore[method-assign]
        waiting = [asyncio.create_task(batches(feed, first + each)) for each in (0, 1)]
        await asyncio.sleep(0)
        node.commit()
        node.commit()
        began = now()
        await asyncio.wait(waiting)
        assert str(waiting[0].exception()) == "unexpected"
        assert waiting[1].result() == [first + 2]
        assert now() - began < PROGRESS_SECONDS

    with_feed(scenario)


def test_a_place_whose_log_is_read_slowly_keeps_no_watcher_of_another_asleep() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        read_log, first = node.read_log, end(node)
        may_be_read = asyncio.Event()

        async def slow(offset: int, max_bytes: int, end_offset: int) -> bytes:
            if offset == first:
                await may_be_read.wait()
            return await read_log(offset, max_bytes, end_offset)

        node.read_log = slow  # type: ignore[method-assign]
        late, early = [asyncio.create_task(batches(feed, first + each)) for each in (0, 1)]
        await asyncio.sleep(0)
        node.commit()
        node.commit()
        began = now()
        assert await early == [first + 2]
        assert now() - began < PROGRESS_SECONDS
        assert not late.done()
        may_be_read.set()
        assert await late == [first + 1, first + 2]

    with_feed(scenario)


def test_many_places_are_converted_a_few_at_a_time_and_once_each() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        read_log, first, count = node.read_log, end(node), 100
        reads: list[int] = []
        under_way, most = 0, 0

        async def counted(offset: int, max_bytes: int, end_offset: int) -> bytes:
            nonlocal under_way, most
            reads.append(offset)
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            return await read_log(offset, max_bytes, end_offset)

        node.read_log = counted  # type: ignore[method-assign]
        waiting = [asyncio.create_task(batches(feed, first + each)) for each in range(count)]
        await asyncio.sleep(0)
        for _ in range(count):
            node.commit()
        await asyncio.gather(*waiting)
        assert 1 < most <= CONVERTED_AT_ONCE_MAX
        assert sorted(reads) == list(range(first, first + count))

    with_feed(scenario)


def test_the_feed_keeps_few_messages() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        for _ in range(50):
            node.commit()
        await asyncio.sleep(0)
        for offset in range(CACHED_MESSAGES_MAX + 8):
            await feed.changes(offset)
        assert len(feed._cached) == CACHED_MESSAGES_MAX

    with_feed(scenario)


def test_the_feed_keeps_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: large batches do not fill the memory. Method: bounds of two messages and of none."""

    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        for _ in range(20):
            node.commit()
        await asyncio.sleep(0)
        monkeypatch.setattr(change_feed, "CHANGE_BYTES_MAX", 1)
        size = len((await feed.changes(9)).data)
        for messages, first in ((2, 1), (0, 10)):
            monkeypatch.setattr(change_feed, "CACHED_BYTES_MAX", messages * size)
            for offset in range(first, first + 8):
                await feed.changes(offset)
                await asyncio.sleep(0)
                assert offset in {place[0] for place in feed._cached}
            assert len(feed._cached) == max(messages, 1)

    with_feed(scenario)
