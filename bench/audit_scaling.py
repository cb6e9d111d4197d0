"""``python -m bench.audit_scaling``: how reads of the Spark source scale with executors.

Writes two equal logs of realistic records (``bench.audit_log``), one of them with checkpoints.
Starts a standalone cluster, a master and workers of one core, and reads both by as many tasks as
there are executors. Prints a table on standard error and JSON on standard output.

``speed-up`` is the processor time of one task that reads everything, divided by that of the longest
task: what as many cores as executors would gain. The time by the clock shows it only on a machine
with a core for each executor and some to spare: a task is a Java thread and a Python process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from audit.caches import cache_folder
from audit.java import find_java_home
from bench.audit_log import add_checkpoints, write_log
from bench.spark_cluster import standalone_cluster
from bench.timed_source import TimedSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 3
"""Each read is made so often; the quicker one counts, whose Python processes were running."""
_NARROW = "offset,record_type,append_time,principal,topic,partition"
QUERIES: dict[str, dict[str, str]] = {
    "history": {},
    "history, six columns": {"columns": _NARROW},
    "history, PartitionChangeRecord, six columns": {
        "types": "PartitionChangeRecord", "columns": _NARROW,
    },
    "history, ConfigRecord": {"types": "ConfigRecord"},
    "partitions": {"table": "partitions"},
    "partitions, the middle third": {"table": "partitions"},
    "configs": {"table": "configs"},
}  # fmt: skip


@dataclass(slots=True)
class Figure:
    """One read: processor time of its tasks, Java and Python, in seconds."""

    query: str
    checkpoints: int
    executors: int
    rows: int
    elapsed_s: float
    tasks_s: list[float]
    speed_up: float = 1.0


def measure(
    folder: Path, *, records: int, checkpoints: int, executors: list[int], runs: int = RUNS
) -> list[Figure]:
    """Measure every query over both logs with each number of executors, the lowest first."""
    logs = {}
    for count in sorted({0, checkpoints}):
        home = logs[count] = folder / f"node-{count}"
        print(f"writing a log of {records} records, {count} checkpoints", file=sys.stderr)
        end = write_log(home, records)
        add_checkpoints(home, count)
    found: list[Figure] = []
    java_home = find_java_home(os.environ, cache_folder(os.environ))
    for number in sorted(executors):
        with (
            standalone_cluster(java_home, folder, workers=number) as master,
            _session(master, java_home, folder / f"events-{number}") as spark,
        ):
            for count, home in logs.items():
                for query in QUERIES:
                    if count and query.endswith("ConfigRecord"):
                        continue  # It uses no checkpoint.
                    options = {**QUERIES[query], "path": str(home), "minPartitions": str(number)}
                    if "third" in query:
                        options |= {"startOffset": str(end // 3), "endOffset": str(end * 2 // 3)}
                    each = [
                        _read(spark, folder, query, count, number, options) for _ in range(runs)
                    ]
                    found.append(min(each, key=lambda figure: figure.elapsed_s))
        _add_java(folder / f"events-{number}", found)
    for figure in found:
        alone = next(
            sum(each.tasks_s)
            for each in found
            if (each.query, each.checkpoints) == (figure.query, figure.checkpoints)
        )
        figure.speed_up = alone / max(figure.tasks_s)
    return found


@contextmanager
def _session(master: str, java_home: Path, events: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    events.mkdir()
    os.environ |= {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    builder = SparkSession.builder.master(master).appName("audit-scaling")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        # All executors are there before the first task.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.locality.wait": "0s",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(TimedSource)
    try:
        yield spark
    finally:
        spark.stop()


def _read(
    spark: SparkSession, folder: Path, query: str, checkpoints: int, executors: int,
    options: dict[str, str],
) -> Figure:  # fmt: skip
    """Read all rows and drop them; the time of Java is added when the session has ended."""
    times = Path(tempfile.mkdtemp(prefix="times-", dir=folder))
    spark.sparkContext.setJobDescription(times.name)
    started = time.perf_counter()
    read = spark.read.format("timed_metadata").options(**options, times=str(times))
    read.load().write.format("noop").mode("overwrite").save()
    elapsed = time.perf_counter() - started
    tasks = [json.loads(file.read_text(encoding="utf-8")) for file in times.iterdir()]
    tasks.sort(key=lambda task: int(task["start"]))
    rows = sum(task["rows"] for task in tasks)
    figure = Figure(query, checkpoints, executors, rows, elapsed, [each["cpu_s"] for each in tasks])
    _jobs[times.name] = figure
    return figure


_jobs: dict[str, Figure] = {}
"""The read of each job, by its description, until the time of Java is added."""


def _add_java(events: Path, found: list[Figure]) -> None:
    """Add the processor time of Java to the tasks of a session, from Spark's own log of events."""
    job_of_stage: dict[int, str] = {}
    for line in next(events.iterdir()).read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            name = event["Properties"].get("spark.job.description", "")
            job_of_stage |= dict.fromkeys(event["Stage IDs"], name)
        elif event["Event"] == "SparkListenerTaskEnd":
            figure = _jobs.get(job_of_stage.get(event["Stage ID"], ""))
            if figure is not None and any(each is figure for each in found):
                seconds = event["Task Metrics"]["Executor CPU Time"] / 1e9
                figure.tasks_s[event["Task Info"]["Index"]] += seconds
    _jobs.clear()


def print_table(figures: list[Figure]) -> None:
    """Print one line per read on standard error."""
    titles = f"{'query':44} {'checkpoints':>11} {'executors':>9} {'rows':>8} "
    print(f"{titles}{'clock':>7} {'sum':>7} {'longest':>7} {'speed-up':>8}", file=sys.stderr)
    for each in sorted(figures, key=lambda each: (each.query, each.checkpoints, each.executors)):
        print(
            f"{each.query:44} {each.checkpoints:11} {each.executors:9} {each.rows:8} "
            f"{each.elapsed_s:5.1f} s {sum(each.tasks_s):5.1f} s {max(each.tasks_s):5.1f} s "
            f"{each.speed_up:8.2f}",
            file=sys.stderr,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.audit_scaling", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--checkpoints", type=int, default=7, help="in the second log")
    parser.add_argument("--executors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--runs", type=int, default=RUNS, help="of each read; the quickest counts")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the logs go")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = measure(
            Path(folder).resolve(), records=options.records, checkpoints=options.checkpoints,
            executors=options.executors, runs=options.runs,
        )  # fmt: skip
    print_table(found)
    about = {"records": options.records, "cores": os.cpu_count(), "load_before": load}
    print(json.dumps({**about, "figures": [asdict(each) for each in found]}))


if __name__ == "__main__":
    main()
