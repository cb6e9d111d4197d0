"""A write stream whose commands get their answers in one call, as the controller gives them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from quorate.controller.requests import Answer, PendingCommand
from quorate.services import outgoing, write_stream
from quorate.services.admission import ServiceLimits
from quorate.services.closing import Closing
from quorate.services.write_stream import WriteSession
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import ProducerCommands, WriterIdentity, WriteStreamRequest
from tests.support.served_node import FakeNode
from tests.support.shared_log import SharedLog

PLAIN, RESULT, REFUSED, EMPTY = "plain", "result", "refused", "empty"
TEXT = "t" * 100


class Node(FakeNode):
    """Answers every command of a message in one call."""

    def submit(self, commands: Sequence[PendingCommand]) -> None:
        for offset, pending in enumerate(commands):
            pending.answer = Answer(ErrorCode.NONE, "", offset)
            if pending.tag % 4 == 1:
                pending.answer = Answer(ErrorCode.NONE, "", offset, 1, {"producer_id": offset})
            elif pending.tag % 4 == 2:
                pending.answer = Answer(ErrorCode.INVALID_REQUEST, TEXT, offset)
        commands[0].on_answers(commands)

    def evaluate_submitted(self) -> None:
        pass


def command(tag: int, kind: str) -> wire.Command:
    found = wire.Command(tag=tag)
    if kind == RESULT:
        found.init_producer_id.SetInParent()
    elif kind != EMPTY:
        found.unregister_broker.broker_id = tag
    return found


async def serve(kinds: str) -> tuple[list[Any], weakref.ref[WriteSession]]:
    """Send one message of commands; return what was written, and the session that ended."""
    names = {"p": (0, PLAIN), "r": (1, RESULT), "x": (2, REFUSED), "e": (3, EMPTY)}
    group = [
        command(4 * number + names[kind][0], names[kind][1]) for number, kind in enumerate(kinds)
    ]
    messages = [
        WriteStreamRequest(hello=WriterIdentity(client_id="c")),
        WriteStreamRequest(groups=[ProducerCommands(commands=group)]),
        grpc.aio.EOF,
    ]
    written: list[Any] = []

    async def read() -> Any:
        return messages.pop(0)

    async def write(message: Any) -> None:
        written.append(message)

    context: Any = SimpleNamespace(read=read, write=write, auth_context=dict, peer=lambda: "m:1")
    session = WriteSession(Node(SharedLog(leader=1)), context, ServiceLimits(), Closing(1))
    # It ends when nothing is owed any more.
    await asyncio.wait_for(session.run(), 30)
    return written, weakref.ref(session)


@pytest.mark.parametrize("kinds", ["pppp", "xppp", "pxpp", "pppx", "prxeprxe", "rrrr", "xexe"])
@pytest.mark.parametrize("gathered_bytes_max", [1, 150, 256 << 10])
def test_each_gets_its_own_answer_once(
    monkeypatch: pytest.MonkeyPatch, kinds: str, gathered_bytes_max: int
) -> None:
    """Also where a message of answers becomes full between two of them."""
    monkeypatch.setattr(outgoing, "GATHERED_BYTES_MAX", gathered_bytes_max)
    written, _ = asyncio.run(serve(kinds))
    answers = [answer for message in written for answer in message.answers]
    found = {answer.tag // 4: answer for answer in answers}
    assert sorted(answer.tag // 4 for answer in answers) == list(range(len(kinds)))
    for number, kind in enumerate(kinds):
        answer = found[number]
        assert (answer.error_code != 0) == (kind in "xe"), kind
        assert answer.HasField("result") == (kind == "r")
    for message in written:
        # Answers of a few bytes do not count, but a full message gets none of them either.
        sizes = [
            each.ByteSize() if each.error_code or each.HasField("result") else 0
            for each in message.answers
        ]
        assert sum(sizes[:-1]) < gathered_bytes_max


def test_only_what_exceeds_the_bound_of_a_stream_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_stream, "COMMANDS_PER_STREAM_MAX", 3)
    written, _ = asyncio.run(serve("pxpprp"))
    answers = [answer for message in written for answer in message.answers]
    codes = {answer.tag // 4: answer.error_code for answer in answers}
    full, refused = ErrorCode.QUEUE_FULL, ErrorCode.INVALID_REQUEST
    assert codes == {0: 0, 1: refused, 2: 0, 3: full, 4: full, 5: full}
    assert len(answers) == len(codes)


def test_a_stream_that_ended_is_freed_without_a_search_for_cycles() -> None:
    """A server may exclude what is new from its searches, and then frees no cycle of it."""

    async def ended() -> WriteSession | None:
        _, session = await serve("prx")
        # The tasks of its run end in this turn.
        await asyncio.sleep(0)
        return session()

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(ended()) is None
    finally:
        gc.enable()
