"""When answers of a write stream leave: together, one message at a time, the last at once."""

from __future__ import annotations

import asyncio

import pytest

from quorate.services import outgoing as outgoing_answers
from quorate.services.outgoing import OutgoingAnswers
from quorum.v1.metadata_pb2 import WriteStreamResponse


class Wire:
    """Writes that end when the test releases them."""

    def __init__(self) -> None:
        self.begun: list[list[int]] = []
        self.under_way = 0
        self.is_open = asyncio.Event()
        self.failure: BaseException | None = None

    async def write(self, message: WriteStreamResponse) -> None:
        assert self.under_way == 0, "two writes at a time"
        self.under_way += 1
        self.begun.append([answer.tag for answer in message.answers])
        await self.is_open.wait()
        self.under_way -= 1
        if self.failure is not None:
            raise self.failure


def answer(outgoing: OutgoingAnswers[WriteStreamResponse], *tags: int) -> None:
    for tag in tags:
        outgoing.message.answers.add(tag=tag)
        outgoing.settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_the_last_answer_that_is_owed_leaves_at_once() -> None:
    """The answer is written before the answering task continues."""

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 2
        answer(outgoing, 1)
        assert wire.begun == []
        answer(outgoing, 2)
        assert wire.begun == [[1, 2]]

    asyncio.run(scenario())


def test_answers_of_one_turn_leave_together() -> None:
    """Though more are owed; and what gathers during a write leaves right behind it."""

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 10
        answer(outgoing, 1, 2)
        await settle()
        answer(outgoing, 3)
        await settle()
        answer(outgoing, 4)
        await settle()
        assert wire.begun == [[1, 2]]
        wire.is_open.set()
        await settle()
        assert wire.begun == [[1, 2], [3, 4]]

    asyncio.run(scenario())


def test_finish_waits_for_what_is_owed_and_for_the_write() -> None:
    """A client that half-closed gets all its answers."""

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 1
        finishing = asyncio.create_task(outgoing.finish())
        await settle()
        answer(outgoing, 1)
        await settle()
        assert not finishing.done()
        wire.is_open.set()
        await finishing

    asyncio.run(scenario())


def test_a_reader_waits_until_answers_have_left() -> None:
    """Only as long as too many wait."""

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 10
        answer(outgoing, 1)
        await settle()
        answer(outgoing, 2, 3)
        await outgoing.wait_below(2)
        waiting = asyncio.create_task(outgoing.wait_below(1))
        await settle()
        assert not waiting.done()
        wire.is_open.set()
        await waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("fails_at_once", [False, True])
def test_a_failed_write_raises_in_the_waiting_call(fails_at_once: bool) -> None:
    """Nothing is written behind it, and a later answer is dropped."""

    async def scenario() -> None:
        wire = Wire()
        wire.failure = RuntimeError("gone")
        if fails_at_once:
            wire.is_open.set()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 3
        answer(outgoing, 1)
        finishing = asyncio.create_task(outgoing.finish())
        await settle()
        answer(outgoing, 2)
        wire.is_open.set()
        with pytest.raises(RuntimeError, match="gone"):
            await finishing
        answer(outgoing, 3)
        await settle()
        assert wire.begun == [[1]]

    asyncio.run(scenario())


def test_a_cancelled_call_does_not_cancel_the_answering_task() -> None:
    """The controller answers within its own turn: nothing of a stream may get out of it."""

    async def scenario() -> None:
        async def refuse(_: WriteStreamResponse) -> None:
            raise asyncio.CancelledError

        outgoing = OutgoingAnswers(refuse, WriteStreamResponse)
        outgoing.owed = 1
        answer(outgoing, 1)
        outgoing.owed = 1
        with pytest.raises(asyncio.CancelledError):
            await outgoing.finish()

    asyncio.run(scenario())


def test_who_ends_the_stream_waits_for_what_is_there_and_not_for_what_is_owed() -> None:
    """Then no task waits, even if answers are outstanding."""

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 2
        answer(outgoing, 1)
        finishing = asyncio.create_task(outgoing.finish())
        draining = asyncio.create_task(outgoing.drain())
        await settle()
        assert not draining.done()
        wire.is_open.set()
        await draining
        assert not finishing.done()
        outgoing.close()
        await finishing

    asyncio.run(scenario())


def test_nothing_is_written_to_a_stream_that_is_over() -> None:
    """Its commands may still be answered."""

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 1
        outgoing.close()
        answer(outgoing, 1)
        await settle()
        assert wire.begun == []

    asyncio.run(scenario())


def add(outgoing: OutgoingAnswers[WriteStreamResponse], tag: int, size: int) -> bool:
    """Add an answer that claims to have so many bytes; return whether its message is full."""
    outgoing.message.answers.add(tag=tag)
    return outgoing.settle(size)


def test_a_full_message_takes_no_further_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of each message are counted from its own first answer."""
    monkeypatch.setattr(outgoing_answers, "GATHERED_BYTES_MAX", 100)

    async def scenario() -> None:
        wire = Wire()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.owed = 10
        assert [add(outgoing, tag, 60) for tag in range(1, 6)] == [False, True, False, True, False]
        assert not outgoing.has_room
        await settle()
        assert outgoing.has_room
        wire.is_open.set()
        await settle()
        assert wire.begun == [[1, 2], [3, 4], [5]]

    asyncio.run(scenario())


def test_the_bytes_of_a_message_that_left_do_not_fill_the_next() -> None:
    """Method: five messages, each of which is not full by a byte."""

    async def scenario() -> None:
        wire = Wire()
        wire.is_open.set()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        for tag in range(1, 6):
            outgoing.owed = 1
            assert not add(outgoing, tag, outgoing_answers.GATHERED_BYTES_MAX - 1)
        assert wire.begun == [[1], [2], [3], [4], [5]]

    asyncio.run(scenario())


def test_a_greeting_in_a_full_message_is_sent_once() -> None:
    """Method: a refusal that fills the first message of a stream."""

    async def scenario() -> None:
        wire = Wire()
        wire.is_open.set()
        outgoing = OutgoingAnswers(wire.write, WriteStreamResponse)
        outgoing.message.accepted.node_id = 1
        outgoing.greet()
        outgoing.owed = 2
        assert add(outgoing, 1, outgoing_answers.GATHERED_BYTES_MAX)
        await settle()
        assert wire.begun == [[1]], "no empty message behind it"

    asyncio.run(scenario())
