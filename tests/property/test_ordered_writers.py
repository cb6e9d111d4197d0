"""Named, ordered writers of several processes against a cluster with faults, seed by seed (360.6).

Everything runs on virtual time in one thread, so a seed gives one run. Its number is in the name of
the test. Promises:

- an epoch begins within ``PATIENCE`` of the last fault, or the process was replaced for good;
- what was applied is in the log, what was refused or never sent is not;
- a process's writes are in the log in the order of their submission, each once;
- behind a write that failed, none of that epoch is applied;
- once the name was taken, no former process writes;
- without faults every write is applied, whatever became of the epoch before.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from quorate.client import (
    ClientError,
    OutcomeUnknownError,
    PrecedingWriteFailedError,
    ProducerFencedError,
    RefusedError,
    UnavailableError,
)
from quorate.client.writer import Writer
from quorum.errors import ErrorCode
from simulation.harness.virtual_loop import run_virtually
from tests.support.writer_world import NAME, STALL_SECONDS, Write, WriterWorld, setting

SEEDS = range(60)
PATIENCE = 30.0
"""Virtual seconds."""
NOT_APPLIED = (RefusedError, PrecedingWriteFailedError, UnavailableError)


class Process:
    """A process of the name: rounds of writes, and an epoch begun behind each."""

    def __init__(self, world: WriterWorld, number: int, name: str = NAME) -> None:
        self.world = world
        self.number = number
        self.writes: list[Write] = []
        self.began_at: list[int] = []
        """Values in the log when this process first held the name."""
        self.is_fenced = False
        self._writer: Writer = world.writer(name=name)
        self._epoch = 0

    async def run(self, rounds: int) -> None:
        for _ in range(rounds):
            if self.is_fenced:
                return
            await self.write_some()
            await self.begin_epoch()

    async def write_some(self) -> None:
        rng, first = self.world.rng, len(self.writes)
        for _ in range(rng.randint(1, 60)):
            self.submit(
                self._value(is_valid=rng.random() > 0.03),
                0.05 if rng.random() < 0.02 else PATIENCE,
                dry_run=rng.random() < 0.03,
            )
            if rng.random() < 0.05:
                await asyncio.sleep(rng.random() * 0.05)
            if rng.random() < 0.03 and len(self.writes) > first:
                rng.choice(self.writes[first:]).done.cancel()
        if rng.random() < 0.7:
            ends = [each.done for each in self.writes[first:]]
            await asyncio.gather(*ends, return_exceptions=True)

    def _value(self, *, is_valid: bool = True) -> str:
        return ("" if is_valid else "x") + str(1_000_000 * self.number + len(self.writes))

    def submit(self, value: str, seconds: float, *, dry_run: bool = False) -> None:
        done = self._writer.submit(setting(value, dry_run=dry_run), seconds)
        if dry_run:
            done.add_done_callback(lambda each: each.cancelled() or each.exception())
        else:
            self.writes.append(Write(value, self._epoch, done))

    async def begin_epoch(self) -> None:
        """Begin one, faults or none; it must not take longer than the patience."""
        try:
            await self._writer.begin_epoch(PATIENCE)
        except ProducerFencedError:
            self.is_fenced = True
        except OutcomeUnknownError:
            raise
        except ClientError as error:
            if "takes the name already" not in str(error):
                raise
        self._epoch += 1

    async def close(self) -> None:
        await self._writer.close()

    # ------------------------------------------------------------------ promises

    def check(self, written: list[str]) -> None:
        own = [each for each in written if int(each) // 1_000_000 == self.number]
        submitted = [each.value for each in self.writes if each.value in set(own)]
        assert own == submitted, "in order, each once"
        for each in self.writes:
            assert each.done.done(), f"{each.value} has no end"
            is_there, error = each.value in set(own), each.error
            if isinstance(error, NOT_APPLIED):
                assert not is_there, f"{each.value} is applied, and ended with {error!r}"
            elif error is None and not each.done.cancelled():
                assert is_there, f"{each.value} is not applied, and was acknowledged"
            if type(error) is RefusedError:
                assert error.code == ErrorCode.INVALID_CONFIG, error
        self._check_failures(set(own))

    def _check_failures(self, own: set[str]) -> None:
        for epoch in {each.epoch for each in self.writes}:
            failed = None
            for each in (each for each in self.writes if each.epoch == epoch):
                if failed is not None:
                    assert each.value not in own, f"{each.value} is applied behind {failed}"
                if isinstance(each.error, NOT_APPLIED):
                    failed = each.value


async def scenario(seed: int) -> tuple[Counter[str], dict[str, int]]:
    """Two or three processes take the name from one another; at last a new one has it."""
    world = WriterWorld(seed)
    trouble = asyncio.ensure_future(world.trouble())
    processes = [Process(world, number) for number in range(1, world.rng.randint(2, 4))]
    running: list[asyncio.Task[None]] = []
    for process in processes:
        running.append(asyncio.ensure_future(process.run(world.rng.randint(2, 5))))
        await asyncio.sleep(world.rng.random() * 3)
    await asyncio.gather(*running)
    world.heal()
    for process in processes:
        if not process.is_fenced:
            await process.begin_epoch()
    last = Process(world, 9)
    await last.begin_epoch()
    before = len(world.written())
    for process in processes:
        process.submit(process._value(), PATIENCE)
    for _ in range(3):
        for _ in range(40):
            last.submit(last._value(), PATIENCE)
        await asyncio.gather(*(each.done for each in last.writes))
        await last.begin_epoch()
    await asyncio.gather(
        *(each.done for process in processes for each in process.writes), return_exceptions=True
    )
    trouble.cancel()
    written = world.written()
    for process in (*processes, last):
        process.check(written)
        await process.close()
    assert all(int(each) // 1_000_000 == 9 for each in written[before:]), "a former process wrote"
    assert not world.bench.faults
    ends = Counter(type(each.error).__name__ for process in processes for each in process.writes)
    return ends, world.faults


@pytest.mark.parametrize("seed", SEEDS)
def test_writers_of_one_name(seed):
    run_virtually(scenario(seed))


def test_every_fault_and_every_end_occurs():
    """Goal: the seeds prove something. Method: count over a few of them."""
    ends, faults = Counter(), Counter()
    for seed in range(8):
        found, caused = run_virtually(scenario(seed))
        ends += found
        faults.update(caused)
    assert all(faults.values()), faults
    errors = {
        RefusedError,
        PrecedingWriteFailedError,
        UnavailableError,
        OutcomeUnknownError,
        ProducerFencedError,
    }
    assert {each.__name__ for each in errors} | {"NoneType"} <= set(ends), ends


def test_a_seed_gives_one_run():
    assert run_virtually(scenario(3)) == run_virtually(scenario(3))


def test_writes_that_wait_for_the_name_do_not_stop_the_request_for_it():
    """Goal: begin_epoch ends. Method: it follows writes that have no producer yet."""

    async def wait_for_the_name():
        world = WriterWorld(1)
        world.heal()
        writer = world.writer()
        writes = [writer.submit(setting(str(value)), PATIENCE) for value in range(3)]
        await writer.begin_epoch(PATIENCE)
        await asyncio.gather(*writes)
        assert world.written() == ["0", "1", "2"]
        await writer.close()

    run_virtually(wait_for_the_name())


def test_a_cancelled_write_does_not_fail_the_next_epoch():
    """Goal: the next epoch goes on. Method: a write is cancelled while the node hangs."""

    async def cancel_and_begin():
        world = WriterWorld(1)
        world.heal()
        writer = world.writer()
        await writer.submit(setting("1"), PATIENCE)
        world.hanging = {1, 2, 3}
        cancelled = writer.submit(setting("2"), PATIENCE)
        late = writer.submit(setting("3"), 0.05)
        await asyncio.sleep(0.02)
        cancelled.cancel()
        await asyncio.wait({late})
        assert isinstance(late.exception(), OutcomeUnknownError)
        world.hanging.clear()
        await writer.begin_epoch(PATIENCE)
        await writer.submit(setting("4"), PATIENCE)
        await asyncio.sleep(10 * STALL_SECONDS)
        await writer.submit(setting("5"), PATIENCE)
        assert world.written() == ["1", "4", "5"]
        await writer.close()

    run_virtually(cancel_and_begin())


def test_an_epoch_begins_although_the_name_was_requested_for_a_write_that_failed():
    """Goal: begin_epoch ends. Method: a write fails while no node answers the request for it."""

    async def fail_and_begin():
        world = WriterWorld(1)
        world.heal()
        writer = world.writer()
        world.hanging = {1, 2, 3}
        late = writer.submit(setting("1"), 0.01)
        await asyncio.wait({late})
        assert isinstance(late.exception(), UnavailableError)
        begun = asyncio.ensure_future(writer.begin_epoch(PATIENCE))
        await asyncio.sleep(0.01)
        world.hanging.clear()
        await asyncio.wait_for(begun, PATIENCE)
        await writer.submit(setting("2"), PATIENCE)
        assert world.written() == ["2"]
        await writer.close()

    run_virtually(fail_and_begin())
