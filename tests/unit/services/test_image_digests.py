"""One digest at a time serves all requests that arrived before it began."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quorate.services import image_digests as module
from quorate.services.image_digests import ImageDigests, digest_in_slices
from quorum.v1.metadata_pb2 import ReadPosition
from statemachine.dump import state_digest
from statemachine.image import MetadataImage, Provenance


def image_at(end_offset: int) -> MetadataImage:
    return MetadataImage().at(Provenance(end_offset=end_offset))


def test_the_digest_is_that_of_the_image() -> None:
    assert digest_in_slices(image_at(7)) == state_digest(image_at(7))


def test_many_concurrent_requests_cost_two_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was begun before they came, and one for all of them."""
    begun, go_on, made = threading.Event(), threading.Event(), []

    def held(image: MetadataImage) -> bytes:
        made.append(image.provenance.end_offset)
        begun.set()
        go_on.wait(30)
        return b"d"

    async def scenario() -> None:
        monkeypatch.setattr(module, "digest_in_slices", held)
        end = [1]
        digests = ImageDigests(lambda: (image_at(end[0]), ReadPosition(offset=end[0], age_ms=5)))
        first = asyncio.ensure_future(digests.at_least(1))
        await asyncio.to_thread(begun.wait, 30)
        others = []
        for offset in range(2, 100):
            end[0] = offset
            others.append(asyncio.ensure_future(digests.at_least(offset)))
        await asyncio.sleep(0)
        go_on.set()
        assert (await first).position.offset == 1
        assert {(await each).position.offset for each in others} == {99}
        assert made == [1, 99]
        found = await first
        assert found.position_at(found.taken_at + 2).age_ms == 2005

    asyncio.run(scenario())


def test_who_gives_up_waiting_begins_no_second_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls with short deadlines in a loop: no thread computes in vain beside another one."""
    begun, go_on, made = threading.Event(), threading.Event(), []

    def held(image: MetadataImage) -> bytes:
        made.append(image.provenance.end_offset)
        begun.set()
        go_on.wait(30)
        return b"d"

    async def scenario() -> None:
        monkeypatch.setattr(module, "digest_in_slices", held)
        digests = ImageDigests(lambda: (image_at(1), ReadPosition(offset=1)))
        for _ in range(3):
            asked = asyncio.ensure_future(digests.at_least(1))
            await asyncio.to_thread(begun.wait, 30)
            await asyncio.sleep(0.02)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        last = asyncio.ensure_future(digests.at_least(1))
        await asyncio.sleep(0.02)
        go_on.set()
        assert (await last).digest == b"d"
        assert made == [1]

    asyncio.run(scenario())


def test_one_that_failed_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [ValueError("no memory"), b"d"]

    def failing(_: MetadataImage) -> bytes:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def scenario() -> None:
        monkeypatch.setattr(module, "digest_in_slices", failing)
        digests = ImageDigests(lambda: (image_at(1), ReadPosition(offset=1)))
        with pytest.raises(ValueError, match="no memory"):
            await digests.at_least(1)
        assert (await digests.at_least(1)).digest == b"d"

    asyncio.run(scenario())
