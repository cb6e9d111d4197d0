"""A consumer over random epoch histories, compared with the log as a list.

Replicas copy from a leader and cut diverging records, as KIP-279 describes. Any replica may be the
next leader, so records that were read may be lost, as in an unsafe recovery. The consumer and the
code that answers it are production code. The consumer also asks deposed leaders that do not know it
yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pytest

from quorate.client.batches import LogRecord
from quorate.client.errors import LogTruncationError, RefusedError, UnavailableError
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.results import (
    FetchLogResponse,
    ListOffsetsResponse,
    OffsetForLeaderEpochResponse,
)
from quorate.services.admission import Gate
from quorate.services.errors import RequestRefusedError
from quorate.services.log_reads import LogReads
from quorate.services.ports import Leadership
from quorum.batch import encode_batch
from quorum.core.positions.epoch_history import EpochHistory
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.errors import ErrorCode
from quorum.log_position import EpochEntry, LogPosition
from quorum.types import LOG_BEGINNING, EpochStart, OffsetAndEpoch
from quorum.v1 import metadata_pb2
from tests.support.served_node import FakeNode, SharedLog

REPLICAS = 3
STEPS_MAX = 40


class Replica(FakeNode):
    """One replica's log: per offset the epoch and a unique number."""

    def __init__(self, node_id: int) -> None:
        super().__init__(SharedLog(), node_id)
        self.records: list[tuple[int, int]] = []
        self.known_epoch = 0
        self.leads = False
        self.start = LOG_BEGINNING

    @property
    def leadership(self) -> Leadership:
        return Leadership(self.node_id if self.leads else -1, self.known_epoch)

    @property
    def is_leader(self) -> bool:
        return self.leads

    @property
    def log_start(self) -> OffsetAndEpoch:
        return self.start

    @property
    def log_end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(len(self.records), self.records[-1][0] if self.records else 0)

    @property
    def high_watermark(self) -> int:
        return len(self.records)

    @property
    def leader_epoch_start(self) -> int:
        return -1

    def batches(self, end_offset: int) -> list[bytes]:
        return [
            encode_batch([b"%d" % number], base_offset=at, epoch=epoch, timestamp=at)
            for at, (epoch, number) in enumerate(self.records[:end_offset])
        ]

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        return b"".join(self.batches(end_offset)[offset:][:3])

    async def log_digest(self, offset: int) -> bytes:
        return reduce(fold, self.batches(offset), EMPTY_LOG_DIGEST)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        starts: dict[int, int] = {}
        for offset, (written_in, _) in enumerate(self.records):
            starts.setdefault(written_in, offset)
        entries = [EpochStart(*entry) for entry in starts.items()]
        history = EpochHistory(self.start, entries, len(self.records))
        return history.end_offset_for_epoch(epoch, len(self.records))

    def copy_from(self, leader: Replica, end: int) -> None:
        """Cut diverging records, then copy records up to ``end``."""
        same = [mine for mine, theirs in zip(self.records, leader.records) if mine == theirs]
        self.records = leader.records[: max(end, len(same))]


