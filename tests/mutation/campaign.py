"""Runs mutants of ``quorum/core`` in a copy of the checkout.

A process of its own, started by ``python -m tests.mutation``. It collects the tests once and runs
each to learn which lines it reaches and how much processor time it takes. Then it forks for each
mutant. The child replaces the changed function's code and runs the tests that reach the changed
lines, the quickest first, until one fails. What survives these tests is run in the explorer and in
the simulator, with the seeds that reach the changed lines.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.children import Child, ended, outcome
from tests.mutation.mutants import Mutant, mutants_of, replaced_code
from tests.mutation.operators import operators
from tests.mutation.recorded import Lines, Recorded, Recordings
from tests.mutation.replacing import Functions
from tests.mutation.settings import (
    CONTROL_TESTS,
    CORE,
    EXPLORED,
    KILLED,
    MEMORY_BYTES,
    SIMULATED_CPU_SECONDS,
    TEST_CPU_SECONDS,
    TEST_FACTOR,
    TESTS,
    WALL_FACTOR,
)
from tests.mutation.simulated import Seed, seeds

_REPORT_EVERY = 25
_OWN_TESTS_FIRST = 4
"""Tests of the mutant's own package count as this many times faster when tests are ordered."""
_LOAD_NOT_CODE = "FailedHealthCheck"
"""Raised by Hypothesis on a slow machine: not a failure of the test."""


@dataclass(frozen=True, slots=True)
class Order:
    """Which mutants to run."""

    modules: tuple[str, ...]
    """Modules, in this order; empty for all."""
    part: int
    parts: int
    sample: int
    """Size of the random sample, drawn with ``seed``; 0 for all."""
    seed: int
    jobs: int
    """Number of parallel processes."""
    only: frozenset[tuple[str, str]] = frozenset()
    """Functions and changes; empty for all."""
    first_stage: bool = False
    """Whether to skip the explorer and the simulator."""
    budget: float = math.inf
    """Processor seconds of the first stage per mutant."""
    tests: tuple[str, ...] = TESTS
    """Files and folders of the first stage."""


@dataclass(slots=True)
class Known:
    """Results of the run without a mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Processor seconds of each test."""
    by_line: dict[Path, dict[int, set[str]]] = field(default_factory=dict)
    """Tests that execute each line."""

    def add(self, name: str, recorded: Recorded) -> None:
        """Add the recording of one test."""
        self.seconds[name] = recorded.cpu_seconds
        for file, lines in recorded.lines.items():
            by_line = self.by_line.setdefault(Path(file).resolve(), {})
            for line in lines:
                by_line.setdefault(line, set()).add(name)


