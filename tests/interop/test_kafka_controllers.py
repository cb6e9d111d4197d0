"""Kafka's controllers and our servers take turns on the same three directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from tests.integration.processes import Processes
from tests.interop.kafka_servers import KafkaServers, jars

pytestmark = [pytest.mark.interop, pytest.mark.nightly]

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def test_a_quorum_changes_hands_and_comes_back(tmp_path: Path) -> None:
    """Kafka forms it; we adopt, write, checkpoint, trim, release; Kafka continues; we read.

    Every topic with its id and partitions is there after each change of software.
    """
    (tmp_path / "jars").mkdir()
    found = jars(tmp_path / "jars")
    if found is None:
        pytest.skip("needs java, javac and mvn")
    settings = {
        "cluster.record_codec": "kafka",
        "log.segment_bytes": 8192,
        "snapshot.max_bytes_between": 2000,
        "snapshot.min_changed_records_ratio": 0.1,
    }
    cluster = Processes(tmp_path / "cluster", settings=settings, cluster_id=CLUSTER_ID)
    kafka = KafkaServers(found, tmp_path, cluster.voters)
    try:
        kafka.format(CLUSTER_ID)
        kafka.start()
        kafka.create("first", 10)
        theirs = _settled(kafka, 10)
        kafka.stop()

        assert _adopted(cluster) == theirs
        broker = cluster.ask("broker", "register", "7", "--listener", "PLAINTEXT://localhost:1")
        assert broker["broker_epoch"] > 0
        cluster.ask("topic", "delete", "first0", "--yes", "--reason", "theirs")
        for n in range(40):
            cluster.ask("config", "set", "topic", "first1", f"retention.ms={n + 1}")
        ours = _topics(cluster)
        assert ours == {name: rest for name, rest in theirs.items() if name != "first0"}
        _release(cluster)
        for node in cluster.voters:
            checkpoints = list(node.data_dir.glob("*/*.checkpoint"))
            assert len(checkpoints) > 1, checkpoints

        kafka.start()
        assert _settled(kafka, len(ours)) == ours
        kafka.create("second", 5)
        theirs = _settled(kafka, len(ours) + 5)
        kafka.stop()

        assert _adopted(cluster) == theirs
        value = cluster.ask("config", "get", "topic", "first1")
        assert [row["value"] for row in value["rows"] if row["key"] == "retention.ms"] == ["40"]
    except BaseException:
        print(kafka.report())
        raise
    finally:
        kafka.stop()
        cluster.end_all()


def _settled(kafka: KafkaServers, count: int) -> dict[str, tuple[str, int]]:
    """Return the broker's topics once it knows ``count`` of them; it lags behind controllers."""
    found: dict[str, tuple[str, int]] = {}
    for _ in range(20):
        found = kafka.topics()
        if len(found) == count:
            break
    return found


def _adopted(cluster: Processes) -> dict[str, tuple[str, int]]:
    """Adopt every directory, start the servers, and return the topics they show."""
    for node in cluster.voters:
        done = cluster.run("adopt", str(node.data_dir))
        assert done.status == Exit.OK, done.err
        cluster.configure(node)
        cluster.start(node)
    cluster.wait_ready(cluster.voters)
    return _topics(cluster)


def _topics(cluster: Processes) -> dict[str, tuple[str, int]]:
    rows = cluster.ask("topic", "list")["rows"]
    return {row["name"]: (row["topic_id"], row["partitions"]) for row in rows}


def _release(cluster: Processes) -> None:
    for node in cluster.voters:
        cluster.stop(node)
    for node in cluster.voters:
        done = cluster.run("release", str(node.data_dir))
        assert done.status == Exit.OK, done.err
