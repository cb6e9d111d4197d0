"""A consumer of a log that loses history, compared with the history that survived.

It is the client library's consumer, and asks any node: deposed leaders, replicas that lag, former
voters with their old directories.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NoReturn, cast

from quorate.client.batches import LogRecord
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
from quorum.batch import read_header
from quorum.errors import ErrorCode, QuorumUsageError, StorageError
from quorum.log_position import LogPosition
from quorum.types import Uuid
from quorum.v1.errors_pb2 import DivergenceHint, LeaderHint
from quorum.v1.metadata_pb2 import (
    FetchLogRequest,
    FetchLogResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from simulation.invariants.violation import Violation
from simulation.recoveries.counts import RecoveryCounts
from simulation.recoveries.read_history import FALSE_ALARM, SKIPPED, ReadHistory, batches_in
from simulation.recoveries.world import Node, World
from simulation.served import Served

RESTART_SHARE = 0.1
RESTART_SHARE_BETWEEN = 0.5
"""While a newer incarnation was met and the position is not verified in it yet."""

# What the consumer warns of is what the run causes.
logging.getLogger("quorate.client.log_consumer").addHandler(logging.NullHandler())


class _Calls:
    """The calls of a consumer, answered at once by a node of the present world."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.fetched: FetchLogResponse | None = None
        self.began = -1
        """Where the fetch of this poll began; -1 without one."""

    async def fetch_log(self, request: FetchLogRequest) -> results.FetchLogResponse:
        self.began = request.offset
        self.fetched = await self._ask(lambda reads: reads.fetch(request, "consumer"))
        self._reader.note(self.fetched.log_incarnation)
        return results.FetchLogResponse.of(self.fetched)

    async def list_offsets(
        self, timestamp: int, *, leader_epoch: int = -1
    ) -> results.ListOffsetsResponse:
        request = ListOffsetsRequest(timestamp=timestamp, current_leader_epoch=leader_epoch)
        found: ListOffsetsResponse = await self._ask(
            lambda reads: reads.list_offsets(request), to_leader=True
        )
        return results.ListOffsetsResponse.of(found)

    async def offset_for_leader_epoch(
        self, epoch: int, *, leader_epoch: int = -1, digest_offset: int | None = None
    ) -> results.OffsetForLeaderEpochResponse:
        request = OffsetForLeaderEpochRequest(
            leader_epoch=epoch, current_leader_epoch=leader_epoch, digest_offset=digest_offset
        )
        found: OffsetForLeaderEpochResponse = await self._ask(
            lambda reads: reads.offset_for_leader_epoch(request), to_leader=True
        )
        self._reader.note(found.log_incarnation)
        return results.OffsetForLeaderEpochResponse.of(found)

    def read_state(self, **_: object) -> AsyncGenerator[results.StateChunk]:
        raise Violation(SKIPPED, "a state was wanted, and nothing was trimmed")

    async def _ask(
        self, ask: Callable[[LogReads], Awaitable[Any]], *, to_leader: bool = False
    ) -> Any:
        node = self._reader.node(to_leader=to_leader)
        reads = LogReads(cast("ServedNode", Served(node.running)), Gate("fetches", 1))
        try:
            return await ask(reads)
        except RequestRefusedError as error:
            is_former = error.code is ErrorCode.LOG_INCARNATION_MISMATCH
            self._reader.note_refusal(is_former=is_former)
            raise_as_client(error)
        except (StorageError, QuorumUsageError) as error:
            raise UnavailableError(str(error)) from error


def raise_as_client(error: RequestRefusedError) -> NoReturn:
    """Raise what the client library raises after it retried elsewhere in vain."""
    leader = next((each for each in error.details if isinstance(each, LeaderHint)), None)
    divergence = next((each for each in error.details if isinstance(each, DivergenceHint)), None)
    refused = RefusedError(int(error.code), str(error), leader=leader)
    if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and divergence is None:
        raise OffsetOutOfRangeError(str(error)) from error
    raise (UnavailableError(str(error)) if may_ask_again(refused) else refused) from error


