"""Answers to local reads: many readers share messages, a lone reader waits in one of a thousand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from quorate.services.answer_gathering import (
    _TRIAL_EVERY_MAX,
    BUSY_SECONDS,
    HOLD_SECONDS_MAX,
    AnswerGathering,
)
from quorate.services.outgoing import GATHERED_BYTES_MAX, OutgoingAnswers
from quorum.v1.metadata_pb2 import ReadStreamResponse

INTERVAL = BUSY_SECONDS / 4


class Readers:
    """A model of readers on one stream, each of which asks again when it has its answer.

    Their queries arrive one by one, ``INTERVAL`` apart, so that ``HOLD_SECONDS_MAX`` is enough for
    a few of them. Notes the size of each message, and how many were held to the end.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self.interval = interval
        self.gathering = AnswerGathering()
        self.now = 0.0
        self.sizes: list[int] = []
        self.held_to_the_end = 0

    def run(self, readers: int, messages: int) -> list[int]:
        """Return the sizes of so many further messages."""
        begun = len(self.sizes)
        asking = readers
        while len(self.sizes) - begun < messages:
            ready, first_at = 0, 0.0
            while True:
                if asking:
                    asking -= 1
                    self.now += self.interval
                    self.gathering.arrived(self.now)
                    ready += 1
                    first_at = first_at or self.now
                    if not self.gathering.holds(ready):
                        break
                if not asking or self.now - first_at >= HOLD_SECONDS_MAX:
                    self.now = max(self.now, first_at + HOLD_SECONDS_MAX)
                    self.gathering.timed_out(ready)
                    self.held_to_the_end += 1
                    break
            self.gathering.sent(ready)
            self.sizes.append(ready)
            asking += ready
        return self.sizes[begun:]


def test_the_answers_of_all_readers_leave_together_after_a_few_messages() -> None:
    readers = Readers()
    sizes = readers.run(4, 100)
    assert sizes[0] == 1
    assert Counter(sizes[20:]) == {4: 80}
    assert readers.held_to_the_end < 12, "they leave as soon as all are ready"


def test_a_lone_reader_is_held_in_one_of_a_thousand_reads() -> None:
    readers = Readers()
    readers.run(1, 10 * _TRIAL_EVERY_MAX)
    assert readers.held_to_the_end < 8 + 10


def test_a_reader_that_remains_waits_a_few_times_for_the_others() -> None:
    readers = Readers()
    readers.run(4, 50)
    held = readers.held_to_the_end
    assert readers.run(1, 9) == [1] * 9
    assert readers.held_to_the_end <= held + 3


def test_a_pause_of_the_client_does_not_end_the_gathering() -> None:
    """Method: a held message times out with one answer."""
    readers = Readers()
    readers.run(4, 300)
    readers.gathering.timed_out(1)
    readers.gathering.sent(1)
    assert min(readers.run(4, 20)) >= 3


def test_further_readers_are_found_by_a_trial() -> None:
    readers = Readers()
    readers.run(2, 30)
    assert readers.run(4, 1500)[-1] == 4


def test_nothing_is_held_on_a_stream_that_is_not_busy() -> None:
    readers = Readers(interval=2 * BUSY_SECONDS)
    readers.run(1, 3 * _TRIAL_EVERY_MAX)
    assert readers.held_to_the_end == 0


class StandingClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers never fire, however slow the machine is."""

    def time(self) -> float:
        return 0.0


def busy_stream(
    write: Callable[[ReadStreamResponse], Coroutine[Any, Any, None]],
) -> tuple[OutgoingAnswers[ReadStreamResponse], Callable[..., None]]:
    """Return the answers of a stream whose queries come quickly, and what answers some by tag."""
    gathering = AnswerGathering()
    gathering.arrived(0.0)
    gathering.arrived(0.0)
    outgoing = OutgoingAnswers(write, ReadStreamResponse, None, gathering)

    def answer(*tags: int) -> None:
        outgoing.owed += len(tags)
        for tag in tags:
            outgoing.message.answers.add(tag=tag)
            outgoing.settle()

    return outgoing, answer


def test_a_held_message_leaves_when_it_is_complete_or_its_time_is_over() -> None:
    """Goal: the decision is carried out. Method: a stream whose last message had two answers."""

    async def scenario() -> None:
        written: list[list[int]] = []
        has_written = asyncio.Event()

        async def write(message: ReadStreamResponse) -> None:
            written.append([answer.tag for answer in message.answers])
            has_written.set()

        outgoing, answer = busy_stream(write)

        answer(1, 2)
        assert written == [[1, 2]]
        answer(3)
        assert written == [[1, 2], [3]], "not held unless it may be"
        outgoing.may_hold = True
        answer(4)
        assert written == [[1, 2], [3]]
        answer(5)
        assert written == [[1, 2], [3], [4, 5]]
        assert outgoing._held is None, "its timer would cut the next message short"
        has_written.clear()
        answer(6)
        assert len(written) == 3
        await asyncio.wait_for(has_written.wait(), 60)
        assert written[3:] == [[6]]
        answer(7)
        assert written[4:] == [[7]], "one answer is now what is expected"

    asyncio.run(scenario())


def test_the_end_of_the_write_before_does_not_send_what_is_held() -> None:
    """Else the answers of a quick server leave one by one, whatever it decides."""

    async def scenario() -> None:
        written: list[list[int]] = []
        may_end = asyncio.Event()

        async def write(message: ReadStreamResponse) -> None:
            written.append([answer.tag for answer in message.answers])
            await may_end.wait()

        outgoing, answer = busy_stream(write)
        outgoing.may_hold = True

        answer(1, 2)
        answer(3)
        assert outgoing._held is not None
        may_end.set()
        await asyncio.wait_for(outgoing.wait_until(lambda: not outgoing._is_writing), 60)
        assert written == [[1, 2]]
        answer(4)
        assert written == [[1, 2], [3, 4]]

    with asyncio.Runner(loop_factory=StandingClockLoop) as runner:
        runner.run(scenario())


def test_a_full_message_is_not_held() -> None:
    """Others would not fit in it."""

    async def scenario() -> None:
        written: list[list[int]] = []

        async def write(message: ReadStreamResponse) -> None:
            written.append([answer.tag for answer in message.answers])

        outgoing, answer = busy_stream(write)
        answer(1, 2)
        outgoing.may_hold = True
        outgoing.owed = 1
        outgoing.message.answers.add(tag=3)
        assert outgoing.settle(GATHERED_BYTES_MAX)
        assert written == [[1, 2], [3]]
        assert outgoing._held is None

    asyncio.run(scenario())
