"""Runs all tests of a lane, on both processors of a small machine.

``python -m tests.gate`` runs those of ``make test``, ``python -m tests.gate test-long`` those that
take minutes (see ``lanes.py``), in three ways, each pytest in a process of its own:

- Tests that only compute or talk to themselves run in six processes (the core, what is stored,
  other units, the bug zoo, the simulator, the others) at the lowest priority, so they take the time
  that is left.
- Tests with real processes mostly wait. Their files run two at a time, from one queue. A fork
  server starts their nodes and commands, which would take half of all processor time to load.
- Tests marked ``alone`` check latencies or deadlines. They run when the queue is empty, one after
  the other, only beside tests of the lowest priority.

A test belongs to the second kind by its folder, and to the first by default, so none is left out.
The output of a process is shown when it fails; its last line and its processor time, when it ends.
The last lines show how many tests other commands run, and which commands.
"""

from __future__ import annotations

import argparse
import collections
import os
import queue
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent import futures
from pathlib import Path

import pytest

from tests.gate.lanes import LEFT_OUT, PROCESSOR_TIME, Lane
from tests.support import fork_server

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("campaigns", "chaos", "integration", "interop", "spark")
"""Below ``tests``: those with real processes."""
LONGEST = (
    "tests/chaos/test_chaos.py",
    "tests/integration/test_demo.py",
    "tests/spark/test_spark_audit.py",
    "tests/integration/test_kill_nine.py",
    "tests/integration/test_bad_start.py",
    "tests/integration/test_cli_against_server.py",
    "tests/integration/test_hung_disk.py",
    "tests/integration/test_bad_disk.py",
    "tests/chaos/test_effects.py",
)
"""Taken from the queue first, so that none of them is the last one, running by itself."""
CORE = "tests/unit/core"
ZOO = "tests/simulation/test_zoo.py"
"""Half of the processor time of ``test-long``: in one process with others it would end alone."""
STORED = tuple(
    f"tests/unit/{each}"
    for each in ("log", "adoption", "audit", "history", "importer", "snapshot", "statemachine")
)
"""Half of the other units: together they would end alone."""
COMPUTING = (
    ("core", (CORE,)),
    ("stored", STORED),
    ("unit", ("tests/unit", *(f"--ignore={each}" for each in (CORE, *STORED)))),
    ("zoo", (ZOO,)),
    ("simulation", ("tests/simulation", f"--ignore={ZOO}")),
    ("others", ("tests", *(f"--ignore=tests/{each}" for each in ("unit", "simulation", *FOLDERS)))),
)
"""Processes for tests that only compute: a name, and the arguments of pytest."""
AT_A_TIME = 2
LOWEST_PRIORITY = 19
SUMMARY = re.compile(r" in \d+\.\d\ds\b")
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")
FILE_WITH_TESTS = re.compile(r"^(\S+\.py): \d+$", re.M)
GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Gate:
    """Use it once: ``run``. Leaves what the tests write in ``folder``."""

    def __init__(
        self,
        folder: Path,
        root: Path = ROOT,
        longest: tuple[str, ...] = LONGEST,
        lane: Lane = Lane.TEST,
    ) -> None:
        self._folder = folder
        self._root = root
        self._lane = lane
        self._longest = longest
        self._began = time.monotonic()
        self._failed: list[str] = []
        self._has_computed = False
        self._counts: collections.Counter[str] = collections.Counter()
        self._left: collections.Counter[str] = collections.Counter()
        self._shown = threading.Lock()
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self) -> list[str]:
        """The names of what failed; [] if all passed.

        Raises:
            OSError: A process could not be started, or its output not be shown.
        """
        files = files_with_processes(self._root, self._longest)
        # Otherwise a thread that ends with an exception would leave files undone unnoticed.
        with futures.ThreadPoolExecutor(len(COMPUTING) + AT_A_TIME) as threads:
            computing = [threads.submit(self._compute, *each) for each in COMPUTING]
            for file in self._of_the_lane(files):
                self._queue.put(file)
            for waiting in [threads.submit(self._work) for _ in range(AT_A_TIME)]:
                waiting.result()
            self._pytest("alone", "alone", _folders_of(files))
            for each in computing:
                each.result()
        if not self._has_computed:
            self._failed.append("computing")
        return self._failed

    @property
    def totals(self) -> str:
        """How many tests passed, failed (or could not be run) and were skipped, in all."""
        count = self._counts
        bad = count["failed"] + count["error"]
        return f"{count['passed']} passed, {bad} failed, {count['skipped']} skipped"

    @property
    def left_out(self) -> list[str]:
        """How many tests are in the other lanes, and the commands that run them."""
        return [f"{self._left[each]} left out: make {each}" for each in Lane if self._left[each]]

    def _of_the_lane(self, files: list[str]) -> list[str]:
        """Return files with tests of the lane; all, if one cannot be imported: its run fails."""
        if not files:
            return []
        run = self._start("which", ["--collect-only", "-qq", *_folders_of(files)])
        if run.returncode not in GOOD:
            return files
        with self._shown:
            self._count_left_out(run.stdout)
        found = set(FILE_WITH_TESTS.findall(run.stdout))
        return [each for each in files if each in found]

    def _compute(self, name: str, what: tuple[str, ...]) -> None:
        if (self._root / what[0]).exists():
            self._pytest(name, "", [*what], priority=LOWEST_PRIORITY)

    def _work(self) -> None:
        while True:
            try:
                file = self._queue.get_nowait()
            except queue.Empty:
                return
            self._pytest(file, "not alone", [file])

    def _pytest(self, name: str, marks: str, what: list[str], *, priority: int = 0) -> None:
        began = time.monotonic()
        run = self._start(name, ["-m", marks, *what], priority=priority)
        took = time.monotonic() - began
        with self._shown:
            # A file may have nothing but tests that are alone.
            if run.returncode not in GOOD:
                self._failed.append(name)
                print(run.stdout)
            summary = _summary(run.stdout)
            for count, kind in COUNT.findall(summary):
                self._counts[kind] += int(count)
            if priority:
                # Those of the others were counted when their files were looked for.
                self._count_left_out(run.stdout)
                self._has_computed |= run.returncode != pytest.ExitCode.NO_TESTS_COLLECTED
            now = time.monotonic() - self._began
            used = "".join(
                f", {each} s of processor time" for each in PROCESSOR_TIME.findall(run.stdout)
            )
            print(f"{now:5.0f} s  {name}: {summary} ({took:.0f} s{used})", flush=True)

    def _count_left_out(self, output: str) -> None:
        for count, lane in LEFT_OUT.findall(output):
            self._left[lane] += int(count)

    def _start(
        self, name: str, arguments: list[str], *, priority: int = 0
    ) -> subprocess.CompletedProcess[str]:
        # Runs that clear away one another's temporary folders fail now and then.
        place = self._folder / name.replace("/", "-")
        command = [sys.executable, "-m", "pytest", "-p", "tests.gate.lanes", "--lane", self._lane]
        command += [*arguments, "--basetemp", str(place), "-o", f"cache_dir={place}.cache"]
        return subprocess.run(
            command,
            cwd=self._root,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=(lambda: os.nice(priority)) if priority else None,
        )


