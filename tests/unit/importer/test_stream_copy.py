"""One copying attempt over a write stream that the test controls: which side failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from quorate.client.errors import RefusedError
from quorate.importer.copying import InterruptedCopyError, StreamCopy
from quorate.importer.plan import Step
from quorum.errors import StorageError
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import ImportBatch
from quorum.v1.metadata_pb2 import WriteAnswer, WriteStreamRequest, WriteStreamResponse
from statemachine.import_state import SourcePosition

STEP = Step(SourcePosition(is_in_log=True, offset=0), SourcePosition(is_in_log=True, offset=1), ())
GOOD = common_pb2.ERROR_CODE_NONE


class Call:
    """Answers each command with ``code``; with None it is silent for good."""

    def __init__(self, code: Any = GOOD, *, is_broken: bool = False) -> None:
        self.responses: asyncio.Queue[Any] = asyncio.Queue()
        self.code = code
        self.is_broken = is_broken

    async def write(self, request: WriteStreamRequest) -> None:
        if self.is_broken:
            self.responses.put_nowait(grpc.RpcError("the call is over"))
            raise asyncio.InvalidStateError("the call is over")
        if self.code is not None:
            answers = [
                WriteAnswer(tag=command.tag, error_code=self.code, message="no")
                for command in request.groups[0].commands
            ]
            self.responses.put_nowait(WriteStreamResponse(answers=answers))

    async def done_writing(self) -> None:
        self.responses.put_nowait(grpc.aio.EOF)

    async def read(self) -> Any:
        response = await self.responses.get()
        if isinstance(response, Exception):
            raise response
        return response


def copy(make_call: Callable[[], Call], steps: Iterator[Step]) -> int:
    """Copy the steps; how many were copied. Nothing may be left running."""
    copied: list[Step] = []

    async def body() -> None:
        async with asyncio.timeout(60):
            stream: Any = make_call()
            try:
                await StreamCopy(stream, lambda _: ImportBatch(), copied.append).run(steps)
            finally:
                assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(body())
    return len(copied)


def failing_after(count: int) -> Iterator[Step]:
    for _ in range(count):
        yield STEP
    raise StorageError("it vanished", "x.log")


def test_every_step_is_copied_in_order() -> None:
    assert copy(Call, iter([STEP] * 300)) == 300


@pytest.mark.parametrize("count", [0, 1, 200])
def test_an_unreadable_source_is_reported_at_once(count: int) -> None:
    """The cluster has nothing to answer to: waiting for it would end with the blame on it."""
    with pytest.raises(StorageError, match="it vanished"):
        copy(lambda: Call(None), failing_after(count))


def test_a_refusal_ends_the_attempt_while_there_is_more_to_send() -> None:
    code = common_pb2.ERROR_CODE_INVALID_REQUEST
    with pytest.raises(RefusedError):
        copy(lambda: Call(code), iter([STEP] * 2000))


def test_a_broken_stream_is_an_interruption_not_a_failure_of_the_source() -> None:
    with pytest.raises(InterruptedCopyError, match="the call is over"):
        copy(lambda: Call(is_broken=True), iter([STEP]))
