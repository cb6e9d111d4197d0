"""Start a quiet local Spark session with the metadata log as a data source.

``audit.java`` finds the Java runtime; ``audit.views`` asks.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from audit.caches import cache_folder
from audit.errors import AuditError
from audit.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.catalogImplementation": "in-memory",
    # Spark's own Python processes give up after 15 s otherwise, which a busy machine takes.
    "spark.python.authenticate.socketTimeout": "120s",
}
_SHORT_RUN = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
}
"""Compile quickly rather than well: a small audit takes 20 s of processor time instead of 48."""
LARGE_BYTES = 256 << 20
"""From so much data on, well compiled queries gain more than their compilation takes."""
# Without a level of its own, the gateway announces on stderr which level it chose.
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


@contextmanager
def local_session(
    *,
    cores: int = 2,
    environment: Mapping[str, str] | None = None,
    source: Path | None = None,
) -> Iterator[SparkSession]:
    """A Spark session in this process, with ``cluster_metadata`` registered; stopped at the end.

    Writes only to a temporary folder, and shows only errors. ``source``: what it will read, a file
    or folder; Java compiles the better, and the slower, the larger that is.

    Raises:
        AuditError: pyspark or Java is missing; the message names what to install.
    """
    environment = dict(os.environ) if environment is None else dict(environment)
    require_pyspark()
    java_home = find_java_home(environment, cache_folder(environment))
    with (
        tempfile.TemporaryDirectory(prefix="quorate-spark-") as scratch,
        _process_settings(java_home, Path(scratch)),
    ):
        spark = _start(cores, Path(scratch), is_large=source is not None and is_large(source))
        try:
            yield spark
        finally:
            spark.stop()


def require_pyspark() -> None:
    """Check that pyspark is installed.

    Raises:
        AuditError: It is not; the message names the extra to install.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise AuditError("Spark is not installed; run: pip install 'quorate[spark]'")


def is_large(source: Path) -> bool:
    """Whether a file, or all files of a folder, hold at least ``LARGE_BYTES``."""
    found = 0
    for file in source.rglob("*") if source.is_dir() else [source]:
        # A running node removes what a checkpoint covers.
        with suppress(FileNotFoundError):
            found += file.stat().st_size
    return found >= LARGE_BYTES


def _start(cores: int, scratch: Path, *, is_large: bool) -> SparkSession:
    from pyspark.sql import SparkSession

    from audit.source import ClusterMetadataSource

    builder = SparkSession.builder.master(f"local[{cores}]").appName("quorate-audit")
    for key, value in {**_SETTINGS, **({} if is_large else _SHORT_RUN)}.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.local.dir", str(scratch))
    builder = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    spark = builder.getOrCreate()
    spark.dataSource.register(ClusterMetadataSource)
    return spark


@contextmanager
def _process_settings(java_home: Path, scratch: Path) -> Iterator[None]:
    """Set the environment variables that Spark's launcher reads, and restore them afterwards."""
    wanted = {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_CONF_DIR": str(scratch),
    }
    (scratch / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
