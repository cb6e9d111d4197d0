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

SPEAKER_ANSWER_S: Final = 3.0
"""A process that answers nothing for so long when it is asked is taken for gone."""


@dataclass(slots=True, eq=False)
class Speaker:
    """One stream's right to speak for a replica."""

    key: ReplicaKey
    process_id: bytes
    probe: Callable[[], None]
    """Ask the process at the other end whether it is there."""
    is_superseded: bool = False
    """Another process has taken its place: nothing more is taken from this stream."""
    asked: asyncio.Future[bool] | None = None
    """While a rival waits: becomes whether this process lives."""

    def heard(self) -> None:
        """Something came from it; whatever it was, it lives."""
        if self.asked is not None:
            _settle(self.asked, lives=True)

    def ended(self) -> None:
        """Its stream is over."""
        if self.asked is not None:
            _settle(self.asked)

    async def lives(self) -> bool:
        """Whether its process answers within ``SPEAKER_ANSWER_S`` of being asked.

        Several may ask at once. A rival that gives up waiting and comes again waits for the rest.
        """
        if self.asked is None or self.asked.done():
            loop = asyncio.get_running_loop()
            self.asked = loop.create_future()
            loop.call_later(SPEAKER_ANSWER_S, _settle, self.asked)
            self.probe()
        # Not awaited itself: a rival that is cancelled must not cancel it for the others.
        asked = self.asked
        await asyncio.wait({asked})
        return asked.result()


def _settle(asked: asyncio.Future[bool], *, lives: bool = False) -> None:
    if not asked.done():
        asked.set_result(lives)


class Speakers:
    """The newest stream of every replica key. Bounded by the number of streams."""

    def __init__(self) -> None:
        self._newest: dict[ReplicaKey, Speaker] = {}

    async def claim(self, hello: Hello, probe: Callable[[], None]) -> Speaker | None:
        """The right to speak for ``hello.key``; None while another live process has it.

        Args:
            hello: What the stream says of itself.
            probe: Sends a probe on that stream.
        """
        key = hello.key
        speaker = Speaker(key, hello.process_id, probe)
        if key.id == NO_NODE:
            return speaker
        while (rival := self.rival_of(speaker)) is not None:
            if await rival.lives():
                return None
            self.supersede(rival)
        self.take(speaker)
        return speaker

    def rival_of(self, speaker: Speaker) -> Speaker | None:
        """Whose stream is open and speaks for the same key in another process."""
        newest = self._newest.get(speaker.key)
        if newest is None or is_one_process(newest.process_id, speaker.process_id):
            return None
        return newest

    def supersede(self, rival: Speaker) -> None:
        """It answered nothing: its place is free, unless another one has taken it meanwhile."""
        if self._newest.get(rival.key) is rival:
            rival.is_superseded = True
            del self._newest[rival.key]

    def take(self, speaker: Speaker) -> None:
        """From now on this stream speaks for its key."""
        self._newest[speaker.key] = speaker

    def release(self, speaker: Speaker) -> None:
        """Its stream has ended."""
        speaker.ended()
        if self._newest.get(speaker.key) is speaker:
            del self._newest[speaker.key]
