"""Which state a query is answered from: local, at least an offset, or linearizable.

LOCAL checks nothing and costs nothing. AT_LEAST waits until this node has applied the offset.
LINEARIZABLE confirms leadership by a round trip that begins after the read arrived, then waits
for the confirmed offset (architecture 5.3).
"""

from __future__ import annotations

import asyncio

from quorate.services.errors import RequestRefusedError
from quorate.services.leadership import not_leader, require_leader
from quorate.services.ports import ServedNode
from quorum.errors import CommandError, ErrorCode
from quorum.v1.metadata_pb2 import ReadLevel, ReadOptions, ReadPosition
from statemachine.image import MetadataImage

WAITING_READS_MAX = 10_000
"""Most reads of one node that wait for a confirmation or an offset at a time."""


class Reads:
    """Hands out images at the level a request asks for. Lives on the event loop."""

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        self._waiting = 0

    async def image(self, options: ReadOptions) -> MetadataImage:
        """The state to answer from; waits as long as the level demands.

        Raises:
            CommandError: NOT_LEADER_OR_FOLLOWER for a linearizable read that this node cannot
                confirm, INVALID_REQUEST for an unknown level, RESOURCE_EXHAUSTED when too many
                reads wait.
        """
        level = options.level
        if level in (ReadLevel.READ_LEVEL_UNSPECIFIED, ReadLevel.READ_LEVEL_LOCAL):
            return self._node.image
        if level == ReadLevel.READ_LEVEL_AT_LEAST:
            offset = options.at_least_offset
        elif level == ReadLevel.READ_LEVEL_LINEARIZABLE:
            offset = await self._confirmed_offset()
        else:
            raise CommandError(ErrorCode.INVALID_REQUEST, f"unknown read level {level}")
        await self.applied(offset)
        return self._node.image

    async def applied(self, offset: int) -> None:
        """Wait until everything below ``offset`` is in the image."""
        if self._node.image.provenance.end_offset >= offset:
            return
        done = self._new_wait()
        cancel = self._node.wait_applied(offset, lambda: _resolve(done, offset))
        try:
            await done
        finally:
            self._waiting -= 1
            cancel()

    async def _confirmed_offset(self) -> int:
        require_leader(self._node)
        done = self._new_wait()
        try:
            self._node.confirm_read(lambda outcome: _resolve(done, outcome))
            offset = await done
        finally:
            self._waiting -= 1
        if offset is None:
            raise not_leader(self._node, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return offset

    def _new_wait(self) -> asyncio.Future[int | None]:
        if self._waiting >= WAITING_READS_MAX:
            raise RequestRefusedError(
                ErrorCode.RESOURCE_EXHAUSTED, f"{self._waiting} reads are waiting already"
            )
        self._waiting += 1
        return asyncio.get_running_loop().create_future()

    def position(self, image: MetadataImage) -> ReadPosition:
        """Where ``image`` stands and how old its newest record is."""
        provenance = image.provenance
        return ReadPosition(
            offset=provenance.end_offset,
            epoch=provenance.epoch,
            age_ms=(
                max(0, self._node.wall_ms() - provenance.timestamp_ms)
                if provenance.timestamp_ms >= 0
                else -1
            ),
            node_id=self._node.node_id,
        )


def _resolve(done: asyncio.Future[int | None], outcome: int | None) -> None:
    # The call may have been cancelled meanwhile.
    if not done.done():
        done.set_result(outcome)
