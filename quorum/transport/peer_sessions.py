"""Peer sessions: the process that holds each replica key, and detection of copied disks.

Two processes with one (id, directory) key would acknowledge and vote in each other's name. On one
machine the directory lock prevents that; between machines only their peers can see both.
A process that reconnects keeps its session. If another process claims a key whose stream is still
open, the process at that stream's other end is probed. A live process may long have been silent,
and a dead machine's process may be gone without notice, since TCP detects that much later.

Not detected: the copy of a disk whose original does not run (the copy then is that replica), and
two copies that connect to different peers.

See: docs/guarantees.md (cloned disks are detected at first contact).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorum.transport.hello import Hello, is_one_process
from quorum.types import NO_NODE, ReplicaKey

PEER_SESSION_ANSWER_S: Final = 3.0
"""A probed process that sends nothing for this long counts as gone."""
_PARTS: Final = 6
"""The time runs in parts, one timer after the other. However long this process itself stands still,
one part passes, and what has arrived meanwhile is read before the next ends."""


@dataclass(slots=True, eq=False)
class PeerSession:
    """One stream's claim on a replica key."""

    key: ReplicaKey
    process_id: bytes
    probe: Callable[[], None]
    """Send a probe to the process at the other end."""
    is_superseded: bool = False
    """Another process has taken its place: frames of this stream are ignored."""
    opened: int = 0
    """The stream's number, from ``PeerSessions.next_stream``."""
    asked: asyncio.Future[bool] | None = None
    """Result of a probe under way: whether this process lives."""

    def record_contact(self) -> None:
        """Note that a frame arrived from the process, which proves that it lives."""
        if self.asked is not None:
            _settle(self.asked, is_alive=True)

    def ended(self) -> None:
        """Note that the stream has ended."""
        if self.asked is not None:
            _settle(self.asked)

    async def is_alive(self) -> bool:
        """Whether its process answers a probe within ``PEER_SESSION_ANSWER_S``.

        A pause of this process does not count as the other's silence. Several callers may wait at
        once. A claimant that gives up and returns waits for the rest of the same probe.
        """
        if self.asked is None or self.asked.done():
            self.asked = asyncio.get_running_loop().create_future()
            _expire(self.asked, _PARTS)
            self.probe()
        # Not awaited directly: a cancelled claimant must not cancel it for the others.
        asked = self.asked
        await asyncio.wait({asked})
        return asked.result()


def _settle(asked: asyncio.Future[bool], *, is_alive: bool = False) -> None:
    if not asked.done():
        asked.set_result(is_alive)


def _expire(asked: asyncio.Future[bool], parts: int) -> None:
    if parts == 0:
        _settle(asked)
    elif not asked.done():
        part_s = PEER_SESSION_ANSWER_S / _PARTS
        asyncio.get_running_loop().call_later(part_s, _expire, asked, parts - 1)


class PeerSessions:
    """The newest stream of every replica key. Bounded by the number of streams."""

    def __init__(self) -> None:
        self._newest: dict[ReplicaKey, PeerSession] = {}
        self._streams = 0

    def next_stream(self) -> int:
        """Return the number of a stream that begins now; later streams have higher numbers."""
        self._streams += 1
        return self._streams

    async def claim(
        self, hello: Hello, probe: Callable[[], None], opened: int
    ) -> PeerSession | None:
        """Return the session for ``hello.key``; None if another live process holds the key.

        Args:
            hello: The hello of the stream.
            probe: Sends a probe on that stream.
            opened: The stream's number. A stream may claim its key later than one that was opened
                after it, and may have been given up meanwhile.
        """
        key = hello.key
        peer_session = PeerSession(key, hello.process_id, probe, opened=opened)
        if key.id == NO_NODE:
            return peer_session
        while (conflicting := self.conflict_of(peer_session)) is not None:
            if await conflicting.is_alive():
                return None
            self.supersede(conflicting)
        self.take(peer_session)
        return peer_session

    def conflict_of(self, peer_session: PeerSession) -> PeerSession | None:
        """Return the session of another process with the same key and an open stream, if any."""
        newest = self._newest.get(peer_session.key)
        if newest is None or is_one_process(newest.process_id, peer_session.process_id):
            return None
        return newest

    def supersede(self, conflicting: PeerSession) -> None:
        """Free the place of a process without an answer, unless another one has taken it."""
        if self._newest.get(conflicting.key) is conflicting:
            conflicting.is_superseded = True
            del self._newest[conflicting.key]

    def take(self, peer_session: PeerSession) -> None:
        """Give the key to this session, unless a newer stream of its process holds it."""
        newest = self._newest.get(peer_session.key)
        if newest is None or newest.opened <= peer_session.opened:
            self._newest[peer_session.key] = peer_session

    def release(self, peer_session: PeerSession) -> None:
        """End a session with its stream."""
        peer_session.ended()
        if self._newest.get(peer_session.key) is peer_session:
            del self._newest[peer_session.key]
