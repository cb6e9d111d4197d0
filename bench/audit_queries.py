"""``python -m bench.audit_queries``: processor time of an export and of audit questions over it.

Writes a log of realistic records (``bench.audit_log``), exports it, and asks each question as a
command, from its start to its end. Prints a table on standard error and JSON on standard output.
Processor time counts, because it says the same on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.audit_log import write_log

_COUNT = "SELECT record_type, count(*) AS n FROM history GROUP BY ALL ORDER BY n DESC"
_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("partitions", ("partitions",)),
    ("leaders of one topic", ("leaders", "--topic", "topic-0")),
    ("configs", ("configs",)),
    ("records by type", ("query", "--sql", _COUNT)),
)


def measure(folder: Path, records: int) -> list[dict[str, object]]:
    """Return one row per command: its name, processor seconds, elapsed seconds, rows."""
    home, target = folder / "node", folder / "export"
    print(f"writing a log of {records} records", file=sys.stderr, flush=True)
    write_log(home, records)
    found = [_timed("export", ("export", str(home), "--to", str(target)))]
    for name, arguments in _QUESTIONS:
        found.append(_timed(name, ("audit", *arguments, "--export", str(target))))
    page = ("audit", "report", "--export", str(target), "--to", str(folder / "report.html"))
    found.append(_timed("report", page))
    return found


def _timed(name: str, arguments: Sequence[str]) -> dict[str, object]:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "quorate", "-o", "json", *arguments],
        stdout=subprocess.PIPE,
        check=True,
    )
    elapsed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows = len(json.loads(done.stdout)["rows"])
    print(f"{name:22} {cpu:8.2f} s cpu {elapsed:8.2f} s, {rows} rows", file=sys.stderr, flush=True)
    return {"name": name, "cpu_s": round(cpu, 3), "elapsed_s": round(elapsed, 3), "rows": rows}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.audit_queries", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the log goes")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(Path(folder), options.records)
    print(json.dumps({"records": options.records, "load_before": load, "figures": figures}))


if __name__ == "__main__":
    main()
