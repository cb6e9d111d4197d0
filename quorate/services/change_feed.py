"""Committed batches as watch messages, converted once for all watchers at the same place.

A place is an offset and a form (typed records or not, with secrets or not). A form that no watcher
wants is not made.

Watchers hold positions, not queues: each asks for what follows its own offset when it is ready
for it. Memory is therefore bounded by this feed's cache, however slow a watcher is.

Waking a watcher costs some 0.1 ms of the event loop, so a change for each of a thousand watchers
would leave no time for writes. The feed therefore moves its end in steps. The first change after a
pause is passed on at once. The next step waits in proportion to what the last ones took
(``fan_out_pace``), and then takes all changes of that time as one message.

See: docs/adr/0060-watchers-are-woken-in-steps.md.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import NamedTuple

from quorate.services.change_message import CHANGE_BYTES_MAX, ChangeMessage, message_of
from quorate.services.fan_out_pace import FanOutPace
from quorate.services.ports import Cancel, ServedNode
from quorate.services.watch_cursor import WatchCursor
from quorum.batch import scan_batches

CACHED_MESSAGES_MAX = 32
"""Messages kept for other watchers that come by the same offset."""
CACHED_BYTES_MAX = 16 << 20
"""Their bytes at most; a message with one large batch exceeds ``CHANGE_BYTES_MAX``. The newest one
is kept, whatever its size."""
PROGRESS_SECONDS = 5.0
"""A watcher that waits is woken after so many seconds without a change, to get its position."""
CONVERTED_AT_ONCE_MAX = 8
"""Conversions that one step of the feed has under way; far fewer than messages that are kept."""
WOKEN_PER_TURN = 64
"""Watchers woken in one turn of the event loop; requests and Fetches get the turns between."""


class _Place(NamedTuple):
    """Where a watcher goes on, and in which form."""

    offset: int
    is_typed: bool
    with_secrets: bool


class ChangeFeed:
    """Committed changes from any offset on. One per node; used on the event loop only."""

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        self._cached: dict[_Place, asyncio.Task[ChangeMessage]] = {}
        self._end_offset = WatchCursor.visible_end(node)
        self._waiting: dict[asyncio.Future[bool], tuple[_Place, float]] = {}
        """Who waits: the place, and when its progress is due. In the order of that time."""
        self._step: asyncio.TimerHandle | None = None
        self._step_not_before = 0.0
        self._pace = FanOutPace()
        self._progress: asyncio.TimerHandle | None = None
        self._waking: set[asyncio.Task[None]] = set()
        self._cancel: Cancel = node.subscribe(self._on_published)

    def close(self) -> None:
        """Stop listening to the node."""
        self._cancel()
        for timer in (self._step, self._progress):
            if timer is not None:
                timer.cancel()
        for task in self._waking:
            task.cancel()

    async def wait_beyond(
        self, offset: int, *, is_typed: bool = False, with_secrets: bool = False
    ) -> bool:
        """Whether changes beyond ``offset`` may be sent; False after ``PROGRESS_SECONDS``.

        The form is the one that ``changes`` will be asked for.
        """
        self._pace.returned()
        if self._end_offset > offset:
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        due = loop.time() + PROGRESS_SECONDS
        self._waiting[future] = _Place(offset, is_typed, with_secrets), due
        if self._progress is None:
            self._progress = loop.call_at(due, self._wake_for_progress)
        try:
            return await future
        finally:
            self._waiting.pop(future, None)

    async def changes(
        self, offset: int, *, is_typed: bool = False, with_secrets: bool = False
    ) -> ChangeMessage:
        """Return applied batches from the one with ``offset`` on, at most up to the feed's end.

        ``is_typed``: with messages of record types. ``with_secrets``: as in the log. ``offset``
        must be below that end, as ``wait_beyond`` says.

        Raises:
            StorageError: The log could not be read, or is damaged there.
        """
        return await self._at(_Place(offset, is_typed, with_secrets))

    async def _at(self, place: _Place) -> ChangeMessage:
        task = self._conversion(place)
        try:
            # One watcher's end must not take the message away from the others.
            return task.result() if task.done() else await asyncio.shield(task)
        except BaseException:
            self._forget_failed(place, task)
            raise

    def _conversion(self, place: _Place) -> asyncio.Task[ChangeMessage]:
        """Return what makes the message of a place, or has made it."""
        task = self._cached.get(place)
        if task is None:
            task = asyncio.create_task(self._convert(place))
            self._cached[place] = task
            if len(self._cached) > CACHED_MESSAGES_MAX:
                del self._cached[next(iter(self._cached))]
            task.add_done_callback(self._drop_oldest)
        return task

    def _forget_failed(self, place: _Place, task: asyncio.Task[ChangeMessage]) -> None:
        is_failed = task.done() and (task.cancelled() or task.exception() is not None)
        if is_failed and self._cached.get(place) is task:
            del self._cached[place]

    def _drop_oldest(self, _converted: asyncio.Task[ChangeMessage]) -> None:
        """Keep the newest messages, of ``CACHED_BYTES_MAX`` together."""
        kept = 0
        for place, task in reversed(tuple(self._cached.items())):
            if not task.done() or task.cancelled() or task.exception() is not None:
                continue
            size = len(task.result().data)
            if kept and kept + size > CACHED_BYTES_MAX:
                del self._cached[place]
            else:
                kept += size

    async def _convert(self, place: _Place) -> ChangeMessage:
        data = await self._node.read_log(place.offset, CHANGE_BYTES_MAX, self._end_offset)
        headers = scan_batches(data)
        digest = await self._node.log_digest(headers[-1].end_offset) if headers else b""
        return message_of(data, digest, is_typed=place.is_typed, with_secrets=place.with_secrets)

    def _on_published(self) -> None:
        if self._step is None:
            loop = asyncio.get_running_loop()
            self._step = loop.call_at(max(loop.time(), self._step_not_before), self._move_end)

    def _move_end(self) -> None:
        """Let watchers see what is applied now, and wake those that wait for it."""
        self._step = None
        self._end_offset = WatchCursor.visible_end(self._node)
        loop = asyncio.get_running_loop()
        self._step_not_before = loop.time() + self._pace.step_seconds(len(self._waiting))
        by_place: dict[_Place, list[asyncio.Future[bool]]] = {}
        for future, (place, _due) in self._waiting.items():
            if place.offset < self._end_offset:
                by_place.setdefault(place, []).append(future)
        if by_place:
            self._pace.begin(sum(map(len, by_place.values())))
            task = loop.create_task(self._wake(by_place))
            self._waking.add(task)
            task.add_done_callback(self._waking.discard)

    async def _wake(self, by_place: dict[_Place, list[asyncio.Future[bool]]]) -> None:
        """Convert what each group of watchers is going to ask for, and wake it once that is there.

        Several conversions are under way, so hardly a group waits for the log to be read for
        another; not all of them, because many watchers may each be at a place of their own.
        """
        places = iter(by_place)
        under_way: dict[asyncio.Task[ChangeMessage], _Place] = {}
        woken = 0
        while True:
            for place in islice(places, CONVERTED_AT_ONCE_MAX - len(under_way)):
                under_way[self._conversion(place)] = place
            if not under_way:
                return
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            # Not in the order of a set, which differs from run to run.
            for task in [each for each in under_way if each in done]:
                place = under_way.pop(task)
                # A failure is raised again by the watchers of this place, which report it.
                self._forget_failed(place, task)
                for future in by_place[place]:
                    _resolve(future, is_beyond=True)
                    woken += 1
                    if woken % WOKEN_PER_TURN == 0:
                        await asyncio.sleep(0)

    def _wake_for_progress(self) -> None:
        self._progress = None
        loop = asyncio.get_running_loop()
        for future, (_place, due) in self._waiting.items():
            if due > loop.time():
                self._progress = loop.call_at(due, self._wake_for_progress)
                return
            _resolve(future, is_beyond=False)


def _resolve(future: asyncio.Future[bool], *, is_beyond: bool) -> None:
    """Wake who waits, unless that has ended meanwhile or is awake."""
    if not future.done():
        future.set_result(is_beyond)
