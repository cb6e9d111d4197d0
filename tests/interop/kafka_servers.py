"""Kafka's own controllers and a broker, as processes on the directories of a cluster of ours.

The jars come through Maven, which keeps them; no other program of Kafka's is needed.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from quorate.demo.local_cluster import HOST, LocalNode
from quorate.demo.ports import free_ports

_FILES = Path(__file__).parent / "kafka"
_MAIN = "kafka.Kafka"
_FORMAT = "kafka.tools.StorageTool"
_READY = "Kafka Server started"
_READY_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 60.0
BROKER_ID = 100
_PROTOCOLS = "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1} %m%n
"""


class KafkaError(Exception):
    """A program of Kafka's failed; the message ends with its output."""


def jars(folder: Path) -> Path | None:
    """``folder`` with Kafka's jars and our ``Topics`` in it; ``None`` without Java or Maven.

    Raises:
        KafkaError: The jars could not be fetched, or do not fit ``Topics``.
    """
    if not all(shutil.which(program) for program in ("java", "javac", "mvn")):
        return None
    copy = ["mvn", "-q", "-B", "-f", str(_FILES / "pom.xml"), "dependency:copy-dependencies"]
    fetched = subprocess.run(
        [*copy, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0:
        raise KafkaError(fetched.stdout + fetched.stderr)
    compiled = subprocess.run(
        ["javac", "-cp", f"{folder}/*", "-d", str(folder), str(_FILES / "Topics.java")],
        capture_output=True,
        text=True,
        check=False,
    )
    if compiled.returncode != 0:
        raise KafkaError(compiled.stderr)
    (folder / "log4j2.properties").write_text(_LOGGING)
    return folder


class KafkaServers:
    """Controllers on the data directories and addresses of ``nodes``, and one broker."""

    def __init__(self, jars: Path, folder: Path, nodes: Sequence[LocalNode]) -> None:
        self._java = ["java", "-Xmx256m", "-cp", f"{jars}/*:{jars}"]
        self._folder = folder
        self._nodes = nodes
        self._running: dict[Path, subprocess.Popen[bytes]] = {}
        (port,) = free_ports(1)
        self._broker = f"{HOST}:{port}"
        servers = ",".join(node.address for node in nodes)
        common = f"controller.quorum.bootstrap.servers={servers}\n{_PROTOCOLS}\n"
        common += "controller.listener.names=CONTROLLER\n"
        for node in nodes:
            self._config(node.id).write_text(
                f"{common}process.roles=controller\nnode.id={node.id}\n"
                f"listeners=CONTROLLER://{node.address}\n"
                f"metadata.log.dir={node.data_dir}\nlog.dirs={node.data_dir}\n"
                # Checkpoints early, so that both programs load what the other one wrote.
                "metadata.log.max.record.bytes.between.snapshots=4000\n"
            )
        self._config(BROKER_ID).write_text(
            f"{common}process.roles=broker\nnode.id={BROKER_ID}\n"
            f"listeners=PLAINTEXT://{self._broker}\nlog.dirs={folder / 'broker'}\n"
        )

    def format(self, cluster_id: str) -> None:
        """Format the directories of all controllers, and of the broker."""
        voters = ",".join(f"{n.id}@{n.address}:{n.directory_id}" for n in self._nodes)
        for node in self._nodes:
            node.folder.mkdir(parents=True, exist_ok=True)
            self._format(node.id, cluster_id, "--initial-controllers", voters)
        self._format(BROKER_ID, cluster_id)

    def _format(self, number: int, cluster_id: str, *more: str) -> None:
        config = str(self._config(number))
        self._run(_FORMAT, "format", "-t", cluster_id, "-c", config, *more)

    def start(self) -> None:
        """Start every controller and the broker.

        Raises:
            KafkaError: The broker is not unfenced within the time allowed.
        """
        for number in (*(node.id for node in self._nodes), BROKER_ID):
            config = self._config(number)
            with config.with_suffix(".log").open("wb") as log:
                self._running[config] = subprocess.Popen(
                    [*self._java, _MAIN, str(config)], stdout=log, stderr=subprocess.STDOUT
                )
        broker = self._config(BROKER_ID).with_suffix(".log")
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while _READY not in broker.read_text():
            ended = [c.stem for c, process in self._running.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise KafkaError(f"ended: {ended}\n{self.report()}")
            time.sleep(0.1)

    def create(self, prefix: str, count: int) -> None:
        """Make ``count`` topics, one command each."""
        self._run("Topics", "create", self._broker, prefix, str(count))

    def topics(self) -> dict[str, tuple[str, int]]:
        """Id and number of partitions of every topic, by its name."""
        printed = self._run("Topics", "list", self._broker)
        found = [line.split() for line in printed.splitlines() if line.startswith("topic ")]
        return {name: (topic_id, int(count)) for _, name, topic_id, count in found}

    def stop(self) -> None:
        """Stop all that run, the broker first; those that do not end are killed."""
        for config in sorted(self._running, key=lambda c: c != self._config(BROKER_ID)):
            process = self._running.pop(config)
            process.terminate()
            # The last controllers wait for a majority that is gone; Kafka gives up by itself.
            if config == self._config(BROKER_ID):
                self._wait(process)
            else:
                self._running[config] = process
        for process in self._running.values():
            self._wait(process)
        self._running.clear()

    @staticmethod
    def _wait(process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def report(self) -> str:
        """The ends of all logs."""
        logs = sorted(self._folder.glob("kafka-*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in logs)

    def _config(self, number: int) -> Path:
        return self._folder / f"kafka-{number}.properties"

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._java, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise KafkaError(f"{arguments}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout
