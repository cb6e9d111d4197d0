"""A server's cycle collector never stops the loop for long, and still frees cycles."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from quorate.server.cycle_collection import (
    FULL_EVERY,
    FULL_S_MAX,
    OBJECTS_PER_CHANGE,
    YOUNG_MIN,
    CycleCollection,
)


class Collector:
    """Remembers what was called."""

    def __init__(self) -> None:
        self.young = 0
        self.calls: list[str] = []
        self.full_s = 0.0
        self.now_s = 0.0

    def collect(self, generation: int = 2, /) -> int:
        self.calls.append(f"collect {generation}")
        self.now_s += self.full_s if generation == 2 else 0
        self.young = 0
        return 0

    def freeze(self) -> None:
        self.calls.append("freeze")

    def disable(self) -> None:
        self.calls.append("disable")

    def enable(self) -> None:
        self.calls.append("enable")

    def get_count(self) -> tuple[int, int, int]:
        return (self.young, 0, 0)


class Policy:
    """A policy over a collector and a log."""

    def __init__(self) -> None:
        self.collector = Collector()
        self.applied = 0
        self.collection = CycleCollection(
            lambda: self.applied, collector=self.collector, clock_s=lambda: self.collector.now_s
        )

    def turn(self, *, young: int = 0, changes: int = 0) -> list[str]:
        self.collector.calls.clear()
        self.collector.young = young
        self.applied += changes
        self.collection.turn()
        return self.collector.calls


def test_few_new_objects_are_left_alone() -> None:
    assert Policy().turn(young=YOUNG_MIN - 1) == []


def test_new_objects_of_an_image_are_excluded_without_a_visit() -> None:
    assert Policy().turn(young=100_000, changes=100_000 // OBJECTS_PER_CHANGE) == [
        "freeze",
        "collect 1",
    ]


def test_objects_that_no_change_explains_are_visited() -> None:
    """Such as those of thousands of connections."""
    assert Policy().turn(young=100_000, changes=100) == ["collect 1"]


@pytest.mark.parametrize(("seconds", "after"), [(FULL_S_MAX, []), (FULL_S_MAX * 2, ["freeze"])])
def test_everything_is_visited_once_a_minute(seconds: float, after: list[str]) -> None:
    policy = Policy()
    policy.collector.full_s = seconds
    calls = [policy.turn() for _ in range(FULL_EVERY)][-1]
    assert calls == ["collect 2", *after]


def test_it_takes_over_and_gives_back() -> None:
    policy = Policy()

    async def run() -> None:
        policy.collection.start()
        policy.collection.stop()

    asyncio.run(run())
    assert policy.collector.calls == ["collect 2", "freeze", "disable", "enable"]


def test_the_real_collector_frees_a_cycle_and_visits_no_frozen_object() -> None:
    """In a process of its own, because it changes the interpreter's collector."""
    script = """
import asyncio, gc, time, weakref
from quorate.server.cycle_collection import CycleCollection

offset = 0
collection = CycleCollection(lambda: offset)

class Node:
    pass

def cycle():
    made = Node()
    made.self = made
    return weakref.ref(made)

async def run():
    global offset
    collection.start()
    assert not gc.isenabled()
    few = cycle()
    junk = [Node() for _ in range(20_000)]
    collection.turn()
    assert few() is None, "a cycle is left"
    image = [(each, [each]) for each in range(1_000_000)]
    offset += 1_000_000
    frozen = gc.get_freeze_count()
    collection.turn()
    assert gc.get_freeze_count() - frozen >= 1_000_000
    began = time.process_time()
    gc.collect()
    visit = time.process_time() - began
    gc.unfreeze()
    began = time.process_time()
    gc.collect()
    assert visit < (time.process_time() - began) / 3, "the image was visited"
    collection.stop()
    assert gc.isenabled()

asyncio.run(run())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
