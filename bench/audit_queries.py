"""``python -m bench.audit_queries``: processor time of an export and of audit questions over it.

Writes a log of realistic records (``bench.audit_log``), exports it, and asks each question as a
command, from its start to its end. ``--spark`` also asks in one local Spark session over the same
export; the processor time is then that of Java, and its start is a row of its own. Prints a table
on standard error and JSON on standard output. Processor time counts, because it says the same on a
busy machine.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from audit.questions import Query, config_changes, leadership_timeline, state_as_of
from bench.audit_log import write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNT = "SELECT record_type, count(*) AS n FROM history GROUP BY ALL ORDER BY n DESC"
_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("partitions", ("partitions",)),
    ("leaders of one topic", ("leaders", "--topic", "topic-0")),
    ("configs", ("configs",)),
    ("configs of one topic", ("configs", "--topic", "topic-0")),
    ("records by type", ("query", "--sql", _COUNT)),
)
_IN_SPARK: tuple[tuple[str, Query], ...] = (
    ("partitions", state_as_of("partitions")),
    ("leaders of one topic", leadership_timeline(topic="topic-0")),
    ("configs", config_changes()),
    ("configs of one topic", config_changes(topic="topic-0")),
    ("records by type", Query(_COUNT.replace("history", "{history}"))),
)


def measure(folder: Path, records: int, *, with_spark: bool = False) -> list[dict[str, object]]:
    """Return one row per command: its name, processor seconds, elapsed seconds, rows."""
    home, target = folder / "node", folder / "export"
    print(f"writing a log of {records} records", file=sys.stderr, flush=True)
    write_log(home, records)
    found = [_timed("export", ("export", str(home), "--to", str(target)))]
    for name, arguments in _QUESTIONS:
        found.append(_timed(name, ("audit", *arguments, "--export", str(target))))
    page = ("audit", "report", "--export", str(target), "--to", str(folder / "report.html"))
    found.append(_timed("report", page))
    if with_spark:
        found += _ask_spark(target)
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
    rows = json.loads(done.stdout)["rows"]
    # An export counts the rows of each table.
    return _row(name, cpu, elapsed, rows["history"] if isinstance(rows, dict) else len(rows))


def _row(name: str, cpu: float, elapsed: float, rows: int) -> dict[str, object]:
    print(f"{name:28} {cpu:8.2f} s cpu {elapsed:8.2f} s, {rows} rows", file=sys.stderr, flush=True)
    return {"name": name, "cpu_s": round(cpu, 3), "elapsed_s": round(elapsed, 3), "rows": rows}


def _ask_spark(export: Path) -> list[dict[str, object]]:
    """Ask in one local session with two cores; the first row is its start."""
    from audit.session import local_session
    from audit.views import tables_of_export

    started = time.perf_counter()
    with local_session(source=export) as spark:
        java = _cpu_seconds_of_java(spark)
        found = [_row("Spark: start", java(), time.perf_counter() - started, 0)]
        tables = tables_of_export(spark, export)
        for name, query in _IN_SPARK:
            cpu, started = java(), time.perf_counter()
            rows = tables.ask(query).toArrow().num_rows
            elapsed = time.perf_counter() - started
            found.append(_row(f"Spark: {name}", java() - cpu, elapsed, rows))
    return found


def _cpu_seconds_of_java(spark: SparkSession) -> Callable[[], float]:
    """Return a clock of the processor time of the session's Java process."""
    pid = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001
    ticks = os.sysconf("SC_CLK_TCK")

    def read() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    return read


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.audit_queries", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the log goes")
    parser.add_argument("--spark", action="store_true", help="also ask in a local Spark session")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(Path(folder), options.records, with_spark=options.spark)
    print(json.dumps({"records": options.records, "load_before": load, "figures": figures}))


if __name__ == "__main__":
    main()
