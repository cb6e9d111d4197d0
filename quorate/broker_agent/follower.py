"""From steps of the metadata to commands, which are executed one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from quorate.broker_agent.commands import BrokerCommand
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.handler import CommandHandler, HistoryLost
from quorate.broker_agent.image_feed import ImageChange
from quorate.broker_agent.metadata_source import MetadataSource
from quorate.client.errors import LogTruncationError
from quorum.types import NodeId
from statemachine.image import MetadataImage


class LogFollower:
    """One broker's reader of the log. ``execute`` gets each image and what follows from it."""

    def __init__(
        self,
        broker_id: NodeId,
        source: MetadataSource,
        execute: Callable[[MetadataImage, list[BrokerCommand]], Awaitable[None]],
        forget: Callable[[], None],
        handler: CommandHandler,
    ) -> None:
        """``forget`` is called when the log turns out to be another one."""
        self._source = source
        self._execute = execute
        self._forget = forget
        self._handler = handler
        self._derivation = CommandDerivation(broker_id)

    async def run(self) -> None:
        """Follow for ever; a whole image replaces everything before it.

        Raises:
            QuorateError: As the source; a truncated log is begun anew.
        """
        while True:
            try:
                async with aclosing(self._source.steps()) as steps:
                    async for step in steps:
                        if isinstance(step, ImageChange):
                            await self._execute(step.after, self._derivation.follow(step))
                        else:
                            await self._execute(step, self._derivation.begin(step))
            except LogTruncationError as error:
                # A recovery or a restored backup: what was executed may never have been.
                self._handler.report(HistoryLost(str(error)))
                self._forget()
