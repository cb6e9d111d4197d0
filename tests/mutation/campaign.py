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
import os
import random
import resource
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import coverage
import psutil
import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import Mutant, mutants_of, replaced_code
from tests.mutation.operators import operators
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
_LOAD_NOT_CODE = "FailedHealthCheck"
"""What Hypothesis raises when the machine is slow: no test has failed."""


@dataclass(frozen=True, slots=True)
class Order:
    """Which mutants to run."""

    modules: tuple[str, ...]
    """None for all."""
    part: int
    parts: int
    sample: int
    """How many, drawn with ``seed``; 0 for all."""
    seed: int
    jobs: int
    """Processes at a time."""
    only: frozenset[tuple[str, str]] = frozenset()
    """Functions and changes; empty for all."""


@dataclass(slots=True)
class Known:
    """What the run without a mutant showed."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Processor time by test."""
    by_line: dict[Path, dict[int, set[str]]] = field(default_factory=dict)
    """Tests that reach a line."""


@dataclass(slots=True, eq=False)
class _Child:
    """A process that is a mutant."""

    pid: int
    reader: int
    mutant: Mutant
    names: list[str]
    """Tests, then seeds, in the order in which it runs them."""
    wall_seconds: float
    """By the clock, for one test."""
    is_again: bool
    told: bytes = b""
    last_contact_at: float = field(default_factory=time.perf_counter)
    cpu_seconds: float = 0.0
    """Processor time that it had used when it was last looked at."""
    has_timed_out: bool = False

    def has_worked(self) -> bool:
        """Whether it used processor time since the last look; then it may have as long again."""
        times = psutil.Process(self.pid).cpu_times()
        used = times.user + times.system
        has_worked = used > self.cpu_seconds
        self.cpu_seconds = used
        if has_worked:
            self.last_contact_at = time.perf_counter()
        return has_worked


def _ended(running: Sequence[_Child]) -> list[_Child]:
    """Wait for news of a child or a second; return those that are over."""
    ready, _, _ = select.select([each.reader for each in running], [], [], 1.0)
    now, over = time.perf_counter(), []
    for child in running:
        if child.reader in ready:
            data = os.read(child.reader, 1 << 16)
            child.told += data
            child.last_contact_at = now
            if not data:
                over.append(child)
        elif now - child.last_contact_at > child.wall_seconds and not child.has_worked():
            # By the clock only, which says nothing about the mutant.
            os.kill(child.pid, signal.SIGKILL)
            child.has_timed_out = True
            over.append(child)
    return over


