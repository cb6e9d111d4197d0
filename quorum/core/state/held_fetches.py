"""Fetches that a leader holds until it has an answer for them.

A container: it finds the held requests that a change makes answerable, and ``fetch_serving`` builds
the answers. Every request that is put in is taken out exactly once.

See: KIP-595 (fetch purgatory).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.read_messages import ReadRound
from quorum.types import NodeId

HELD_PER_VOTER_MAX = 4
"""Held requests of one voter. It has one at a time; more are of connections it has given up."""
NEVER_MS = 1 << 62
"""Later than any clock: a deadline that never comes."""

_fetch_offset = attrgetter("fetch_offset")
_known_high_watermark = attrgetter("high_watermark")
_is_voter = attrgetter("is_voter")
_is_consumer = attrgetter("is_consumer")
_position = attrgetter("request.fetch_offset")


@dataclass(slots=True, eq=False)
class HeldFetch:
    """One waiting request and what it waits for."""

    sender: NodeId
    request: FetchRequest
    deadline_ms: int
    is_voter: bool
    is_consumer: bool = False
    """Whether a plain consumer waits, which gets committed records only."""


class HeldFetches:
    """Waiting Fetches in order of arrival; those of others than voters bounded by the caller."""

    __slots__ = ("_held", "_of_voter", "earliest_ms")

    def __init__(self) -> None:
        self._held: dict[tuple[NodeId, int], HeldFetch] = {}
        self._of_voter: dict[NodeId, deque[tuple[NodeId, int]]] = {}
        """Where each voter's requests are held, oldest first; some may have been taken."""
        self.earliest_ms = NEVER_MS
        """No held request is due before this. May be early, never late."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, fetch: HeldFetch) -> list[HeldFetch]:
        """Keep a request; returns those it displaces, at most two.

        One of the same sender and id, and of a voter the oldest when it has too many.
        """
        key = (fetch.sender, fetch.request.request_id)
        repeated = self._held.pop(key, None)
        gone = [] if repeated is None else [repeated]
        if fetch.is_voter:
            of_voter = self._of_voter.setdefault(fetch.request.replica.id, deque())
            while of_voter and of_voter[0] not in self._held:
                of_voter.popleft()
            if len(of_voter) >= HELD_PER_VOTER_MAX:
                gone.append(self._held.pop(of_voter.popleft()))
            of_voter.append(key)
        self._held[key] = fetch
        if fetch.deadline_ms < self.earliest_ms:
            self.earliest_ms = fetch.deadline_ms
        return gone

    def take_below(self, log_end: int, high_watermark: int) -> list[HeldFetch]:
        """Those there are records for: replicas below the log end, consumers below what is
        committed.
        """
        return self._take(
            lambda fetch: (
                fetch.request.fetch_offset < (high_watermark if fetch.is_consumer else log_end)
            )
        )

    def take_ahead(self, voters_max: int, offset: int) -> list[HeldFetch]:
        """Take the Fetches of the ``voters_max`` most caught-up voters, the quickest first among
        equals, and of every replica at or below ``offset``; not those of consumers.
        """
        held = self._held.values()
        voters = list(filter(_is_voter, held))
        if len(voters) > voters_max:
            voters.sort(key=_position, reverse=True)
            del voters[voters_max:]
        taken = [
            fetch
            for fetch in held
            if fetch in voters or (fetch.request.fetch_offset <= offset and not fetch.is_consumer)
        ]
        self._remove(taken)
        return taken

    def hasten_below(self, log_end: int, deadline_ms: int) -> None:
        """Let replicas below the log end wait no longer than ``deadline_ms``."""
        self._hasten(deadline_ms, _fetch_offset, log_end)

    def take_unaware_of(self, high_watermark: int) -> list[HeldFetch]:
        """Take those that need this high watermark: replicas that know a lower one, and consumers
        to which it makes records visible.
        """
        return self._take(
            lambda fetch: (
                fetch.request.fetch_offset < high_watermark
                if fetch.is_consumer
                else fetch.request.high_watermark < high_watermark
            )
        )

    def take_up_to(self, offset: int) -> list[HeldFetch]:
        """Those whose position is at or below ``offset``, a relay's high watermark."""
        return self._take(lambda fetch: fetch.request.fetch_offset <= offset)

    def take_consumers_below(self, high_watermark: int) -> list[HeldFetch]:
        """Plain consumers for whom the high watermark uncovers records."""
        consumers = list(filter(_is_consumer, self._held.values()))
        if not consumers:
            return []
        taken = [fetch for fetch in consumers if fetch.request.fetch_offset < high_watermark]
        self._remove(taken)
        return taken

    def hasten_unaware_of(self, high_watermark: int, deadline_ms: int) -> None:
        """Let replicas that know a lower high watermark wait no longer than ``deadline_ms``."""
        self._hasten(deadline_ms, _known_high_watermark, high_watermark)

    def take_without_echo(self, stamp: ReadRound) -> list[HeldFetch]:
        """Voters that have not echoed the read round ``stamp``."""
        return self._take(lambda fetch: fetch.is_voter and fetch.request.read_round != stamp)

    def take_due(self, now_ms: int) -> list[HeldFetch]:
        """Those whose waiting time is over."""
        taken: list[HeldFetch] = []
        earliest_ms = NEVER_MS
        for fetch in self._held.values():
            if fetch.deadline_ms <= now_ms:
                taken.append(fetch)
            elif fetch.deadline_ms < earliest_ms:
                earliest_ms = fetch.deadline_ms
        self._remove(taken)
        self.earliest_ms = earliest_ms
        return taken

    def take_all(self) -> list[HeldFetch]:
        """Everything, for a leader that is one no longer."""
        return self._take(lambda _: True)

    def _hasten(self, deadline_ms: int, known: Callable[[FetchRequest], int], bound: int) -> None:
        """Shorten the wait of the replicas whose ``known`` is below ``bound``."""
        for fetch in self._held.values():
            if (
                fetch.deadline_ms > deadline_ms
                and not fetch.is_consumer
                and known(fetch.request) < bound
            ):
                fetch.deadline_ms = deadline_ms
                self.earliest_ms = min(self.earliest_ms, deadline_ms)

    def _take(self, is_ready: Callable[[HeldFetch], bool]) -> list[HeldFetch]:
        taken = [fetch for fetch in self._held.values() if is_ready(fetch)]
        self._remove(taken)
        return taken

    def _remove(self, taken: list[HeldFetch]) -> None:
        held = self._held
        if len(taken) == len(held):
            held.clear()
            self.earliest_ms = NEVER_MS
        else:
            for fetch in taken:
                del held[(fetch.sender, fetch.request.request_id)]