class Campaign:
    """A pytest plugin that runs mutants instead of tests. Single use."""

    def __init__(
        self, order: Order, file: Path | None = None, recordings: Path = Path("recordings")
    ) -> None:
        self._order = order
        self._file = file
        self._recordings = recordings
        self._core = Path(CORE).resolve()
        self._known = Known()
        self._items: dict[str, pytest.Item | Seed] = {}
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.failed: list[str] = []
        """Tests that fail without any mutant."""
        self.rows: list[dict[str, object]] = []
        self.made = 0
        """Number of all mutants; ``rows`` has those that were run."""
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        """Processor seconds of this process and of all mutants since the first."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants, as the module describes."""
        self._items = {item.nodeid: item for item in session.items}
        if not self._order.first_stage:
            self._items |= seeds()
        self._learn()
        if self.failed:
            return True
        mutants = self._chosen()
        functions = Functions(self._core)
        gc.collect()
        gc.freeze()
        if not self._is_valid(mutants, functions):
            return True
        began, reported, used_before = time.perf_counter(), 0, _used_cpu_seconds()
        waiting = iter(mutants)
        running: list[Child] = []
        while len(self.rows) < len(mutants):
            for mutant in islice(waiting, self._order.jobs - len(running)):
                if names := self._tests(mutant):
                    running.append(self._fork(mutant, names, functions, is_again=False))
                else:
                    self._keep({"status": "no tests", "change": mutant.change()}, mutant)
            for child in ended(running):
                running.remove(child)
                again = self._close(child)
                if again:
                    running.append(self._fork(child.mutant, child.names, functions, is_again=True))
            if len(self.rows) >= reported + _REPORT_EVERY or len(self.rows) == len(mutants):
                reported = len(self.rows)
                if not self._is_valid(mutants, functions):
                    return True
                self._announce(reported, len(mutants), time.perf_counter() - began)
                self.write()
            self.seconds = time.perf_counter() - began
            self.cpu_seconds = _used_cpu_seconds() - used_before
        return True

    def _is_valid(self, mutants: list[Mutant], functions: Functions) -> bool:
        """Return whether tests pass in a mutant's process with unchanged code."""
        for mutant in islice(filter(self._tests, mutants), 1):
            names = self._tests(mutant)[:CONTROL_TESTS]
            if self._kills_unchanged(mutant, names, functions):
                self.failed.append("what runs in a mutant's process, with unchanged code")
        return not self.failed

    def _announce(self, number: int, mutants: int, seconds: float) -> None:
        killed = sum(row["status"] in KILLED for row in self.rows)
        rate = number / seconds * 60
        print(
            f"{number} of {mutants}: {killed} killed, {rate:.0f} mutants/min",
            file=sys.__stderr__,
            flush=True,
        )

    def write(self) -> None:
        """Write the results so far, so that a stopped campaign keeps them."""
        if self._file is not None:
            found = {
                "rows": self.rows,
                "made": self.made,
                "seconds": self.seconds,
                "cpu_seconds": self.cpu_seconds,
            }
            self._file.write_text(json.dumps(found), encoding="utf-8")

    def _learn(self) -> None:
        """Run every test that is not recorded yet once, and record the lines that it executes."""
        recordings = Recordings(Path.cwd(), self._recordings)
        known = {
            name: recordings.find(name, getattr(item, "path", None))
            for name, item in self._items.items()
        }
        fresh = [name for name, recorded in known.items() if recorded is None]
        # Coverage warns of a run without data, and a warning ends the process.
        for name, cpu_seconds, lines in self._record(fresh) if fresh else ():
            path = getattr(self._items[name], "path", None)
            known[name] = recordings.keep(name, path, cpu_seconds, lines)
        if fresh and not self.failed:
            recordings.save()
        for name, recorded in known.items():
            if recorded is not None:
                self._known.add(name, recorded)

    def _record(self, names: Iterable[str]) -> Iterator[tuple[str, float, Lines]]:
        """Run tests; yield each with its processor time and the lines that it reached."""
        watch = coverage.Coverage(data_file=None, config_file=False, include=[f"{self._core}/*"])
        seconds, lines = dict.fromkeys(names, 0.0), defaultdict[str, Lines](dict)
        watch.start()
        for name in seconds:
            watch.switch_context(name)
            began = time.process_time()
            if _fails(self._items[name]):
                self.failed.append(name)
            seconds[name] = time.process_time() - began
        watch.stop()
        data = watch.get_data()
        for file in data.measured_files():
            reached = defaultdict[str, set[int]](set)
            for line, tests in data.contexts_by_lineno(file).items():
                for test in tests:
                    reached[test].add(line)
            for test, numbers in reached.items():
                lines[test][os.path.relpath(file)] = frozenset(numbers)
        return ((name, seconds[name], lines[name]) for name in seconds)

    def _chosen(self) -> list[Mutant]:
        order = self._order
        found = []
        paths = sorted(self._core.rglob("*.py"))
        if order.modules:
            named = [path for path in paths if path.stem in order.modules]
            paths = sorted(named, key=lambda path: order.modules.index(path.stem))
        for path in paths:
            found += mutants_of(path, operators(order.part, order.parts))
        self.made = len(found)
        if order.only:
            functions = {function for function, _ in order.only}
            some = (each for each in found if each.function in functions)
            return [each for each in some if (each.function, each.change()) in order.only]
        if order.sample and order.sample < len(found):
            chosen = random.Random(order.seed).sample(range(len(found)), order.sample)
            return [found[each] for each in chosen]
        return found

    def _tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the mutant's lines, in the order in which they run.

        First those that killed other mutants of the function, then by time. Tests of the mutant's
        own package count as four times faster. All tests come before the simulator.
        """
        by_line = self._known.by_line.get(mutant.path, {})
        names = set().union(*(by_line.get(line, ()) for line in mutant.lines)) - {""}
        kills, seconds = self._kills[mutant.function], self._known.seconds
        package = f"/core/{mutant.path.parent.name}/"

        def order(name: str) -> tuple[object, ...]:
            cost = seconds[name] / (_OWN_TESTS_FIRST if package in name else 1)
            return _is_simulated(name), -kills[name], cost, name

        return sorted(names, key=order)

    def _keep(self, row: dict[str, object], mutant: Mutant) -> None:
        self.rows.append({"module": mutant.module, "function": mutant.function, **row})

    def _close(self, child: Child) -> bool:
        """Store a mutant's result; return True if it must be tried once more instead."""
        os.close(child.reader)
        _, wait_status, used = os.wait4(child.pid, 0)
        cpu_seconds = used.ru_utime + used.ru_stime
        lines = child.output.decode().split("\n")
        status, test = outcome(lines, wait_status, timed_out=child.has_timed_out)
        if status == "unknown" and not child.is_again:
            return True
        if status in KILLED:
            self._kills[child.mutant.function][test] += 1
            stage = "simulator" if _is_simulated(test) else "tests"
            row: dict[str, object] = {"status": status, "test": test, "stage": stage}
        else:
            row = {"status": status, "tests": len(child.names)}
        row |= {"change": child.mutant.change(), "cpu_seconds": round(cpu_seconds, 3)}
        self._keep(row, child.mutant)
        return False

    def _limit(self, test: str) -> float:
        """Return the processor seconds that a test may take."""
        if isinstance(self._items[test], Seed):
            return SIMULATED_CPU_SECONDS
        return TEST_CPU_SECONDS + TEST_FACTOR * self._known.seconds[test]

    def _fork(
        self, mutant: Mutant, names: list[str], functions: Functions, *, is_again: bool
    ) -> Child:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            self._be_the_mutant(mutant, names, functions, writer)
        os.close(writer)
        wall = WALL_FACTOR * max(map(self._limit, names))
        return Child(pid, reader, mutant, names, wall, is_again)

    def _kills_unchanged(self, mutant: Mutant, names: list[str], functions: Functions) -> bool:
        """Return whether unchanged code fails as well: then no kill proves anything."""
        unchanged, kills = replace(mutant, mutated=mutant.node), deepcopy(self._kills)
        child = self._fork(unchanged, names, functions, is_again=True)
        while not ended([child]):
            pass
        self._close(child)
        self._kills = kills
        return self.rows.pop()["status"] in KILLED

    def _be_the_mutant(
        self, mutant: Mutant, names: Iterable[str], functions: Functions, writer: int
    ) -> None:
        """Run the tests and never return; report each name before the test, its result after."""
        try:
            gc.disable()
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY_BYTES, hard))
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            if not functions.replace(mutant.path, replaced_code(mutant)):
                os.write(writer, b"error\n")
                os._exit(0)
            began, simulated_from, is_unfinished = time.process_time(), 0.0, False
            for name in names:
                if _is_simulated(name):
                    simulated_from = simulated_from or time.process_time()
                    if time.process_time() - simulated_from >= SIMULATED_CPU_SECONDS:
                        break
                elif time.process_time() - began >= self._order.budget:
                    is_unfinished = True
                    continue
                os.write(writer, f"{name}\n".encode())
                signal.setitimer(signal.ITIMER_PROF, self._limit(name))
                if _fails(self._items[name]):
                    os.write(writer, b"killed\n")
                    os._exit(0)
            os.write(writer, b"unfinished\n" if is_unfinished else b"survived\n")
            os._exit(0)
        finally:
            os._exit(1)


