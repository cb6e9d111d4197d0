"""Positions that know little: short lineages, trimmed logs and seeks, over random epoch histories.

What a consumer reports is compared with the logs as lists: an exact offset is the true one, a bound
is at or above it, and there is no alarm where nothing that was read is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.client.errors import LogTruncationError, OffsetOutOfRangeError, RefusedError
from quorate.client.log_consumer import ResetPolicy
from quorate.client.positions import committed, position_message
from quorate.client.results.metadata import StateChunk
from quorum.errors import ErrorCode
from quorum.log_position import Divergence, Lineage, LogPosition
from quorum.types import OffsetAndEpoch
from quorum.v1.errors_pb2 import OffsetBounds
from quorum.v1.metadata_pb2 import CommittedPosition
from tests.support.consumer_world import REPLICAS, STEPS_MAX, World

COMMITTED = 2
"""Epochs of a committed position, in place of 128."""


class BoundedWorld(World):
    """Positions lose epochs on the way, and logs their beginnings."""

    exact = bounds = states = 0

    def copy(self, index: int, count: int) -> None:
        follower, leader = self.replicas[index], self.leader
        end = min(count, len(leader.records))
        same = [mine for mine, theirs in zip(follower.records, leader.records) if mine == theirs]
        kept = max(end, len(same))
        if follower is leader or follower.leads or kept <= leader.start.offset:
            return
        super().copy(index, count)
        at = follower.start.offset
        if len(same) < max(at, leader.start.offset):
            # A checkpoint has taken the place of all that it had.
            follower.start = leader.start
        elif at:
            follower.start = OffsetAndEpoch(at, follower.records[at - 1][0])

    def trim(self, index: int, offset: int) -> None:
        replica = self.replicas[index]
        if replica.start.offset < offset < len(replica.records):
            replica.start = OffsetAndEpoch(offset, replica.records[offset - 1][0])

    def commit_and_restart(self) -> None:
        """Begin again from the position as a server has stored it."""
        position = self.consumer.position
        assert position is not None
        sent = position_message("g", position, "")
        message = CommittedPosition(
            offset=sent.offset, leader_epoch=sent.leader_epoch, log_digest=sent.log_digest
        )
        for each in sent.epochs:
            message.epochs.add(
                epoch=each.epoch, start_offset=each.start_offset, log_digest=each.log_digest
            )
        found = committed(message, 0)
        assert found is not None
        self.consumer = self._consumer(found.position)

    def seek(self) -> None:
        """Go to the same place by offset and epoch alone."""
        position = self.consumer.position
        assert position is not None
        self.consumer.seek(position.offset, position.epoch)

    async def _answer(self, ask: Any) -> Any:
        try:
            return await super()._answer(ask)  # type: ignore[no-untyped-call]
        except RefusedError as error:
            start, end = self.leader.start.offset, len(self.leader.records)
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            bounds = OffsetBounds(earliest_offset=start, high_watermark=end)
            raise OffsetOutOfRangeError(error.text, bounds=bounds) from error

    async def read_state(
        self, *, at_least_offset: int, of_checkpoint: bool, typed: bool
    ) -> AsyncGenerator[StateChunk]:
        log = self.leader
        assert at_least_offset <= len(log.records), "no node has that state"
        assert of_checkpoint
        assert not typed
        yield StateChunk(
            offset=log.log_end.offset, epoch=log.log_end.epoch, is_last=True, records=[b""],
            log_digest=await log.log_digest(log.log_end.offset),
        )  # fmt: skip

    def poll(self) -> None:
        position, numbers = self.consumer.position, [n for _, n in self.leader.records]
        assert position is not None
        true = next(
            (at for at, pair in enumerate(zip(self.have, numbers)) if pair[0] != pair[1]),
            min(len(self.have), len(numbers)),
        )
        is_lost = true < len(self.have)
        try:
            records = asyncio.run(self.consumer.poll(max_wait_ms=0))
        except LogTruncationError as error:
            assert is_lost, "a false alarm"
            at = error.divergent_offset
            self._check(at, true, is_exact=error.is_exact)
            self._go_on(max(at, self.leader.start.offset), numbers)
            return
        except OffsetOutOfRangeError:
            assert position.offset < self.leader.start.offset
            self._go_on(self.leader.start.offset, numbers)
            return
        state = self.consumer.state
        if state is not None:
            self.states += 1
            assert position.offset < self.leader.start.offset or is_lost
            self.have = numbers[: state.offset]
            return
        moved = self.consumer.position
        assert moved is not None
        went_on = records[0].offset if records else moved.offset
        if went_on < position.offset:
            assert is_lost, "a false alarm"
            self._check(went_on, true, is_exact=False)
            self.have = numbers[:went_on]
        elif went_on > position.offset:
            # LATEST below the log start: the consumer has asked to skip.
            assert self.policy is ResetPolicy.LATEST
            assert position.offset < self.leader.start.offset
            self.have = numbers[:went_on]
        else:
            assert not (is_lost and records), "records behind a loss that was not noticed"
        for record in records:
            assert record.offset == len(self.have), "lost or doubled"
            self.have.append(int(record.value or b""))

    def _check(self, found: int, true: int, *, is_exact: bool) -> None:
        self.exact += is_exact
        self.bounds += not is_exact
        assert true <= found
        assert not is_exact or true == found

    def _go_on(self, offset: int, numbers: Sequence[int]) -> None:
        """As a program that was told: it seeks there without an epoch."""
        self.consumer = self._consumer(LogPosition(offset))
        self.have = list(numbers[:offset])


replicas = st.integers(0, REPLICAS - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("copy"), replicas, st.integers(0, 12)),
        st.tuples(st.just("elect"), replicas),
        st.tuples(st.just("poll")),
        st.tuples(st.just("poll")),
        st.tuples(st.just("commit_and_restart")),
        st.tuples(st.just("seek")),
        st.tuples(st.just("trim"), replicas, st.integers(1, 12)),
    ),
    max_size=STEPS_MAX,
)


def follow(policy: ResetPolicy, todo: Sequence[tuple[Any, ...]]) -> BoundedWorld:
    """The steps, then polls until the consumer has everything that the leader has."""
    world = BoundedWorld(policy)
    for name, *arguments in todo:
        getattr(world, name)(*arguments)
    for _ in range(2 * STEPS_MAX * 4):
        if world.have == [number for _, number in world.leader.records]:
            break
        world.poll()
    assert world.have == [number for _, number in world.leader.records]
    return world


@pytest.fixture(autouse=True)
def _short_lineages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.client.positions.COMMITTED_EPOCHS_MAX", COMMITTED)


@settings(max_examples=150, deadline=None)
@given(policy=st.sampled_from(ResetPolicy), todo=steps)
def test_an_offset_is_exact_or_a_bound_and_says_which(
    policy: ResetPolicy, todo: list[tuple[Any, ...]]
) -> None:
    follow(policy, todo)


DEEP = [
    ("append", 2), ("copy", 1, 2), ("elect", 1), ("append", 3),
    *[("elect", 0), ("append", 1), ("poll",), ("poll",)] * 5,
    ("commit_and_restart",), ("elect", 1), ("append", 9),
]  # fmt: skip
"""Six epochs were read and two are kept. Then the log has the first one, and one never read."""


def test_a_lineage_that_was_cut_gives_a_bound() -> None:
    world = follow(ResetPolicy.NONE, DEEP)
    assert (world.exact, world.bounds) == (0, 1)


def test_the_same_lineage_uncut_gives_the_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.client.positions.COMMITTED_EPOCHS_MAX", 128)
    world = follow(ResetPolicy.NONE, DEEP)
    assert (world.exact, world.bounds) == (1, 0)


def test_a_bound_that_is_called_exact_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model can fail."""
    walk = Lineage.walk

    def sure(lineage: Lineage, position: int, epoch: int, end_offset: int) -> Any:
        found: Divergence = yield from walk(lineage, position, epoch, end_offset)
        return found._replace(is_exact=True)

    monkeypatch.setattr(Lineage, "walk", sure)
    with pytest.raises(AssertionError):
        follow(ResetPolicy.NONE, DEEP)
