"""The network of one replica: a channel to every peer and a route for every response.

``PeerNetwork`` is the ``Network`` of the driver. Requests leave on the channel of their peer;
responses return on the stream or call that brought the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping

from quorum.core.messages.message_types import Message, Request
from quorum.errors import QuorumUsageError
from quorum.fair_share import FairShare
from quorum.transport.channel import PeerChannel, PeerStatus
from quorum.transport.framing import encode_frame, is_request
from quorum.transport.hello import Hello, is_same_process
from quorum.transport.limits import CHANNELS_OF_HINTS_MAX
from quorum.transport.link import Link
from quorum.transport.server import RaftService
from quorum.types import NO_NODE, NodeId

_LOGGER = logging.getLogger(__name__)


class PeerNetwork:
    """Carries core messages to and from peers. Owned by the event loop.

    Life-cycle: construct on the loop; add ``service.handlers()`` to a server; call ``set_peers`` at
    will; finally ``stop``. After ``stop`` messages are dropped silently.
    """

    def __init__(self, link: Link) -> None:
        self.service = RaftService(link, self._accepted, self._has_met)
        self._link = link
        self._channels: dict[NodeId, PeerChannel] = {}
        self._recorded: dict[NodeId, str] = {}
        """Latest addresses in the voters' record or the configuration."""
        self._hinted: dict[NodeId, None] = {}
        """Channels known from hints only, the oldest first."""
        self._closing: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    @property
    def quotas(self) -> tuple[FairShare, ...]:
        """The quotas of callers, for metrics."""
        return self.service.quotas()

    def send(self, to: NodeId, message: Message) -> None:
        """Queue a message; never blocks, never raises, may lose it.

        A lost response is only counted. Every request ends in its response or in
        ``on_request_failed``, which is never called before this returns.
        """
        if self._is_stopped:
            return
        if not is_request(message):
            self.service.routes.respond(to, message)
            return
        channel = self._channels.get(to)
        try:
            frame = encode_frame(message)
        except QuorumUsageError:
            _LOGGER.exception("event=send_failed to=%d", to)
            channel = None
            frame = b""
        if channel is None:
            self._link.counters.requests_failed += 1
            asyncio.get_running_loop().call_soon(self._fail, to, message)
        else:
            channel.send(message, frame)

    def set_peers(self, addresses: Mapping[NodeId, str], *, is_hint: bool = False) -> None:
        """Set the addresses of these peers; open and keep connections to them.

        Peers that are not named keep their address: bootstrap servers and an announced leader come
        one by one, the voters all together. A peer that left the cluster lapses by itself
        (``LAPSE_AFTER_S``). A changed address replaces the connection. So does a record that
        confirms a hint: only then does the peer get this process's id. Requests that wait for the
        old connection fail. Our own id is skipped.

        Args:
            addresses: ``host:port`` by peer.
            is_hint: A message named the peers. A caller may invent such peers, so at most
                ``CHANNELS_OF_HINTS_MAX`` are kept; a peer that is also recorded does not count.
        """
        if self._is_stopped:
            return
        for peer, address in addresses.items():
            if peer == self._link.hello.key.id:
                continue
            known = self._channels.get(peer)
            if not is_hint:
                self._recorded[peer] = address
                self._hinted.pop(peer, None)
            elif known is None:
                self._make_room_for_hint(peer)
            is_unsure = self._recorded.get(peer) != address
            if known is not None and (known.address, known.is_hint) == (address, is_unsure):
                known.want()
                continue
            if known is not None:
                self._close(known)
            channel = PeerChannel(peer, address, self._link, is_hint=is_unsure)
            self._channels[peer] = channel
            channel.start()

    def _make_room_for_hint(self, peer: NodeId) -> None:
        self._hinted[peer] = None
        if len(self._hinted) > CHANNELS_OF_HINTS_MAX:
            oldest = next(iter(self._hinted))
            del self._hinted[oldest]
            self._close(self._channels.pop(oldest))
            self._link.counters.hints_forgotten += 1

    def statuses(self) -> list[PeerStatus]:
        """Return the state of every connection, by peer."""
        return [self._channels[peer].status for peer in sorted(self._channels)]

    async def stop(self) -> None:
        """Send goodbyes to connected peers and close our own streams."""
        self._is_stopped = True
        await self.service.send_goodbye()
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
            if peer in self._recorded:
                # A leader sends its voters no requests, so the channel may have lapsed. But only a
                # process met at the recorded address is proven (ADR 52).
                channel.want()
            channel.nudge()
        for each in self._configured():
            # The caller may be there: a voter that moved, or a future voter.
            each.want()

    def _has_met(self, caller: Hello) -> bool | None:
        """Whether the calling process was met at an address of its replica: the recorded one, or
        any of the configuration's.

        None if this node knows no address of that replica, so it is no voter. An address from a
        message does not count: it may be the caller's own.
        """
        peer = caller.key.id
        is_recorded = peer in self._recorded
        channel = self._channels.get(peer) if is_recorded else None
        channels = [*self._configured(), *([channel] if channel is not None else [])]
        if any(is_same_process(caller, each.met) for each in channels if not each.is_hint):
            return True
        return False if is_recorded else None

    def _configured(self) -> Iterator[PeerChannel]:
        """Yield the channels to configured servers, whose ids are unknown before they answer."""
        return (each for peer, each in self._channels.items() if peer < NO_NODE)

    def _fail(self, to: NodeId, request: Request) -> None:
        if not self._is_stopped:
            self._link.handler.on_request_failed(to, request.request_id)
