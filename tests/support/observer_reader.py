"""A broker that executes what follows from the steps of an observer in its process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from quorate.broker_agent.commands import BrokerCommand
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.image_feed import ImageChange
from quorate.broker_agent.metadata_source import MetadataStep
from quorate.broker_agent.observed_log import ObservedLog
from tests.support.agent_world import RecordingController
from tests.support.broker_world import OWN, Cluster, Executed
from tests.support.observer_world import FollowingController

DEADLINE_SECONDS = 60.0
"""A loaded machine; what is waited for is there already."""


class Reader:
    """A broker that executes what follows from the steps of an observer."""

    def __init__(self, *, is_registered: bool = True) -> None:
        self.cluster = Cluster(RecordingController())
        if is_registered:
            self.cluster.start()
        self.observer = FollowingController()
        self.executed = Executed()
        self.steps: list[MetadataStep] = []
        self.commands: list[BrokerCommand] = []
        self._derivation = CommandDerivation(OWN)
        self.source: AsyncGenerator[MetadataStep] = ObservedLog(self.observer.controller).steps()
        self._end = -1

    def apply(self) -> None:
        assert isinstance(self.cluster.controller, RecordingController)
        self.observer.apply(self.cluster.controller.data)

    def fetch_checkpoint(self) -> None:
        self.observer.fetch_checkpoint(self.cluster.controller.image)

    async def read(self) -> list[MetadataStep]:
        """Execute all that the observer has applied; return these steps."""
        seen = len(self.steps)
        while self._end < self.observer.end_offset:
            async with asyncio.timeout(DEADLINE_SECONDS):
                step = await anext(self.source)
            self.steps.append(step)
            if isinstance(step, ImageChange):
                self._end = step.after.provenance.end_offset
                commands = self._derivation.follow(step)
            else:
                self._end = step.provenance.end_offset
                commands = self._derivation.begin(step)
            self.commands += commands
            self.executed.take(commands)
        image = self.observer.controller.image
        if image.cluster.broker(OWN) is not None:
            self.executed.check(image)
        return self.steps[seen:]

    async def close(self) -> None:
        await self.source.aclose()


def play(scenario: Callable[[Reader], Awaitable[None]], *, is_registered: bool = True) -> None:
    async def run() -> None:
        reader = Reader(is_registered=is_registered)
        await scenario(reader)
        await reader.close()

    asyncio.run(run())


def ends(steps: list[MetadataStep]) -> list[int]:
    return [
        (each.after if isinstance(each, ImageChange) else each).provenance.end_offset
        for each in steps
    ]