@dataclass
class World:
    """Three replicas, and one consumer that asks the leader."""

    policy: ResetPolicy
    replicas: list[Replica] = field(
        default_factory=lambda: [Replica(node_id) for node_id in range(REPLICAS)]
    )
    epoch: int = 0
    numbers: int = 0
    asked: Replica | None = None
    have: list[int] = field(default_factory=list)
    """Delivered records that were not reported as lost, by offset."""

    def __post_init__(self) -> None:
        self.consumer = self._consumer(LogPosition(0))
        self.elect(0)

    def _consumer(self, position: LogPosition) -> LogConsumer:
        return LogConsumer(self, reset=self.policy, position=position)  # type: ignore[arg-type]  # the three calls it makes

    @property
    def leader(self) -> Replica:
        return max((r for r in self.replicas if r.leads), key=lambda r: r.known_epoch)

    def elect(self, index: int, *, is_advertised: bool = True) -> None:
        """Begin the next epoch; the former leader may not learn of it."""
        for replica in self.replicas:
            replica.leads = replica.leads and not is_advertised
        self.epoch += 1
        chosen = self.replicas[index]
        chosen.leads, chosen.known_epoch = True, self.epoch
        self.append(1)

    def append(self, count: int) -> None:
        for _ in range(count):
            self.numbers += 1
            self.leader.records.append((self.epoch, self.numbers))

    def copy(self, index: int, count: int) -> None:
        follower, leader = self.replicas[index], self.leader
        if follower is not leader and not follower.leads:
            follower.copy_from(leader, min(count, len(leader.records)))

    # requests of the consumer

    async def fetch_log(self, request):
        found = await self._answer(lambda reads: reads.fetch(request, "consumer"))
        return FetchLogResponse.of(found)

    async def list_offsets(self, timestamp, *, leader_epoch=-1):
        request = metadata_pb2.ListOffsetsRequest(
            timestamp=timestamp, current_leader_epoch=leader_epoch
        )
        return ListOffsetsResponse.of(await self._answer(lambda reads: reads.list_offsets(request)))

    async def offset_for_leader_epoch(self, epoch, *, leader_epoch=-1, digest_offset=None):
        request = metadata_pb2.OffsetForLeaderEpochRequest(
            leader_epoch=epoch, current_leader_epoch=leader_epoch, digest_offset=digest_offset
        )
        return OffsetForLeaderEpochResponse.of(
            await self._answer(lambda reads: reads.offset_for_leader_epoch(request))
        )

    async def _answer(self, ask):
        try:
            return await ask(LogReads(self.asked or self.leader, Gate("fetches", 1)))
        except RequestRefusedError as error:
            if error.code is ErrorCode.UNKNOWN_LEADER_EPOCH:
                raise UnavailableError(str(error)) from error
            hint = next((d for d in error.details if hasattr(d, "leader_epoch")), None)
            raise RefusedError(int(error.code), str(error), leader=hint) from error

    # actions of the consumer

    def poll(self) -> None:
        """Read the leader's records; the consumer must find every loss, and no false one."""
        position, log = self.consumer.position, self.leader.records
        assert position is not None
        numbers = [number for _, number in log]
        true = next(
            (at for at, pair in enumerate(zip(self.have, numbers)) if pair[0] != pair[1]),
            min(len(self.have), len(numbers)),
        )
        records, error = self._poll()
        if error is not None:
            assert (error.divergent_offset, error.is_exact) == (true, True)
            epoch = error.divergent_epoch
            self.consumer = self._consumer(LogPosition(true, epoch, self._epochs(true)))
            self._lose(true)
            return
        moved = self.consumer.position
        assert moved is not None
        went_on = records[0].offset if records else moved.offset
        if went_on < position.offset:
            assert went_on == true
            self._lose(true)
        for record in records:
            assert record.offset == len(self.have), "lost or doubled"
            self.have.append(int(record.value or b""))

    def _poll(self) -> tuple[list[LogRecord], LogTruncationError | None]:
        try:
            return asyncio.run(self.consumer.poll(max_wait_ms=0)), None
        except LogTruncationError as error:
            return [], error

    def _epochs(self, end: int) -> tuple[EpochEntry, ...]:
        position = self.consumer.position
        return tuple(e for e in (position.epochs if position else ()) if e.start_offset < end)

    def _lose(self, true: int) -> None:
        assert true < len(self.have), "a false alarm"
        del self.have[true:]

    def poll_replaced(self, index: int) -> None:
        """Ask a replica that still leads an older epoch than the consumer has read."""
        replica, position = self.replicas[index], self.consumer.position
        assert position is not None
        if not replica.leads or replica.known_epoch >= position.epoch:
            return
        self.asked = replica
        with pytest.raises(UnavailableError):
            asyncio.run(self.consumer.poll(max_wait_ms=0))
        self.asked = None
        assert self.consumer.position == position

    def restart(self) -> None:
        """Restart the consumer from its stored position."""
        position = self.consumer.position
        assert position is not None
        self.consumer = self._consumer(position)


def follow(policy: ResetPolicy, todo: Sequence[tuple[Any, ...]]) -> None:
    """The steps, then polls until the consumer has the leader's whole log."""
    world = World(policy)
    for name, *arguments in todo:
        if name == "elect_untold":
            world.elect(*arguments, is_advertised=False)
        else:
            getattr(world, name)(*arguments)
    for _ in range(2 * STEPS_MAX * 4):
        if world.have == [number for _, number in world.leader.records]:
            break
        world.poll()
    assert world.have == [number for _, number in world.leader.records]
