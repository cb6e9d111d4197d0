"""A stream writes every row of a growing log once, also if it fails or stops between two batches.

Its windows over the append time close as the watermark passes them, each with its final count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from audit.directory import plan_source
from audit.schema import HISTORY
from audit.session import local_session
from tests.support.audit_log import AuditLog, table_rows

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

LIMIT = "15"
START_ATTEMPTS = 20
_NOT_STARTED = "Python worker failed to connect back"
"""Spark gives the Python process of a stream 10 s to start: ``PythonStreamingSourceRunner`` calls
``PythonWorkerFactory.createSimpleWorker``, where the figure is a constant. It is no task, so
``spark.task.maxFailures`` does not apply. A service would start the query again, as here."""


def outlast(run: Callable[[], None]) -> None:
    """Run a query, again if no batch began because Spark's Python process did not start in time."""
    for _ in range(START_ATTEMPTS):
        try:
            run()
        except Exception as error:
            if _NOT_STARTED not in str(error):
                raise
        else:
            return
    raise AssertionError(f"no Python process of Spark started in {START_ATTEMPTS} attempts")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with local_session() as session:
        yield session


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    return log


def stream_of(spark: Any, log: AuditLog) -> Any:
    options = {"path": str(log.home), "maxOffsetsPerTrigger": LIMIT, "minPartitions": "3"}
    return spark.readStream.format("cluster_metadata").options(**options).load()


def test_every_row_is_written_once_across_failures_and_restarts(
    spark: Any, log: AuditLog, tmp_path: Path
) -> None:
    """A batch that failed after it wrote is written again under its number and replaces itself."""
    world = log.world(8, 40)
    log.commit()
    sink, crashes = tmp_path / "sink", [0, 2]

    def write(frame: Any, number: int) -> None:
        # The sink of Spark's guide for exactly-once rows: the number of the batch names its place.
        frame.select("offset", "change_index").write.mode("overwrite").parquet(
            str(sink / f"batch={number}")
        )
        if number in crashes:
            crashes.remove(number)
            raise RuntimeError("crashed after writing")

    def run() -> None:
        query = (
            stream_of(spark, log)
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(tmp_path / "progress"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for _ in range(2):
        with pytest.raises(Exception, match="crashed after writing"):
            outlast(run)
    outlast(run)
    log.more(world, 15)
    log.elect(2)
    log.more(world, 5)
    log.commit()
    outlast(run)
    rows = spark.read.parquet(str(sink)).select("offset", "change_index").collect()
    expected = table_rows(plan_source(log.home), HISTORY)
    assert crashes == []
    assert Counter((row.offset, row.change_index) for row in rows) == Counter(
        (row["offset"], row["change_index"]) for row in expected
    )
    assert len(list(sink.glob("batch=*"))) > 4


def test_windows_behind_the_watermark_are_final(spark: Any, log: AuditLog, tmp_path: Path) -> None:
    """The time of a record in milliseconds is that of the first plus its offset."""
    from pyspark.sql import functions as f

    world = log.world(8, 40)
    log.commit()

    def run() -> None:
        windows = (
            stream_of(spark, log)
            .withWatermark("append_time", "10 milliseconds")
            .groupBy(f.window("append_time", "20 milliseconds").alias("window"))
            .count()
        )
        query = (
            windows.select("window.end", "count")
            .writeStream.format("parquet")
            .outputMode("append")
            .option("checkpointLocation", str(tmp_path / "progress"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        query.awaitTermination()

    outlast(run)
    log.more(world, 40)
    log.commit()
    outlast(run)
    counts: Counter[int] = Counter()
    times = []
    for row in table_rows(plan_source(log.home), HISTORY):
        millis = round(row["append_time"].timestamp() * 1000)
        times.append(millis)
        counts[millis // 20 * 20 + 20] += 1
    found = {
        round(row.end.replace(tzinfo=UTC).timestamp() * 1000): row["count"]
        for row in spark.read.parquet(str(tmp_path / "sink")).collect()
    }
    assert found == {end: counts[end] for end in found}
    closed = {end for end in counts if end <= max(times) - 10}
    # The last batch of a run may move the watermark without another one to close its windows.
    assert len(closed) - len(found) <= 2
    assert len(found) >= 2
    assert datetime.fromtimestamp(max(found) / 1000, UTC).year == 2023