def _is_simulated(name: str) -> bool:
    return name in EXPLORED or name.startswith("simulator: ")


def _fails(item: pytest.Item | Seed) -> bool:
    """Run one test with all its fixtures, or a seed; return whether any phase failed."""
    if isinstance(item, Seed):
        return item.fails()
    for report in runtestprotocol(item, log=False, nextitem=None):
        if report.failed and _LOAD_NOT_CODE not in str(report.longrepr):
            return True
    return False


def _used_cpu_seconds() -> float:
    """Return the processor seconds of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def main() -> None:
    """Run ``FILE RECORDINGS ORDER``: run the mutants of a JSON order, write their rows."""
    file, recordings, given = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    only = frozenset((function, change) for function, change in given.pop("only", ()))
    order = Order(
        **{**given, "modules": tuple(given["modules"]), "tests": tuple(given["tests"]) or TESTS},
        only=only,
    )
    campaign = Campaign(order, Path(file), Path(recordings))
    explored = () if order.first_stage else EXPLORED
    # The reason for a mutant's kill is not used.
    plain = ("-p", "no:cacheprovider", "--no-header", "--tb=native", "--assert=plain")
    arguments = [*order.tests, *explored, *plain]
    came_to = pytest.main(arguments, plugins=[campaign])
    if campaign.failed:
        sys.exit(f"these tests fail without any mutant: {', '.join(campaign.failed)}")
    if came_to != pytest.ExitCode.OK:
        sys.exit(f"pytest ended with {came_to!r} before all mutants had run")
    campaign.write()


if __name__ == "__main__":
    main()
