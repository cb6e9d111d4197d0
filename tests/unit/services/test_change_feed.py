"""The steps of the feed's end, on an event loop whose time passes only while it is idle."""

from __future__ import annotations

import asyncio
import itertools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

from quorate.services.change_feed import (
    CACHED_MESSAGES_MAX,
    PROGRESS_SECONDS,
    STEP_SECONDS_PER_WATCHER,
    WOKEN_PER_TURN,
    ChangeFeed,
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
            await asyncio.sleep(STEP_SECONDS_PER_WATCHER)
            ends.append(node.commit())
        assert await asyncio.gather(*waiting) == [ends] * 100
        assert abs(now() - began - 100 * STEP_SECONDS_PER_WATCHER) < 1e-9
        assert node.log_reads == 2

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


def test_the_feed_keeps_few_messages() -> None:
    async def scenario(node: FakeNode, feed: ChangeFeed) -> None:
        for _ in range(50):
            node.commit()
        await asyncio.sleep(0)
        for offset in range(CACHED_MESSAGES_MAX + 8):
            await feed.changes(offset)
        assert len(feed._cached) == CACHED_MESSAGES_MAX

    with_feed(scenario)
