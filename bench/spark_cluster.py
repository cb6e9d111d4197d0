"""A standalone Spark cluster of real processes on this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


@contextmanager
def standalone_cluster(java_home: Path, folder: Path, *, workers: int) -> Iterator[str]:
    """Start a master and workers of one core each; yield the master's URL; stop them all."""
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(java_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder),
    }
    with ExitStack() as stack:
        master = _started(stack, environment, folder, "master.Master", ["--port", "0"])
        url = _wait_for(master, _MASTER)
        options = ["--cores", "1", "--memory", "1g", url]
        started = [
            _started(stack, environment, folder, "worker.Worker", options) for _ in range(workers)
        ]
        for worker in started:
            _wait_for(worker, _REGISTERED)
        yield url


def _started(
    stack: ExitStack, environment: dict[str, str], folder: Path, name: str, options: Sequence[str]
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [
            SPARK_CLASS, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1",
            "--webui-port", "0", *options,
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder,
    )  # fmt: skip
    stack.callback(_stop, process)
    return process


def _wait_for(process: subprocess.Popen[str], wanted: re.Pattern[str]) -> str:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        found = wanted.search(line)
        if found:
            return found[1] if wanted.groups else ""
        seen.append(line)
    raise AssertionError("ended before it was ready:\n" + "".join(seen[-20:]))


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
