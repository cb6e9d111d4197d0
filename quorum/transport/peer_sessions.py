"""Which process speaks for which replica: a second live one has a copy of its disk.

Two processes with one (id, directory) key would acknowledge and vote in each other's name. The
directory lock keeps them apart on one machine; between machines only their peers can see both.
A process that reconnects is the same one. When another one claims a key whose stream is still
open, the process at that stream's other end is asked whether it lives: it may long have had
nothing to say, and it may be gone with its machine, which TCP tells much later.

What this does not see: the copy of a disk whose process does not run, which is that replica from
then on, and two copies that talk to different peers.

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
"""A process that answers nothing for so long when it is asked is taken for gone."""


@dataclass(slots=True, eq=False)
class PeerSession:
    """One stream's right to speak for a replica."""

    key: ReplicaKey
    process_id: bytes
    probe: Callable[[], None]
    """Ask the process at the other end whether it is there."""
    is_superseded: bool = False
    """Another process has taken its place: nothing more is taken from this stream."""
    asked: asyncio.Future[bool] | None = None
    """While a rival waits: becomes whether this process lives."""

    def record_contact(self) -> None:
        """Something came from it; whatever it was, it lives."""
        if self.asked is not None:
            _settle(self.asked, is_alive=True)

    def ended(self) -> None:
        """Its stream is over."""
        if self.asked is not None:
            _settle(self.asked)

    async def is_alive(self) -> bool:
        """Whether its process answers within ``PEER_SESSION_ANSWER_S`` of being asked.

        Several may ask at once. A rival that gives up waiting and comes again waits for the rest.
        """
        if self.asked is None or self.asked.done():
            loop = asyncio.get_running_loop()
            self.asked = loop.create_future()
            loop.call_later(PEER_SESSION_ANSWER_S, _settle, self.asked)
            self.probe()
        # Not awaited itself: a rival that is cancelled must not cancel it for the others.
        asked = self.asked
        await asyncio.wait({asked})
        return asked.result()


def _settle(asked: asyncio.Future[bool], *, is_alive: bool = False) -> None:
    if not asked.done():
        asked.set_result(is_alive)


class PeerSessions:
    """The newest stream of every replica key. Bounded by the number of streams."""

    def __init__(self) -> None:
        self._newest: dict[ReplicaKey, PeerSession] = {}

    async def claim(self, hello: Hello, probe: Callable[[], None]) -> PeerSession | None:
        """The right to speak for ``hello.key``; None while another live process has it.

        Args:
            hello: What the stream says of itself.
            probe: Sends a probe on that stream.
        """
        key = hello.key
        peer_session = PeerSession(key, hello.process_id, probe)
        if key.id == NO_NODE:
            return peer_session
        while (rival := self.rival_of(peer_session)) is not None:
            if await rival.is_alive():
                return None
            self.supersede(rival)
        self.take(peer_session)
        return peer_session

    def rival_of(self, peer_session: PeerSession) -> PeerSession | None:
        """Whose stream is open and speaks for the same key in another process."""
        newest = self._newest.get(peer_session.key)
        if newest is None or is_one_process(newest.process_id, peer_session.process_id):
            return None
        return newest

    def supersede(self, rival: PeerSession) -> None:
        """It answered nothing: its place is free, unless another one has taken it meanwhile."""
        if self._newest.get(rival.key) is rival:
            rival.is_superseded = True
            del self._newest[rival.key]

    def take(self, peer_session: PeerSession) -> None:
        """From now on this stream speaks for its key."""
        self._newest[peer_session.key] = peer_session

    def release(self, peer_session: PeerSession) -> None:
        """Its stream has ended."""
        peer_session.ended()
        if self._newest.get(peer_session.key) is peer_session:
            del self._newest[peer_session.key]
