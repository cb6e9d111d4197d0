"""A standalone Spark cluster whose Python lacks Quorate reads a log, by the documented recipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from audit.directory import plan_source
from audit.java import find_java_home
from audit.schema import HISTORY
from bench.spark_cluster import standalone_cluster
from tests.support.audit_answers import trimmed_log
from tests.support.audit_log import table_rows
from tests.support.bare_python import bare_python

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

DRIVER = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from audit.shipping import ship
from audit.views import register_views

master, log = sys.argv[1:]
builder = SparkSession.builder.master(master).appName("test")
for key, value in {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
ship(spark)
register_views(spark, log)


def libraries(_):
    import importlib.util

    yield importlib.util.find_spec("grpc") is not None


rows = spark.sql("SELECT offset, change_index, payload FROM history ORDER BY offset, change_index")
found = [list(row) for row in rows.collect()]
with_grpc = spark.sparkContext.parallelize(range(4), 4).mapPartitions(libraries).collect()
nodes = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
print(json.dumps({"rows": found, "with_grpc": with_grpc, "executors": nodes - 1}))
spark.stop()
"""


def test_executors_without_quorate_read_a_log(tmp_path: Path) -> None:
    log = trimmed_log(tmp_path / "node")
    python = bare_python(tmp_path / "bare")
    java_home = find_java_home(os.environ, tmp_path / "cache")
    with standalone_cluster(java_home, tmp_path, workers=2) as master:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, master, str(log.home)],
            env={**os.environ, "PYSPARK_PYTHON": str(python), "JAVA_HOME": str(java_home)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout.splitlines()[-1])
    expected = table_rows(plan_source(log.home), HISTORY)
    names = ("offset", "change_index", "payload")
    assert found["rows"] == [[row[name] for name in names] for row in expected]
    assert found["with_grpc"] == [False] * 4
    assert found["executors"] == 2
