"""The network of one replica: a channel to every peer and the way back for every response.

``PeerNetwork`` is what the driver calls ``Network``. Requests leave on the channel of the peer
they are for; responses return on the stream or call that brought the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from quorum.core.messages import Message, Request
from quorum.errors import QuorumUsageError
from quorum.transport.channel import PeerChannel, PeerStatus
from quorum.transport.framing import encode_frame, is_request
from quorum.transport.link import Link
from quorum.transport.server import RaftService
from quorum.types import NodeId

_LOGGER = logging.getLogger(__name__)


class PeerNetwork:
    """Carries core messages to and from peers. Owned by the event loop.

    Life-cycle: construct on the loop; ``service.handlers()`` go onto a server; ``set_peers`` at
    will; finally ``stop``. After ``stop`` messages are dropped silently.
    """

    def __init__(self, link: Link) -> None:
        self.service = RaftService(link, self._accepted)
        self._link = link
        self._channels: dict[NodeId, PeerChannel] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def send(self, to: NodeId, message: Message) -> None:
        """Queue a message; never blocks, never raises, may lose.

        A lost response is only counted. Every request ends in its response or in
        ``on_request_failed``, which is never called before this returns.
        """
        if self._is_stopped:
            return
        if not is_request(message):
            self.service.respond(to, message)
            return
        channel = self._channels.get(to)
        try:
            frame = encode_frame(message)
        except QuorumUsageError:
            _LOGGER.exception("to=%d", to)
            channel = None
            frame = b""
        if channel is None:
            self._link.counters.requests_failed += 1
            asyncio.get_running_loop().call_soon(self._fail, to, message)
        else:
            channel.send(message, frame)

    def set_peers(self, addresses: Mapping[NodeId, str]) -> None:
        """Where these peers are now, as ``host:port``; connections to them are opened and kept.

        Peers that are not named stay as they were: bootstrap servers and an announced leader are
        told one by one, the voters all together. One that left the cluster lapses by itself
        (``LAPSE_AFTER_S``). A changed address replaces the connection; requests waiting there
        fail. Our own id is skipped.
        """
        if self._is_stopped:
            return
        for peer, address in addresses.items():
            if peer == self._link.hello.key.id:
                continue
            known = self._channels.get(peer)
            if known is not None and known.address == address:
                known.want()
                continue
            if known is not None:
                self._close(known)
            channel = self._channels[peer] = PeerChannel(peer, address, self._link)
            channel.start()

    def statuses(self) -> list[PeerStatus]:
        """Every connection as it is now, by peer."""
        return [self._channels[peer].status for peer in sorted(self._channels)]

    async def stop(self) -> None:
        """Say goodbye to those connected to us and close our own streams."""
        self._is_stopped = True
        await self.service.say_goodbye()
        for channel in self._channels.values():
            self._close(channel)
        self._channels.clear()
        await asyncio.gather(*self._closing)

    def _close(self, channel: PeerChannel) -> None:
        task = asyncio.create_task(self._close_now(channel))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_now(self, channel: PeerChannel) -> None:
        unanswered = await channel.close()
        if not self._is_stopped:
            for request_id in unanswered:
                self._link.counters.requests_failed += 1
                self._link.handler.on_request_failed(channel.peer, request_id)

    def _accepted(self, peer: NodeId) -> None:
        channel = self._channels.get(peer)
        if channel is not None:
            channel.nudge()

    def _fail(self, to: NodeId, request: Request) -> None:
        if not self._is_stopped:
            self._link.handler.on_request_failed(to, request.request_id)
