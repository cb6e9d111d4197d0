"""Measure ``quorate log verify``: bytes a minute, and processor time per batch and record.

Makes the log of ``bench.mixed_log`` in DIRECTORY unless one is there, and runs the command on it
without and with the replay, by one and by two processes. Prints one JSON object. On a machine with
other load only the processor time is a figure. ``gb_per_minute_by_processor`` is what follows
from it: the files are read by one process, then the parts of the replay side by side.

    python -m bench.verify_rate DIRECTORY --bytes 250000000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.build_form import build_form
from bench.mixed_log import write_mixed_log

JOBS = (1, 2)


def _run(directory: Path, *options: str) -> dict[str, float]:
    """Run the command once; returns its result with its real and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "quorate", "-o", "json", "log", "verify", *options, str(directory)],
        check=False,
        stdout=subprocess.PIPE,
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"the verification ended with {done.returncode}")
    found = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**found, "seconds": seconds, "cpu_seconds": cpu}


def _lowest(directory: Path, rounds: int, *options: str) -> dict[str, float]:
    """Run the command some times; returns the run with the least processor time."""
    runs = [_run(directory, *options) for _ in range(rounds)]
    return min(runs, key=lambda each: each["cpu_seconds"])


def _rate(size_bytes: float, seconds: float) -> float:
    return round(size_bytes * 60 / seconds / 1e9, 2)


def measure(directory: Path, rounds: int) -> dict[str, object]:
    """Return the figures of a data directory; each is of the run with the least processor time."""
    files = _lowest(directory, rounds, "--no-replay")
    size, batches, records = files["size_bytes"], files["batches"], files["records"]
    files_cpu = files["cpu_seconds"]
    found: dict[str, object] = {
        "form": build_form(),
        "processors": len(os.sched_getaffinity(0)),
        "size_bytes": size,
        "batches": batches,
        "records": records,
        "bytes_per_batch": round(size / batches),
        "bytes_per_record": round(size / records),
        "files": {
            "cpu_seconds": round(files_cpu, 2),
            "microseconds_per_batch": round(files_cpu / batches * 1e6, 2),
            "gb_per_minute_by_processor": _rate(size, files_cpu),
        },
    }
    for jobs in JOBS:
        run = _lowest(directory, rounds, "--jobs", str(jobs))
        replay_cpu = run["cpu_seconds"] - files_cpu
        found[f"jobs_{jobs}"] = {
            "seconds": round(run["seconds"], 2),
            "cpu_seconds": round(run["cpu_seconds"], 2),
            "replay_microseconds_per_batch": round(replay_cpu / batches * 1e6, 2),
            "replay_microseconds_per_record": round(replay_cpu / records * 1e6, 2),
            "gb_per_minute": _rate(size, run["seconds"]),
            "gb_per_minute_by_processor": _rate(size, files_cpu + replay_cpu / jobs),
        }
    return found


def main() -> None:
    """Make the log if it is not there, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--bytes", type=int, default=250_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not options.directory.exists():
        written = write_mixed_log(options.directory, options.bytes)
        print(written, file=sys.stderr)
    print(json.dumps(measure(options.directory, options.rounds), indent=2))


if __name__ == "__main__":
    main()
