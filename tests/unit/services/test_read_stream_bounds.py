"""What one read stream may hold: answers and refusals of few bytes, and few queries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from quorate.services import outgoing, read_stream
from quorate.services.outgoing import OutgoingAnswers
from quorum.v1.metadata_pb2 import ReadOptions
from statemachine.codec import encode_record
from statemachine.records import TopicRecord
from tests.support.read_streams import LINEARIZABLE, LOCAL, answers, codes, message, with_streams
from tests.support.served_node import FakeNode


def named(node: FakeNode, names: Sequence[str]) -> None:
    for number, name in enumerate(names, 1):
        node.commit(encode_record(TopicRecord(name, number.to_bytes(16, "big"))))


def test_large_answers_leave_in_many_messages_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: no message grows beyond its bound. Method: a bound that three answers exceed."""
    monkeypatch.setattr(outgoing, "GATHERED_BYTES_MAX", 600)

    async def scenario(node: FakeNode, stream: Any) -> None:
        named(node, ["n" * 200])
        await stream.write(message(*[LOCAL] * 100))
        found: set[int] = set()
        while len(found) < 100:
            response = await stream.read()
            assert response.ByteSize() < 600 + 300
            found |= {answer.tag for answer in response.answers}

    with_streams(scenario)


def kept_sessions(monkeypatch: pytest.MonkeyPatch) -> list[read_stream.ReadSession]:
    """The sessions that are made from now on."""
    made: list[read_stream.ReadSession] = []
    create = read_stream.ReadSession.__init__

    def kept(self: read_stream.ReadSession, *arguments: Any) -> None:
        create(self, *arguments)
        made.append(self)

    monkeypatch.setattr(read_stream.ReadSession, "__init__", kept)
    return made


def test_a_client_that_reads_nothing_makes_the_node_hold_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a few messages, however much is asked for. Method: a write that does not end."""
    monkeypatch.setattr(outgoing, "GATHERED_BYTES_MAX", 600)
    made = kept_sessions(monkeypatch)

    async def scenario(node: FakeNode, stream: Any) -> None:
        named(node, ["n" * 60_000])
        await stream.write(message(*[LOCAL] * 500))
        while not made or not made[0]._ready:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
            held = made[0]._outgoing.waiting
            assert held <= 4
        assert set(await answers(stream, 500)) == set(range(1, 501))

    with_streams(scenario)


def test_refusals_that_nobody_reads_stop_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: refusals count as well. Method: writes that do not end; queries that get no answer."""
    monkeypatch.setattr(outgoing, "GATHERED_BYTES_MAX", 600)
    made = kept_sessions(monkeypatch)
    may_write = asyncio.Event()
    write = OutgoingAnswers.__init__

    def slowed(self: OutgoingAnswers[Any], send: Any, *arguments: Any) -> None:
        async def later(message: Any) -> None:
            await may_write.wait()
            await send(message)

        write(self, later, *arguments)

    monkeypatch.setattr(OutgoingAnswers, "__init__", slowed)

    async def scenario(_node: FakeNode, stream: Any) -> None:
        queries = 50
        for first_tag in range(1, 40 * queries, queries):
            unknown = ReadOptions(level=9)  # type: ignore[arg-type]
            await stream.write(message(*[unknown] * queries, first_tag=first_tag))
        for _ in range(200):
            await asyncio.sleep(0.001)
        assert made[0]._outgoing.waiting <= 4 * queries
        may_write.set()
        left = set(range(1, 40 * queries + 1))
        while left:
            response = await stream.read()
            assert response.ByteSize() < 600 + 300
            left -= {answer.tag for answer in response.answers}

    with_streams(scenario)


def test_an_answer_that_no_message_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_stream, "_ANSWER_BYTES_MAX", 100)

    async def scenario(node: FakeNode, stream: Any) -> None:
        named(node, ["n" * 200])
        await stream.write(message(LOCAL))
        found = await answers(stream, 1)
        assert codes(found) == {1: "MESSAGE_TOO_LARGE"}
        assert not found[1].HasField("list_topics")

    with_streams(scenario)


def test_a_stream_with_too_many_open_queries_is_not_read_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a bound on what one stream holds. Method: a bound of ten, and thirty messages."""
    monkeypatch.setattr(read_stream, "READS_PER_STREAM_MAX", 10)

    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        for tag in range(1, 31):
            await stream.write(message(LINEARIZABLE, first_tag=tag))
        answered: set[int] = set()
        while len(answered) < 30:
            await node.has_reads(min(11, 30 - len(answered)))
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(node.reads) <= 11
            node.reads.pop(0)(node.log.end)
            answered |= set(await answers(stream, 1))

    with_streams(scenario)
