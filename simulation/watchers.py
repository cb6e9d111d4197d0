"""Simulated watchers: each starts from a state or an offset, then receives every change.

A watch survives any number of broken streams. The server side is production code
(``quorate.services.watch_cursor`` and ``change_message``, ``quorate.replica.log_facts``). Simulated
are the stream, which carries one message at a time, and the worker that reads files, during which
the log may be trimmed or replaced. Watching changes nothing in a replica, so a run is the same with
and without watchers.

A watcher behaves as the client library does: it resumes behind the last change it received. If that
was trimmed, it begins again with the state of the node that refused it, or of another one that is
no further behind.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from history.history import Delivery, History
from quorate.services.change_message import CHANGE_BYTES_MAX
from quorate.services.errors import RequestRefusedError
from quorate.services.watch_cursor import WatchCursor
from quorum.errors import ErrorCode, QuorumUsageError, StorageError
from quorum.types import NodeId
from quorum.v1.errors_pb2 import DivergenceHint, OffsetBounds
from quorum.v1.metadata_pb2 import WatchResponse
from simulation.conversions import Conversion, Conversions
from simulation.invariants.violation import Violation
from simulation.log_readers import LogReaders
from simulation.node_choice import choose_node, leave_share
from simulation.population import Population
from simulation.record_digest import digest_of
from simulation.seeded_random import SeededRandom
from simulation.served import Served

WATCHERS = 3
TRAVEL_US = (50, 2_000)
READ_US = (100, 6_000)
"""How long a worker takes to read a file."""
LOOK_US = 15_000
"""Interval at which a watcher checks that its stream is still open."""
LEAVE_SHARE = 0.1
"""Share of these checks after which it leaves for another node."""
ANEW_SHARE = 0.2
"""Share of the departures after which a new watcher begins, from a state or an offset."""
PROGRESS_SHARE = 0.2
"""Share of the times without news at which the node sends progress."""


_BEHIND = (ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH)
"""Codes by which a node reports that it does not have the watcher's position yet."""


@dataclass(slots=True, eq=False)
class _Stream:
    """An open watch on one incarnation of one node."""

    node_id: NodeId
    incarnation: int
    served: Served
    cursor: WatchCursor
    is_busy: bool = False
    """Whether a read or a message for it is in progress."""
    leave: Callable[[], None] = lambda: None


