"""A backup of a running cluster under writes: continued, verified, drilled."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.integration.processes import Processes, running
from tests.integration.traffic import write_configs, write_many

pytestmark = pytest.mark.integration


class Writing(threading.Thread):
    """Writes until it is stopped."""

    def __init__(self, cluster: Processes) -> None:
        super().__init__()
        self._cluster = cluster
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            write_many(self._cluster, 50, writers=4)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def test_a_cluster_under_writes(tmp_path: Path) -> None:
    """Goal: from the beginning of the log, in several runs; what comes between is in none twice.

    A stopped node knows of all that it answered, although its mark is stored once an hour.
    """
    settings = {"quorum.high_watermark_store_ms": 3_600_000}
    with running(tmp_path, voters=3, settings=settings) as cluster:
        target = tmp_path / "backup"
        writing = Writing(cluster)
        writing.start()
        try:
            found = [cluster.ask("backup", "create", str(target)) for _ in range(3)]
            for node in cluster.voters:
                verified = cluster.run("log", "verify", str(node.data_dir), "-o", "json").json
                assert verified["is_intact"] is True
        finally:
            writing.stop()
        ends = [each["end_offset"] for each in found]
        assert ends == sorted(ends)
        assert found[0]["start_offset"] == 0
        assert found[-1]["sequence"] == len({*ends})
        write_configs(cluster, ["77"])
        last = cluster.ask("backup", "create", str(target))
        assert last["end_offset"] > ends[-1]
        drilled(cluster, target, last)
        # An earlier offset is shown by the backup as by the directory of a stopped node.
        earlier = ends[0]
        extracted = tmp_path / "extracted"
        cluster.run("backup", "extract", str(target), str(extracted), "--to-offset", str(earlier))
        # What the directory of a stopped node shows at the end of the backup is what was restored.
        node = cluster.leader()
        cluster.stop(node)
        for offset, digest in (
            (last["state_offset"], last["state_digest"]),
            (earlier, counted(cluster, extracted)["state_digest"]),
        ):
            found_state = counted(cluster, node.data_dir, "--at-offset", str(offset))
            assert found_state["state_digest"] == digest


def counted(cluster: Processes, directory: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.run(
        "state", str(directory), "--count", "-o", "json", *options
    ).json
    return found


def test_a_trimmed_log_comes_with_the_leaders_checkpoint(tmp_path: Path) -> None:
    settings = {"snapshot.interval_ms": 4000}
    with running(tmp_path, voters=1, settings=settings) as cluster:
        numbers = iter(range(1000))

        def trimmed() -> dict[str, Any] | None:
            write_configs(cluster, [str(next(numbers))])
            target = tmp_path / f"backup-{next(numbers)}"
            found: dict[str, Any] = cluster.ask("backup", "create", str(target))
            return found if found["start_offset"] > 0 else None

        found = cluster.until("a trimmed log", trimmed)
        drilled(cluster, Path(found["target"]), found)


def drilled(cluster: Processes, target: Path, created: dict[str, Any]) -> None:
    assert cluster.run("backup", "verify", str(target), "-o", "json").json["is_intact"] is True
    found = cluster.run("backup", "drill", str(target), "-o", "json").json
    assert found["is_equal"] is True
    assert found["restored_to"] == created["end_offset"]
    assert found["state_digest"] == created["state_digest"]
