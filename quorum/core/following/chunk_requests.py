"""The concurrent FetchSnapshot requests of one download.

The first is ``requests.in_flight``. The others are linked behind it in file order and continue it.
A peer's stream keeps order, so answers arrive in that order. An answer out of order costs only a
second request for its chunk.

See: KIP-630 (630.9).
"""

from __future__ import annotations

from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.positions.download import Download
from quorum.core.protocol.requests import response_due_ms
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Follower
from quorum.types import NodeId


def unwritten_chunks(core: CoreState, download: Download) -> int:
    """Return how many received chunks wait for the disk."""
    while download.unwritten and download.unwritten[0] <= core.disk.durable_ticket:
        download.unwritten.popleft()
    return len(download.unwritten)


def request_chunk(
    core: CoreState, peer: NodeId, download: Download, position: int, max_bytes: int
) -> InFlight:
    """Request at most ``max_bytes`` of the file from ``position`` on from ``peer``."""
    role = core.role
    request_id = core.requests.next_id()
    ticket = core.disk.election_ticket
    core.send(
        peer,
        FetchSnapshotRequest(
            request_id,
            core.cluster_id,
            core.me,
            core.epoch,
            download.snapshot_id,
            position,
            max_bytes,
            role.read_round if isinstance(role, Follower) else NO_ROUND,
            is_disqualified=bool(core.election.disqualified),
        ),
    )
    return InFlight(
        peer,
        Purpose.FETCH_SNAPSHOT,
        response_due_ms(core, ticket),
        request_id,
        ticket=ticket,
        position=position,
    )


def ask_ahead(core: CoreState, download: Download) -> None:
    """Request the chunks behind the one in flight, as far as request and disk limits allow.

    Only after a first chunk, whose answer has the sizes of the file and of its chunks.
    """
    last = core.requests.in_flight
    if (
        last is None
        or last.purpose is not Purpose.FETCH_SNAPSHOT
        or not last.has_left
        or not last.asks_ahead
        or not download.chunk_bytes
        or download.epoch != core.epoch
    ):
        return
    under_way = 1
    while last.behind is not None:
        last = last.behind
        under_way += 1
    position = last.position + download.chunk_bytes
    config, unwritten = core.config, unwritten_chunks(core, download)
    while (
        position < download.size
        and under_way < config.snapshot_requests_max
        and under_way + unwritten < config.unwritten_chunks_max
    ):
        last.behind = request_chunk(core, last.peer, download, position, download.chunk_bytes)
        last = last.behind
        under_way += 1
        position += download.chunk_bytes


def wait_for_next(core: CoreState, answered: InFlight, download: Download) -> None:
    """After a chunk was stored, wait for the request behind it if it continues the file."""
    following = answered.behind
    if following is not None and following.position == download.position:
        core.requests.begin_flight(following)


def forget_chunk(core: CoreState, request_id: int) -> None:
    """Drop a request for a later chunk and all requests behind it.

    They are sent again after the one in flight is answered. If that answer is lost, every later
    answer would come too early, and an immediate new request would be wasted.
    """
    first = flight = core.requests.in_flight
    while first is not None and flight is not None:
        if flight.behind is not None and flight.behind.request_id == request_id:
            flight.behind = None
            first.asks_ahead = False
        flight = flight.behind