class Reader:
    """One consumer, in one process after another."""

    def __init__(self, policy: ResetPolicy, rng: random.Random, counts: RecoveryCounts) -> None:
        self._policy = policy
        self._rng = rng
        self._counts = counts
        self._world: World
        self.history = ReadHistory("consumer")
        self._asked: Node | None = None
        """Asked next, in place of any node."""
        self._truncated_in = 0
        """The incarnation in which the last truncation was reported, as such a place."""
        self._open(LogPosition(0))

    def meet(
        self, world: World, incarnation: Uuid, kept: Mapping[int, bytes] | None = None
    ) -> None:
        """Go on in another world; ``kept``: the log of a recovery that began it."""
        self._world = world
        if kept is not None:
            self.history.begin(incarnation, kept)

    def node(self, *, to_leader: bool) -> Node:
        """Return the node to ask; the client library finds one that leads, as far as it knows.

        Raises:
            UnavailableError: None leads.
        """
        if self._asked is not None and not to_leader:
            return self._asked
        nodes = list(self._world.nodes.values())
        if to_leader:
            nodes = [each for each in nodes if each.running.node.is_leader]
        if not nodes:
            raise UnavailableError("no leader")
        found = self._rng.choice(nodes)
        self._counts.deposed_asked += found.node_id in self._world.isolated
        return found

    def poll(self) -> None:
        """Poll once, and check what comes of it.

        Raises:
            Violation: A record is skipped, or a truncation is not what was lost.
        """
        position = self._consumer.position
        if position is not None and self._rng.random() < self._restart_share(position):
            self._open(LogPosition.from_json(position.to_json()))
        before = self._offset()
        try:
            records = self._run_poll()
        except LogTruncationError as error:
            lost = error.truncation_offsets()["__cluster_metadata", 0]
            self._truncated(lost.offset, before, is_exact=lost.is_exact)
            self._consumer.seek(error.divergent_offset, error.divergent_epoch)
            return
        except OffsetOutOfRangeError as error:
            raise Violation(
                FALSE_ALARM, "a position was called out of range", error=str(error)
            ) from error
        except ClientError:
            # It may have moved before this.
            records = []
        began, after = self._calls.began, self._offset()
        if 0 <= began < before:
            # The truncation was found before the fetch, which went on from there.
            self._truncated(began, before)
            before = began
        if after < before:
            self._truncated(after, before)
        elif after > before:
            self._take(before, after, [each.offset for each in records])

    def meet_both(self, recovered: Node, former: Node) -> None:
        """Meet the recovered cluster; the process ends, and the next one asks a former voter.

        A new process knows no leader epoch, so the former leader's fences none of its requests.
        """
        for self._asked in (recovered, former):
            position = self._consumer.position
            if position is not None:
                self._open(LogPosition.from_json(position.to_json()))
            self.poll()
        self._asked = None

    def note(self, incarnation: Uuid) -> None:
        """Note which incarnation an answer named."""
        self.history.meet(self.history.place(incarnation))

    def note_refusal(self, *, is_former: bool) -> None:
        """Count the refusals of former voters."""
        self._counts.former_refusals += is_former

    def _open(self, position: LogPosition) -> None:
        place = self.history.place(position.log_incarnation)
        # The position is all that is left of a process, so it has to name the newest one met.
        self.history.meet(max(place, self._truncated_in))
        self._calls = _Calls(self)
        self._consumer = LogConsumer(self._calls, reset=self._policy, position=position)

    def _restart_share(self, position: LogPosition) -> float:
        is_between = self.history.place(position.log_incarnation) < self.history.met
        return RESTART_SHARE_BETWEEN if is_between else RESTART_SHARE

    def _offset(self) -> int:
        position = self._consumer.position
        return -1 if position is None else position.offset

    def _run_poll(self) -> list[LogRecord]:
        self._calls.fetched, self._calls.began = None, -1
        try:
            self._consumer.poll(max_wait_ms=0).send(None)
        except StopIteration as done:
            records: list[LogRecord] = done.value
            return records
        raise AssertionError("a service waits for something, in a simulated call")

    def _truncated(self, offset: int, read_to: int, *, is_exact: bool = True) -> None:
        self.history.truncate(offset, read_to, is_exact=is_exact)
        self._counts.truncations += 1
        self._truncated_in = self.history.met

    def _take(self, before: int, after: int, handed_out: list[int]) -> None:
        fetched = self._calls.fetched
        if fetched is None:
            raise Violation(SKIPPED, "the position moved without a fetch", read_to=after)
        incarnation = self.history.place(fetched.log_incarnation)
        found = batches_in(fetched.records, incarnation)
        taken = [each for each in found if before <= each.base < after]
        stored = [
            offset
            for each in taken
            if not read_header(each.data).is_control
            for offset in range(each.base, each.end)
        ]
        self.history.take(taken, after, incarnation)
        if handed_out != stored:
            raise Violation(SKIPPED, "records were not handed out", stored=stored, got=handed_out)
        self._counts.batches_read += len(taken)
