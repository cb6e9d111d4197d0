"""Named writers as processes: scripts that repeat themselves, and a zombie (360.1, 360.8).

Goal: a repeated command gets its first answer, whatever happened to the cluster meanwhile, and a
former process of the same name never writes again. Method: commands of the command line, against
three voters that are killed, and two processes of the client library.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.processes import ROOT, Ended, Processes, running

pytestmark = pytest.mark.integration

TOPICS = ("ids", "orders", "zombie")
WRITES = (
    ("broker", "register", "8", "--listener", "PLAINTEXT://b8:9092"),
    ("config", "set", "topic", "orders", "retention.ms=60000"),
    ("config", "append", "topic", "orders", "cleanup.policy=compact"),
    ("acl", "add", "User:app", "--operation", "write", "--topic", "orders"),
    # Refused: there are two brokers, and no such topic.
    ("topic", "create", "later", "--partitions", "3", "--replication-factor", "3"),
    ("topic", "delete", "nothing", "--yes"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("named-writers")) as found:
        found.leader()
        create_topics(found)
        yield found


def create_topics(cluster: Processes) -> None:
    """Create the topics, while a broker is there for their replicas."""
    servers = ("--bootstrap", ",".join(cluster.addresses))
    broker = subprocess.Popen(
        [
            sys.executable, "-m", "quorate", *servers, "broker", "register", "7",
            "--listener", "PLAINTEXT://b7:9092", "--stay",
        ],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        status = ("broker", "fence-status", "7")
        cluster.until("an unfenced broker", lambda: not cluster.run(*servers, *status).status)
        for name in TOPICS:
            cluster.ask("topic", "create", name, "--partitions", "1", "--replication-factor", "1")
    finally:
        broker.kill()
        broker.wait()


def step(cluster: Processes, writer: str, number: int, *command: str) -> Ended:
    """One step of a script."""
    request = ("--writer", writer, "--request-id", f"step-{number}")
    servers = ("--bootstrap", ",".join(cluster.addresses), "--timeout", "60")
    return cluster.run(*servers, "-o", "json", *command, *request)


def script(cluster: Processes, writer: str) -> list[Ended]:
    return [step(cluster, writer, number, *command) for number, command in enumerate(WRITES)]


def config(cluster: Processes, key: str, topic: str = "orders") -> Any:
    rows = cluster.ask("config", "get", "topic", topic)["rows"]
    return next((row["value"] for row in rows if row["key"] == key), None)


def test_a_script_that_is_repeated_gets_its_first_answers(cluster: Processes) -> None:
    first = script(cluster, "deploy")
    assert [each.status == 0 for each in first] == [True] * 4 + [False] * 2, first
    assert script(cluster, "deploy") == first
    # Another leader.
    led = cluster.leader()
    cluster.kill(led)
    assert script(cluster, "deploy") == first
    assert cluster.leader().id != led.id
    cluster.start_all()
    # The whole cluster dies at once and starts again.
    cluster.kill_together(cluster.voters)
    cluster.start_all()
    cluster.leader()
    assert script(cluster, "deploy") == first
    # What somebody else changed since then stays: nothing was applied a second time.
    plain = ("--bootstrap", ",".join(cluster.addresses), "config", "set", "topic", "orders")
    assert cluster.run(*plain, "retention.ms=5").status == 0
    assert script(cluster, "deploy") == first
    assert config(cluster, "retention.ms") == "5"
    assert [row["name"] for row in cluster.ask("topic", "list")["rows"]] == list(TOPICS)


def test_a_request_id_belongs_to_one_command_of_one_writer(cluster: Processes) -> None:
    set_to = ("config", "set", "topic", "ids")
    assert step(cluster, "a", 1, *set_to, "retention.ms=1").status == 0
    other = step(cluster, "a", 1, *set_to, "retention.ms=2")
    assert other.status != 0
    assert "another command" in other.err
    assert step(cluster, "b", 1, *set_to, "retention.ms=3").status == 0
    assert config(cluster, "retention.ms", "ids") == "3"
    # A dry run neither fences nor is remembered.
    assert step(cluster, "b", 2, *set_to, "retention.ms=4", "--dry-run").status == 0
    assert step(cluster, "b", 2, *set_to, "retention.ms=4").status == 0
    assert config(cluster, "retention.ms", "ids") == "4"


class Writing:
    """A process of a named writer that writes when it is told to."""

    def __init__(self, cluster: Processes, name: str, topic: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "tests.integration.named_writer",
                ",".join(cluster.addresses), name, topic,
            ],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def write(self, value: int) -> str:
        """Return the answer; the process waits for the next value."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{value}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def test_a_former_process_is_refused_by_name_and_writes_nothing(cluster: Processes) -> None:
    """Goal: 360.1, between processes. Method: the former one still runs, and writes on."""
    writers = [Writing(cluster, "deploy-z", "zombie")]
    try:
        old = writers[0]
        assert old.write(1).startswith("applied ")
        writers.append(Writing(cluster, "deploy-z", "zombie"))
        new = writers[1]
        assert new.write(2).startswith("applied ")
        for value in (3, 4):
            answer = old.write(value)
            assert answer.startswith("ProducerFencedError PRODUCER_FENCED: "), answer
            assert "writer 'deploy-z'" in answer
        assert config(cluster, "retention.ms", "zombie") == "2"
        # Also at the next leader.
        cluster.kill(cluster.leader())
        assert new.write(5).startswith("applied ")
        assert old.write(6).startswith("ProducerFencedError ")
        cluster.start_all()
        # A process that starts again takes its name back.
        new.end()
        writers.append(Writing(cluster, "deploy-z", "zombie"))
        assert writers[2].write(7).startswith("applied ")
        assert config(cluster, "retention.ms", "zombie") == "7"
    finally:
        for each in writers:
            each.end()