class Watcher:
    """One of a fixed number of watchers; when one leaves for good, another replaces it."""

    def __init__(
        self,
        cluster: Population,
        history: History,
        rng: random.Random,
        place: int,
        conversions: Conversions,
    ) -> None:
        self._cluster = cluster
        self._history = history
        self._rng = rng
        self._place = place
        self._conversions = conversions
        self._generation = 0
        self._stream: _Stream | None = None
        self._deliveries = history.deliveries
        self._asks: NodeId | None = None
        """The node to ask next; None for any."""
        self.offset = -1
        self.epoch = -1
        self._least = 0
        """Minimum position of the state with which it begins again."""
        self._name = ""
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Replace it by a new watcher that wants the state, or all changes since some offset."""
        rng, log = self._rng, self._history.log
        self._generation += 1
        self._name = f"w{self._place}.{self._generation}"
        self.offset = self.epoch = -1
        self._least = 0
        if rng.random() < 0.5:
            batch = rng.choice(log[-20:]) if log and rng.random() < 0.8 else None
            self.offset = batch.end if batch is not None else 0
            self.epoch = batch.epoch if batch is not None else -1

    def connect(self) -> None:
        """Ask somebody."""
        node_id = self._asks
        if node_id is None:
            node_id = choose_node(self._cluster, self._rng)
        self._asks = None
        self._cluster.scheduler.after(self._rng.randint(*TRAVEL_US), self._arrive, node_id)

    def _again(self) -> None:
        """Connect again later: the stream is broken, or there is none."""
        if self._stream is not None:
            self._stream.leave()
            self._stream = None
        self._cluster.scheduler.after(self._rng.randint(1_000, 10_000), self.connect)

    # ------------------------------------------------------------------ the node

    def _arrive(self, node_id: NodeId) -> None:
        cluster, member = self._cluster, self._cluster.members[node_id]
        replica = member.replica
        if (
            replica is None
            or self._is_paused(node_id)
            or not cluster.network.reaches_client(node_id)
        ):
            self._again()
            return
        served = Served(replica)
        stream = _Stream(node_id, member.incarnation, served, WatchCursor(served))
        self._stream = stream
        cluster.scheduler.after(LOOK_US, self._look, stream)
        if self.offset < 0:
            chunks = list(stream.cursor.begin())
            cluster.run_observer.watched(node_id, stream.cursor.offset)
            stream.is_busy = True
            self._send(stream, self._receive_state, chunks)
        else:
            self._note("resume", self.offset, self.epoch)
            cluster.counts.watch_resumes += self.offset > 0
            try:
                stream.cursor.resume(self.offset, self.epoch)
            except RequestRefusedError as error:
                self._send(stream, self._receive_refusal, error)
                return
        stream.leave = replica.controller.subscribe(lambda _: self._wake(stream))
        self._wake(stream)

    def _is_paused(self, node_id: NodeId) -> bool:
        cluster = self._cluster
        until_us = cluster.members[node_id].paused_until_us
        return cluster.scheduler.now_us < until_us and not cluster.is_healed

    def _is_there(self, stream: _Stream) -> bool:
        """Return whether the stream is open: both ends run and can reach each other."""
        member = self._cluster.members[stream.node_id]
        return (
            self._stream is stream
            and member.replica is not None
            and member.incarnation == stream.incarnation
            and self._cluster.network.reaches_client(stream.node_id)
        )

    def _look(self, stream: _Stream) -> None:
        if self._stream is not stream:
            return
        is_over = not self._is_there(stream)
        if not is_over and not self._cluster.is_healed and self._wants_to_leave():
            is_over = True
            if self._rng.random() < ANEW_SHARE:
                self._begin_anew()
        if is_over:
            self._again()
        else:
            self._cluster.scheduler.after(LOOK_US, self._look, stream)

    def _wants_to_leave(self) -> bool:
        return self._rng.random() < leave_share(self._cluster, LEAVE_SHARE)

    def _wake(self, stream: _Stream) -> None:
        """Serve the stream later: a change was published, and steps are not interrupted."""
        if not stream.is_busy:
            stream.is_busy = True
            self._cluster.scheduler.after(self._rng.randint(0, 500), self._serve, stream)

    def _serve(self, stream: _Stream) -> None:
        """Read the next changes as the service does, unless they are known to be trimmed."""
        if not self._is_there(stream):
            self._lost(stream)
            return
        cursor, scheduler = stream.cursor, self._cluster.scheduler
        if self._is_paused(stream.node_id):
            scheduler.after(LOOK_US, self._serve, stream)
            return
        if not cursor.has_more:
            stream.is_busy = False
            if self._rng.random() < PROGRESS_SHARE:
                stream.is_busy = True
                self._send(stream, self._receive_progress, cursor.progress())
            return
        try:
            cursor.check_kept()
        except RequestRefusedError as error:
            self._cut_off(stream, error)
            return
        end_offset = cursor.visible_end(stream.served)
        found = stream.served.reading(cursor.offset, CHANGE_BYTES_MAX, end_offset)
        if isinstance(found, bytes):
            self._convert(stream, lambda: found)
        else:
            scheduler.after(self._rng.randint(*READ_US), self._convert, stream, found)

    def _convert(self, stream: _Stream, read: Callable[[], bytes]) -> None:
        if not self._is_there(stream):
            self._lost(stream)
            return
        cursor = stream.cursor
        try:
            try:
                conversion = self._conversions.of(read())
            except (StorageError, QuorumUsageError) as error:
                cursor.check_kept()
                self._failed(stream, error)
                return
            cursor.evaluate(conversion.changes)
        except RequestRefusedError as error:
            self._cut_off(stream, error)
            return
        self._cluster.run_observer.watched(stream.node_id, conversion.changes.end_offset)
        self._send(stream, self._receive, conversion)

    def _failed(self, stream: _Stream, error: Exception) -> None:
        """End the call with the error; the node goes on."""
        disk = self._cluster.members[stream.node_id].disk
        is_expected = disk.is_suspect or disk.files.is_latent
        if isinstance(error, QuorumUsageError) or not is_expected:
            raise Violation(
                "watch-served",
                "applied records cannot be read",
                node=stream.node_id,
                offset=stream.cursor.offset,
                error=repr(error),
            ) from error
        self._again()

    def _cut_off(self, stream: _Stream, error: RequestRefusedError) -> None:
        """End an open stream whose next changes were trimmed."""
        self._cluster.counts.watch_cut_off += 1
        self._send(stream, self._receive_refusal, error)

    def _send(self, stream: _Stream, deliver: Callable[..., None], *what: object) -> None:
        """Deliver a message if the stream is still open when it arrives."""
        cluster, rng = self._cluster, self._rng

        def arrive() -> None:
            if self._is_there(stream):
                deliver(stream, *what)
            else:
                self._lost(stream)

        if cluster.is_healed or rng.random() >= cluster.plan.loss:
            cluster.scheduler.after(rng.randint(*TRAVEL_US), arrive)
        else:
            cluster.scheduler.after(rng.randint(*TRAVEL_US), self._lost, stream)

    def _lost(self, stream: _Stream) -> None:
        """Break the stream after a lost message, even if the link works again at once."""
        if self._stream is stream:
            self._again()

    # ------------------------------------------------------------------ the watcher

    def _note(
        self, what: str, end: int, epoch: int = -1, *, base: int = -1, digest: str = ""
    ) -> None:
        self._deliveries.append(Delivery(self._name, what, end, base, epoch, digest))

    def _receive_state(self, stream: _Stream, chunks: list[WatchResponse]) -> None:
        last = chunks[-1].state
        if last.offset < self._least:
            # The node that refused it may be gone, and others may be behind.
            self._again()
            return
        self._cluster.counts.watch_states += 1
        values = [value for chunk in chunks for value in chunk.state.records]
        self.offset, self.epoch = last.offset, last.epoch
        self._note("state", last.offset, last.epoch, digest=digest_of(values))
        stream.is_busy = False
        self._wake(stream)

    def _receive_progress(self, stream: _Stream, response: WatchResponse) -> None:
        self._check_begun(stream)
        self._note("progress", response.progress.offset, response.progress.epoch)
        self._go_on(stream)

    def _receive(self, stream: _Stream, conversion: Conversion) -> None:
        self._check_begun(stream)
        for base, end, epoch, digest in conversion.batches:
            self._note("batch", end, epoch, base=base, digest=digest)
            self.offset, self.epoch = end, epoch
        self._cluster.counts.watch_changes += len(conversion.batches)
        stream.cursor.advance(conversion.changes)
        self._go_on(stream)

    def _check_begun(self, stream: _Stream) -> None:
        if self.offset < 0:
            raise Violation("watch-served", "changes before the state", node=stream.node_id)

    def _go_on(self, stream: _Stream) -> None:
        stream.is_busy = False
        if stream.cursor.has_more:
            self._wake(stream)

    def _receive_refusal(self, stream: _Stream, error: RequestRefusedError) -> None:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._cluster.counts.watch_restarts += 1
            self._asks = stream.node_id
            for detail in error.details:
                if isinstance(detail, DivergenceHint):
                    self._note("diverged", detail.offset, detail.epoch)
                elif isinstance(detail, OffsetBounds):
                    self._note("refused", detail.high_watermark, base=detail.earliest_offset)
                    self._least = max(self._least, self.offset, detail.earliest_offset)
            self.offset = self.epoch = -1
        elif error.code not in _BEHIND:
            raise Violation(
                "watch-served", "refused", node=stream.node_id, code=error.code.name
            ) from error
        self._again()


def watchers_of(
    cluster: Population, history: History, rng: random.Random, conversions: Conversions
) -> LogReaders:
    """All watchers of a cluster."""
    watchers = [
        Watcher(cluster, history, SeededRandom(rng.getrandbits(64)), place, conversions)
        for place in range(WATCHERS)
    ]
    return LogReaders(cluster, {each: each.connect for each in watchers}, 7_000)