class Campaign:
    """The plugin of pytest that runs mutants in place of tests. Single use."""

    def __init__(self, order: Order, file: Path | None = None) -> None:
        self._order = order
        self._file = file
        self._core = Path(CORE).resolve()
        self._known = Known()
        self._items: dict[str, pytest.Item | Seed] = {}
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.failed: list[str] = []
        """Tests that fail without any mutant."""
        self.rows: list[dict[str, object]] = []
        self.made = 0
        """Mutants that there are, of which ``rows`` are some."""
        self.seconds = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants; see the module."""
        self._items = {**{item.nodeid: item for item in session.items}, **seeds()}
        self._learn()
        if self.failed:
            return True
        mutants = self._chosen()
        functions = Functions(self._core)
        gc.collect()
        gc.freeze()
        for mutant in mutants[:1]:
            names = self._tests(mutant)[:CONTROL_TESTS]
            if self._kills_unchanged(mutant, names, functions):
                self.failed.append("what runs in a mutant's process, with unchanged code")
                return True
        began, said = time.perf_counter(), 0
        waiting = iter(mutants)
        running: list[_Child] = []
        while len(self.rows) < len(mutants):
            for mutant in islice(waiting, self._order.jobs - len(running)):
                if names := self._tests(mutant):
                    running.append(self._fork(mutant, names, functions, is_again=False))
                else:
                    self._keep({"status": "no tests", "change": mutant.change()}, mutant)
            for child in _ended(running):
                running.remove(child)
                again = self._close(child)
                if again:
                    running.append(self._fork(child.mutant, child.names, functions, is_again=True))
            if len(self.rows) >= said + _REPORT_EVERY or len(self.rows) == len(mutants):
                said = len(self.rows)
                self._announce(said, len(mutants), time.perf_counter() - began)
                self.write()
            self.seconds = time.perf_counter() - began
        return True

    def _announce(self, number: int, mutants: int, seconds: float) -> None:
        killed = sum(row["status"] in KILLED for row in self.rows)
        rate = number / seconds * 60
        print(
            f"{number} of {mutants}: {killed} killed, {rate:.0f} mutants/min",
            file=sys.__stderr__,
            flush=True,
        )

    def write(self) -> None:
        """Write what is known so far; a campaign that is stopped has not run for nothing."""
        if self._file is not None:
            found = {"rows": self.rows, "made": self.made, "seconds": self.seconds}
            self._file.write_text(json.dumps(found), encoding="utf-8")

    def _learn(self) -> None:
        """Run every test once, with the lines that it reaches."""
        watch = coverage.Coverage(data_file=None, config_file=False, include=[f"{self._core}/*"])
        watch.start()
        for name, item in self._items.items():
            watch.switch_context(name)
            began = time.process_time()
            if _fails(item):
                self.failed.append(name)
            self._known.seconds[name] = time.process_time() - began
        watch.stop()
        data = watch.get_data()
        for file in data.measured_files():
            self._known.by_line[Path(file)] = {
                line: set(tests) for line, tests in data.contexts_by_lineno(file).items()
            }

    def _chosen(self) -> list[Mutant]:
        order = self._order
        found = []
        for path in sorted(self._core.rglob("*.py")):
            if not order.modules or path.stem in order.modules:
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
        """Those that reach it: killers of this function's other mutants first, then quick ones.

        Tests come before the simulator, whatever they take.
        """
        by_line = self._known.by_line.get(mutant.path, {})
        names = set().union(*(by_line.get(line, ()) for line in mutant.lines)) - {""}
        kills, seconds = self._kills[mutant.function], self._known.seconds
        return sorted(
            names, key=lambda name: (_is_simulated(name), -kills[name], seconds[name], name)
        )

    def _keep(self, row: dict[str, object], mutant: Mutant) -> None:
        self.rows.append({"module": mutant.module, "function": mutant.function, **row})

    def _close(self, child: _Child) -> bool:
        """Keep what became of a mutant; whether it must be tried once more instead."""
        os.close(child.reader)
        _, wait_status = os.waitpid(child.pid, 0)
        lines = child.told.decode().split("\n")
        status, test = outcome(lines, wait_status, timed_out=child.has_timed_out)
        if status == "unknown" and not child.is_again:
            return True
        if status in KILLED:
            self._kills[child.mutant.function][test] += 1
            stage = "simulator" if _is_simulated(test) else "tests"
            row = {"status": status, "test": test, "stage": stage}
            self._keep({**row, "change": child.mutant.change()}, child.mutant)
        else:
            change = child.mutant.change()
            self._keep(
                {"status": status, "change": change, "tests": len(child.names)}, child.mutant
            )
        return False

    def _limit(self, test: str) -> float:
        """Processor seconds that a test may take."""
        if isinstance(self._items[test], Seed):
            return SIMULATED_CPU_SECONDS
        return TEST_CPU_SECONDS + TEST_FACTOR * self._known.seconds[test]

    def _fork(
        self, mutant: Mutant, names: list[str], functions: Functions, *, is_again: bool
    ) -> _Child:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            self._be_the_mutant(mutant, names, functions, writer)
        os.close(writer)
        wall = WALL_FACTOR * max(map(self._limit, names))
        return _Child(pid, reader, mutant, names, wall, is_again)

    def _kills_unchanged(self, mutant: Mutant, names: list[str], functions: Functions) -> bool:
        """Whether unchanged code does not survive: then no kill proves anything."""
        unchanged = replace(mutant, mutated=mutant.node)
        child = self._fork(unchanged, names, functions, is_again=True)
        while not _ended([child]):
            pass
        self._close(child)
        self._kills.clear()
        return self.rows.pop()["status"] in KILLED

    def _be_the_mutant(
        self, mutant: Mutant, names: Iterable[str], functions: Functions, writer: int
    ) -> None:
        """Never returns. Names each test before it runs, then says how it went."""
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
            simulated_from = 0.0
            for name in names:
                if _is_simulated(name):
                    simulated_from = simulated_from or time.process_time()
                    if time.process_time() - simulated_from >= SIMULATED_CPU_SECONDS:
                        break
                os.write(writer, f"{name}\n".encode())
                signal.setitimer(signal.ITIMER_PROF, self._limit(name))
                if _fails(self._items[name]):
                    os.write(writer, b"killed\n")
                    os._exit(0)
            os.write(writer, b"survived\n")
            os._exit(0)
        finally:
            os._exit(1)


def outcome(told: Sequence[str], wait_status: int, *, timed_out: bool) -> tuple[str, str]:
    """Return the status of a mutant and the test that decided, from what its process left.

    ``timeout``: a test used up its processor time. ``unknown``: only the clock ran out, or the
    process was killed from outside. ``error``: not one test was begun.
    """
    lines = [each for each in told if each]
    if not lines:
        return "error", ""
    last = lines[-1]
    if last in ("killed", "survived", "error"):
        return last, lines[-2] if len(lines) > 1 else ""
    if timed_out:
        return "unknown", last
    if os.WIFSIGNALED(wait_status):
        by = os.WTERMSIG(wait_status)
        if by == signal.SIGPROF:
            return "timeout", last
        return ("unknown" if by == signal.SIGKILL else "crashed"), last
    return "crashed", last


def _is_simulated(name: str) -> bool:
    return name in EXPLORED or name.startswith("simulator: ")


def _fails(item: pytest.Item | Seed) -> bool:
    """Run one test with all its fixtures, or a seed; whether any phase failed."""
    if isinstance(item, Seed):
        return item.fails()
    for report in runtestprotocol(item, log=False, nextitem=None):
        if report.failed and _LOAD_NOT_CODE not in str(report.longrepr):
            return True
    return False


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def main() -> None:
    """Run the mutants that ``ORDER`` (JSON) names; write rows and figures to ``FILE``."""
    file, given = sys.argv[1], json.loads(sys.argv[2])
    only = frozenset((function, change) for function, change in given.pop("only", ()))
    order = Order(**{**given, "modules": tuple(given["modules"])}, only=only)
    campaign = Campaign(order, Path(file))
    arguments = [*TESTS, *EXPLORED, "-p", "no:cacheprovider", "--no-header"]
    pytest.main(arguments, plugins=[campaign])
    if campaign.failed:
        sys.exit(f"these tests fail without any mutant: {', '.join(campaign.failed)}")
    campaign.write()


if __name__ == "__main__":
    main()
