"""Simulated log consumers: each reads from any node, including a deposed leader.

The client library's consumer (``quorate.client.log_consumer``) and the service that answers it
(``quorate.services.log_reads``) are production code. The calls between them are simulated and may
get lost. Reading changes nothing in a replica, so a run is the same with and without consumers.

Everything that a consumer reads is committed, so the log contains it for ever. No consumer may get
a truncation error, and none may go back. It skips offsets only where some node's log begins behind
them. At the end of the run, the records it read are compared with the log, as for watchers.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any, cast

from history.history import Delivery, History
from quorate.client.caller import may_ask_again
from quorate.client.errors import (
    ClientError,
    LogTruncationError,
    OffsetOutOfRangeError,
    RefusedError,
    UnavailableError,
)
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.results import metadata as results
from quorate.services.admission import Gate
from quorate.services.errors import RequestRefusedError
from quorate.services.log_reads import LogReads
from quorate.services.ports import ServedNode
from quorum.errors import ErrorCode, QuorumUsageError, StorageError
from quorum.log_position import LogPosition
from quorum.types import NodeId
from quorum.v1.errors_pb2 import LeaderHint
from quorum.v1.metadata_pb2 import (
    FetchLogRequest,
    FetchLogResponse,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    StateChunk,
)
from simulation.consumer_states import read_state
from simulation.conversions import Conversions
from simulation.invariants.violation import Violation
from simulation.log_readers import LogReaders
from simulation.node_choice import choose_node, leave_share
from simulation.population import Population
from simulation.seeded_random import SeededRandom
from simulation.served import Served

NAME = "log-consumers"
"""The invariant that violations found here are reported under."""
CONSUMERS = 1
TRAVEL_US = (50, 2_000)
PAUSE_US = (10_000, 30_000)
"""Pause between two polls that returned nothing."""
RETRY_US = (1_000, 10_000)
LEAVE_SHARE = 0.2
"""Share of the polls before which the consumer chooses another node."""
RESTART_SHARE = 0.1
"""Share of the polls before which the consumer resumes its stored position at another node."""
ANEW_SHARE = 0.02
"""Share of the polls before which a new consumer replaces this one."""

# The checks here cover the consumer's warnings; without a handler they would go to stderr.
logging.getLogger("quorate.client.log_consumer").addHandler(logging.NullHandler())


class _Call:
    """A call that the consumer awaits: yields itself, and is resumed with the answer."""

    def __init__(self, ask: Callable[[LogReads], Awaitable[Any]], offset: int = -1) -> None:
        self.ask = ask
        self.offset = offset
        """Offset that it fetches from; -1 for other calls."""

    def __await__(self) -> Generator[_Call, Any, Any]:
        return (yield self)


class _Calls:
    """The calls of a consumer, sent to the node that its owner chooses."""

    def __init__(self, cluster: Population) -> None:
        self._cluster = cluster

    async def fetch_log(self, request: FetchLogRequest) -> results.FetchLogResponse:
        """As ``Queries.fetch_log``."""
        call = _Call(lambda reads: reads.fetch(request, "consumer"), request.offset)
        return results.FetchLogResponse.of(await call)

    async def list_offsets(
        self, timestamp: int, *, leader_epoch: int = -1
    ) -> results.ListOffsetsResponse:
        """As ``Queries.list_offsets``."""
        request = ListOffsetsRequest(timestamp=timestamp, current_leader_epoch=leader_epoch)
        found = await _Call(lambda reads: reads.list_offsets(request))
        return results.ListOffsetsResponse.of(found)

    async def offset_for_leader_epoch(
        self, epoch: int, *, leader_epoch: int = -1, digest_offset: int | None = None
    ) -> results.OffsetForLeaderEpochResponse:
        """As ``Queries.offset_for_leader_epoch``."""
        request = OffsetForLeaderEpochRequest(
            leader_epoch=epoch, current_leader_epoch=leader_epoch, digest_offset=digest_offset
        )
        found = await _Call(lambda reads: reads.offset_for_leader_epoch(request))
        return results.OffsetForLeaderEpochResponse.of(found)

    async def read_state(
        self, *, at_least_offset: int, **_: bool
    ) -> AsyncGenerator[results.StateChunk]:
        """As ``Client.read_state``, in one call; consumers always want that of a checkpoint."""
        chunks: list[StateChunk] = await _Call(
            lambda reads: read_state(self._cluster, reads, at_least_offset)
        )
        if chunks[0].offset < at_least_offset:
            raise UnavailableError(f"a state at {chunks[0].offset}, and not {at_least_offset}")
        for chunk in chunks:
            yield results.StateChunk.of(chunk)


class Consumer:
    """One of a fixed number of consumers; when one leaves for good, another replaces it."""

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
        self._names = 0
        self._name = ""
        self._node_id: NodeId = -1
        self._poll: Coroutine[Any, Any, Any]
        self._is_gone = False
        """Whether a node whose log begins above the position refused this poll."""
        self._read_end = -1
        """End of the records that this poll returned; -1 for none."""
        self.offset = -1
        """Everything below was read or had been trimmed; -1 before the first reset."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Replace this consumer by a new one, at a log position or as its reset policy says."""
        rng, log = self._rng, self._history.log
        policy = rng.choice(tuple(ResetPolicy))
        position = None
        if log and rng.random() < 0.7:
            batch = rng.choice(log[-20:])
            position = LogPosition(batch.end, batch.epoch)
        elif policy is ResetPolicy.NONE:
            position = LogPosition(0)
        self._policy = policy
        self._open(position)

    def _open(self, position: LogPosition | None) -> None:
        self._consumer = LogConsumer(_Calls(self._cluster), reset=self._policy, position=position)
        self.offset = -1 if position is None else position.offset
        self._resume()

    def _resume(self) -> None:
        """Start a new contiguous range of reads."""
        self._names += 1
        self._name = f"l{self._place}.{self._names}"
        if self.offset >= 0:
            self._history.deliveries.append(Delivery(self._name, "resume", self.offset))

    # ------------------------------------------------------------------ polls

    def poll(self) -> None:
        """Poll for the next records, perhaps as another consumer or from another node."""
        rng = self._rng
        if not self._cluster.is_healed:
            roll = rng.random()
            if roll < ANEW_SHARE:
                self._begin_anew()
            elif roll < ANEW_SHARE + RESTART_SHARE:
                self._restart()
        if self._node_id < 0 or rng.random() < leave_share(self._cluster, LEAVE_SHARE):
            self._node_id = choose_node(self._cluster, rng)
        # A state of several parts takes several polls.
        self._is_gone &= self._consumer.state is not None
        self._poll = self._consumer.poll(max_wait_ms=0)
        self._go_on(self._poll.send, None)

    def _restart(self) -> None:
        """Resume from the stored position, as a new process or in the same one.

        The position includes the epoch of the last record read: without it no node could tell
        whether the position belongs to its log.
        """
        position = self._consumer.position
        if position is None or position.epoch < 0:
            return
        roll = self._rng.random()
        self._node_id = -1
        if roll < 0.6:
            # Looked up at once, at the node that is chosen next.
            self._consumer.seek(position.offset, position.epoch)
        elif roll < 0.8:
            self._open(LogPosition(position.offset, position.epoch))
        else:
            self._open(position)

    def _go_on(self, step: Callable[[Any], _Call], what: object) -> None:
        """Run the consumer until it makes a call or the poll is over."""
        try:
            call = step(what)
        except StopIteration:
            self._polled()
        except LogTruncationError as error:
            raise Violation(
                NAME,
                "the consumer was told that records it read were truncated",
                consumer=self._name,
                error=str(error),
            ) from error
        except OffsetOutOfRangeError as error:
            self._require_gone(str(error))
            self._begin_anew()
            self._later(RETRY_US, self.poll)
        except ClientError:
            self._node_id = -1
            self._later(RETRY_US, self.poll)
        else:
            self._later(TRAVEL_US, self._arrive, call)

    def _polled(self) -> None:
        position, before = self._consumer.position, self.offset
        self.offset = -1 if position is None else position.offset
        if self.offset < before:
            raise Violation(
                NAME, "went back", consumer=self._name, read=before, goes_on=self.offset
            )
        read = self._read_end
        self._read_end = -1
        if self.offset != read and self.offset != before:
            if before >= 0:
                self._require_gone(f"moved from {before} to {self.offset}")
                self._require_state(before)
                self._cluster.counts.log_resets += 1
            self._resume()
        self._later(RETRY_US if read >= 0 else PAUSE_US, self.poll)

    def _require_gone(self, what: str) -> None:
        if not self._is_gone:
            raise Violation(
                NAME,
                "a position was abandoned although no log had lost it",
                consumer=self._name,
                what=what,
            )

    def _require_state(self, before: int) -> None:
        """Require that a consumer that wants everything got the state behind which it goes on."""
        state = self._consumer.state
        got = -1 if state is None or not state.is_last else state.offset
        if self._policy is ResetPolicy.EARLIEST and got != self.offset:
            raise Violation(
                NAME,
                "records were skipped, and no state was handed out for them",
                consumer=self._name,
                read=before,
                goes_on=self.offset,
            )

    def _later(self, pause_us: tuple[int, int], call: Callable[..., None], *what: object) -> None:
        self._cluster.scheduler.after(self._rng.randint(*pause_us), call, *what)

    # ------------------------------------------------------------------ the node

    def _arrive(self, call: _Call) -> None:
        cluster, node_id = self._cluster, self._node_id
        member = cluster.members[node_id]
        if member.replica is None or self._is_paused(node_id) or self._is_lost():
            self._later(RETRY_US, self._fail, UnavailableError("no answer"))
            return
        served = Served(member.replica)
        try:
            reads = LogReads(cast("ServedNode", served), Gate("fetches", 1))
            answer = _at_once(call.ask(reads))
        except RequestRefusedError as error:
            self._is_gone |= 0 <= self.offset < served.log_start.offset
            self._later(TRAVEL_US, self._fail, self._refusal(error))
            return
        except (StorageError, QuorumUsageError) as error:
            self._check_disk(error)
            self._later(TRAVEL_US, self._fail, UnavailableError(str(error)))
            return
        if isinstance(answer, FetchLogResponse) and answer.records:
            try:
                end = self._conversions.of(answer.records).batches[-1].end_offset
            except StorageError as error:
                self._check_disk(error)
                self._later(TRAVEL_US, self._receive_damaged, answer)
                return
            cluster.run_observer.watched(node_id, end)
        self._later(TRAVEL_US, self._receive, call, answer)

    def _is_paused(self, node_id: NodeId) -> bool:
        cluster = self._cluster
        until_us = cluster.members[node_id].paused_until_us
        return cluster.scheduler.now_us < until_us and not cluster.is_healed

    def _is_lost(self) -> bool:
        cluster = self._cluster
        if not cluster.network.reaches_client(self._node_id):
            return True
        return not cluster.is_healed and self._rng.random() < cluster.plan.loss

    def _refusal(self, error: RequestRefusedError) -> ClientError:
        """Return the error that the client library raises after it retried elsewhere in vain."""
        details = error.details
        leader = next((each for each in details if isinstance(each, LeaderHint)), None)
        refused = RefusedError(int(error.code), str(error), leader=leader)
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return OffsetOutOfRangeError(str(error))
        return UnavailableError(str(error)) if may_ask_again(refused) else refused

    def _check_disk(self, error: Exception) -> None:
        """Require that the node's disk explains why the records cannot be read.

        Raises:
            Violation: The disk is intact, or the service was called wrongly.
        """
        disk = self._cluster.members[self._node_id].disk
        if isinstance(error, QuorumUsageError) or not (disk.is_suspect or disk.files.is_latent):
            raise Violation(
                NAME,
                "what is committed cannot be read",
                node=self._node_id,
                consumer=self._name,
                error=repr(error),
            ) from error

    # ------------------------------------------------------------------ the consumer

    def _fail(self, error: ClientError) -> None:
        self._go_on(self._poll.throw, error)

    def _receive(self, call: _Call, answer: object) -> None:
        counts = self._cluster.counts
        if self._is_lost():
            self._fail(UnavailableError("no answer"))
            return
        if isinstance(answer, FetchLogResponse):
            if self.offset < 0:
                # Its reset policy has just chosen this position.
                self.offset = call.offset
                self._resume()
            for base, end, epoch, digest in self._conversions.of(answer.records).batches:
                counts.log_batches += 1
                self._read_end = end
                self._history.deliveries.append(
                    Delivery(self._name, "batch", end, base, epoch, digest)
                )
        elif isinstance(answer, OffsetForLeaderEpochResponse):
            counts.log_lookups += 1
        self._go_on(self._poll.send, answer)

    def _receive_damaged(self, answer: FetchLogResponse) -> None:
        """Deliver an answer with a bit flipped on the node's disk; the consumer must refuse it."""
        before = self._consumer.position
        self._go_on(self._poll.send, answer)
        if self._consumer.position != before:
            raise Violation(
                NAME, "the consumer accepted damaged records", consumer=self._name, read=before
            )


def consumers_of(
    cluster: Population, history: History, rng: random.Random, conversions: Conversions
) -> LogReaders:
    """All consumers of a cluster."""
    consumers = [
        Consumer(cluster, history, SeededRandom(rng.getrandbits(64)), place, conversions)
        for place in range(CONSUMERS)
    ]
    return LogReaders(cluster, {each: each.poll for each in consumers}, 9_000)


def _at_once(answer: Awaitable[Any]) -> Any:
    """Return a service's answer, which must be ready without waiting."""
    try:
        answer.__await__().send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a service waits for something, in a simulated call")