def environment() -> dict[str, str]:
    """Return this process's environment, but with Python's bytecode cache enabled.

    A run starts hundreds of interpreters, and without bytecode each compiles all its imports.
    """
    return {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def files_with_processes(root: Path, longest: tuple[str, ...]) -> list[str]:
    """Return the test files of ``FOLDERS`` relative to the root, the longest first.

    Raises:
        LookupError: One of the longest does not exist any more.
    """
    found = [
        file.relative_to(root).as_posix()
        for folder in FOLDERS
        for file in sorted((root / "tests" / folder).rglob("*.py"))
        if file.match("test_*.py") or file.match("*_test.py")
    ]
    if gone := set(longest) - set(found):
        raise LookupError(f"no such test files: {sorted(gone)}")
    return [*longest, *(each for each in found if each not in longest)]


def _summary(output: str) -> str:
    """Pytest's own last line, which what a process prints at its end may follow."""
    lines = output.strip().splitlines() or ["no output"]
    return next((each for each in reversed(lines) if SUMMARY.search(each)), lines[-1])


def _folders_of(files: list[str]) -> list[str]:
    return sorted({"/".join(each.split("/")[:2]) for each in files})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gate")
    lanes = (Lane.TEST, Lane.LONG)
    parser.add_argument("lane", nargs="?", type=Lane, choices=lanes, default=Lane.TEST)
    lane = parser.parse_args().lane
    with tempfile.TemporaryDirectory(prefix="quorate-gate-") as folder, fork_server.running():
        gate = Gate(Path(folder), lane=lane)
        failed = gate.run()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")
    for line in (*gate.left_out, gate.totals):
        print(line)
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
