"""The state that answers a query: local, at least an offset, or linearizable.

LOCAL checks nothing. AT_LEAST waits until this node has applied the offset. LINEARIZABLE finds a
position by a round trip that begins after the read arrived, then waits until this node has applied
it (ADR 9). The leader makes the round itself; every other replica requests it from the leader. The
answer always comes from the image of the node that received the query.
"""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.services.admission import Gate
from quorate.services.calls import Context, seconds_left
from quorate.services.errors import RequestRefusedError
from quorate.services.leadership import leader_hint, not_leader
from quorate.services.ports import Cancel, ServedNode
from quorum.errors import CommandError, ErrorCode
from quorum.transport.callers import caller_of
from quorum.v1 import metadata_pb2
from quorum.v1.metadata_pb2 import ReadOptions, ReadPosition
from statemachine.image import MetadataImage

# An attribute of the enum's own type is found by a search, for every read.
UNSPECIFIED: Final = metadata_pb2.READ_LEVEL_UNSPECIFIED
LOCAL: Final = metadata_pb2.READ_LEVEL_LOCAL
AT_LEAST: Final = metadata_pb2.READ_LEVEL_AT_LEAST
LINEARIZABLE: Final = metadata_pb2.READ_LEVEL_LINEARIZABLE

WAIT_SECONDS_MAX = 30.0
"""Maximum wait of one read, in seconds, even if its deadline is later."""
_ANSWER_SECONDS = 0.05
"""Seconds reserved before the deadline, at most a fifth of it, so that a refusal arrives."""


class Reads:
    """Provides images at the requested consistency level. Used on the event loop only."""

    def __init__(self, node: ServedNode, held: Gate) -> None:
        """``held`` counts the waiting reads. It has fewer places than there are calls, so that
        waiting reads never displace reads that are answered at once.
        """
        self._node = node
        self.held = held

    async def image(self, options: ReadOptions, context: Context) -> MetadataImage:
        """Return the image to answer from; waits as the level requires and the deadline allows.

        Raises:
            RequestRefusedError: NOT_LEADER_OR_FOLLOWER for a linearizable read that no leader
                confirmed, REQUEST_TIMED_OUT if that took too long, OFFSET_NOT_AVAILABLE if
                this node has not applied the offset in time, RESOURCE_EXHAUSTED if too many
                reads wait.
            CommandError: INVALID_REQUEST for an unknown level or a negative offset.
        """
        level = options.level
        if level in (UNSPECIFIED, LOCAL):
            return self._node.image
        seconds = _patience(context)
        wait = _Wait(self._node)
        if level == AT_LEAST:
            wait.offset = at_least_offset(options)
            if wait.is_over:
                return self._node.image
        elif level != LINEARIZABLE:
            raise CommandError(ErrorCode.INVALID_REQUEST, f"unknown read level {level}")
        with self.held.passing(caller_of(context)):
            try:
                await wait.run(seconds)
            except TimeoutError as error:
                raise self.too_late(wait.offset, seconds) from error
        return self._node.image

    def too_late(self, offset: int, seconds: float) -> RequestRefusedError:
        """Return the refusal of a read after ``seconds`` of waiting for ``offset``, or, if that is
        -1, for its confirmation.
        """
        node = self._node
        hint = leader_hint(node)
        if offset < 0:
            return RequestRefusedError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"no leader confirmed the read within {seconds:.3g} s: node {node.node_id} has "
                f"leader {hint.leader_id} in epoch {hint.leader_epoch}",
                (hint,),
            )
        return RequestRefusedError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"node {node.node_id} has applied offset {node.image.provenance.end_offset}, and did "
            f"not reach {offset} within {seconds:.3g} s",
        )

    def position(self, image: MetadataImage) -> ReadPosition:
        """Return the position of ``image`` and its age in ms."""
        provenance = image.provenance
        return ReadPosition(
            offset=provenance.end_offset,
            epoch=provenance.epoch,
            age_ms=self._node.age_ms(),
            node_id=self._node.node_id,
        )


def _patience(context: Context) -> float:
    """Return the seconds that a read may wait, so that a refusal arrives before the deadline."""
    left = seconds_left(context)
    return min(WAIT_SECONDS_MAX, left - min(_ANSWER_SECONDS, left / 5))


def at_least_offset(options: ReadOptions) -> int:
    """Return the offset that an AT_LEAST read waits for.

    Raises:
        CommandError: INVALID_REQUEST if it is negative.
    """
    if options.at_least_offset < 0:
        raise CommandError(
            ErrorCode.INVALID_REQUEST, f"at_least_offset {options.at_least_offset} is negative"
        )
    return options.at_least_offset


class _Wait:
    """The wait of one read, for its confirmation and then for the image. Use once."""

    __slots__ = ("_cancel", "_done", "_node", "offset")

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        self.offset = -1
        """The offset that the image must reach; -1 until the leader has confirmed one."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._cancel: Cancel | None = None

    @property
    def is_over(self) -> bool:
        """Whether the image contains everything below ``offset``."""
        return 0 <= self.offset <= self._node.image.provenance.end_offset

    async def run(self, seconds: float) -> None:
        """Wait for at most ``seconds``.

        Raises:
            TimeoutError: It took longer.
            CommandError: NOT_LEADER_OR_FOLLOWER, no leader confirmed an offset;
                RESOURCE_EXHAUSTED, too many reads wait.
        """
        timer = self._done.get_loop().call_later(seconds, self._end, TimeoutError())
        try:
            if self.offset < 0:
                self._node.confirm_read(self._on_confirmed)
            else:
                self._wait_applied()
            await self._done
        finally:
            timer.cancel()
            if self._cancel is not None:
                self._cancel()

    def _on_confirmed(self, offset: int | None) -> None:
        if self._done.done():
            return
        if offset is None:
            self._end(not_leader(self._node, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        self.offset = offset
        if self.is_over:
            self._end()
        else:
            self._wait_applied()

    def _wait_applied(self) -> None:
        try:
            self._cancel = self._node.wait_applied(self.offset, self._end)
        except CommandError as error:
            # Too many wait. Not raised: the controller may be the caller.
            self._end(error)

    def _end(self, error: Exception | None = None) -> None:
        # The call may have been cancelled meanwhile.
        if self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
