"""All tests that every change must pass, on both processors of a small machine.

``python -m tests.gate`` runs them in three ways, each pytest in a process of its own:

- Tests that only compute or talk to themselves run one after the other, at the lowest priority, so
  that they take the time that is left.
- Tests with real processes mostly wait. Their files run two at a time, from one queue.
- Tests marked ``alone`` judge latencies or deadlines. They run when the queue is empty, one after
  the other, beside nothing but tests of the lowest priority.

A test belongs to the second kind by its folder, and to the first if no other takes it, so none is
left out. The output of a process is shown when it fails; its last line, when it ends.
"""

from __future__ import annotations

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
AT_A_TIME = 2
LOWEST_PRIORITY = 19
SUMMARY = re.compile(r" in \d+\.\d\ds\b")
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")
EVERY_CHANGE = "not nightly and not bench"


class Gate:
    """Use it once: ``run``. Leaves what the tests write in ``folder``."""

    def __init__(self, folder: Path, root: Path = ROOT, longest: tuple[str, ...] = LONGEST) -> None:
        self._folder = folder
        self._root = root
        self._longest = longest
        self._began = time.monotonic()
        self._failed: list[str] = []
        self._counts: collections.Counter[str] = collections.Counter()
        self._shown = threading.Lock()
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self) -> list[str]:
        """The names of what failed; [] if all passed.

        Raises:
            OSError: A process could not be started, or its output not be shown.
        """
        files = files_with_processes(self._root, self._longest)
        for file in files:
            self._queue.put(file)
        # Else nobody would hear of a thread that ends with an exception, and leaves files undone.
        with futures.ThreadPoolExecutor(1 + AT_A_TIME) as threads:
            computing = threads.submit(self._compute)
            for waiting in [threads.submit(self._work) for _ in range(AT_A_TIME)]:
                waiting.result()
            self._pytest("alone", f"alone and {EVERY_CHANGE}", sorted({*map(_folder_of, files)}))
            computing.result()
        return self._failed

    @property
    def totals(self) -> str:
        """How many tests passed, failed (or could not be run) and were skipped, in all."""
        count = self._counts
        bad = count["failed"] + count["error"]
        return f"{count['passed']} passed, {bad} failed, {count['skipped']} skipped"

    def _compute(self) -> None:
        ignored = [f"--ignore=tests/{each}" for each in FOLDERS]
        self._pytest("computing", EVERY_CHANGE, ["tests", *ignored], priority=LOWEST_PRIORITY)

    def _work(self) -> None:
        while True:
            try:
                file = self._queue.get_nowait()
            except queue.Empty:
                return
            self._pytest(file, f"not alone and {EVERY_CHANGE}", [file])

    def _pytest(self, name: str, marks: str, what: list[str], *, priority: int = 0) -> None:
        # Runs that clear away one another's temporary folders fail now and then.
        place = self._folder / name.replace("/", "-")
        command = [sys.executable, "-m", "pytest", "-m", marks, *what]
        command += ["--basetemp", str(place), "-o", f"cache_dir={place}.cache"]
        began = time.monotonic()
        run = subprocess.run(
            command,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=(lambda: os.nice(priority)) if priority else None,
        )
        took = time.monotonic() - began
        # A file may have nothing but nightly tests; of those that compute there are always some.
        is_good = run.returncode == pytest.ExitCode.OK or (
            run.returncode == pytest.ExitCode.NO_TESTS_COLLECTED and not priority
        )
        with self._shown:
            if not is_good:
                self._failed.append(name)
                print(run.stdout)
            summary = _summary(run.stdout)
            for count, kind in COUNT.findall(summary):
                self._counts[kind] += int(count)
            now = time.monotonic() - self._began
            print(f"{now:5.0f} s  {name}: {summary} ({took:.0f} s)", flush=True)


def files_with_processes(root: Path, longest: tuple[str, ...]) -> list[str]:
    """Test files of ``FOLDERS`` relative to the root, the longest first.

    Raises:
        LookupError: One of the longest is not there any more.
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


def _folder_of(file: str) -> str:
    return "/".join(file.split("/")[:2])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="quorate-gate-") as folder:
        gate = Gate(Path(folder))
        failed = gate.run()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")
    print(gate.totals)
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
