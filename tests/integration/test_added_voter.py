"""The leader is killed while a new voter's record is in flight: a majority continues (ADR 35)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import ROOT, Processes, running
from tests.integration.traffic import write_configs

pytestmark = [pytest.mark.integration, pytest.mark.long]

CHANGED = "voter_set_changed"
LOOK_SECONDS = 0.0005
"""The record is on its way for a few milliseconds: this has to be less."""
PATIENCE_SECONDS = 30.0


class KillWhenLogged(threading.Thread):
    """Kills ``victim`` when ``watched`` logs ``words`` from now on."""

    def __init__(self, watched: LocalNode, words: str, victim: LocalNode) -> None:
        super().__init__()
        assert victim.process is not None
        self._path, self._words, self._pid = watched.log_path, words, victim.process.pid
        self._from = self._path.stat().st_size
        self.has_killed = False

    def run(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        with self._path.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._from)
            text = ""
            while time.monotonic() < end:
                text += file.read()
                if self._words in text:
                    os.kill(self._pid, signal.SIGKILL)
                    self.has_killed = True
                    return
                time.sleep(LOOK_SECONDS)


def add_and_kill(cluster: Processes, new: LocalNode, watched: LocalNode) -> None:
    """Begin to add ``new``; the leader dies when ``watched`` goes by the new set."""
    leader = cluster.leader()
    killer = KillWhenLogged(watched, CHANGED, leader)
    killer.start()
    servers = ",".join(node.address for node in cluster.running_nodes)
    # Whether it gets a success depends on timing.
    subprocess.run(
        [
            *(sys.executable, "-m", "quorate", "--bootstrap", servers, "-o", "json"),
            *("quorum", "add-voter", str(new.id), "--at", new.address),
        ],
        capture_output=True,
        cwd=ROOT,
        env=cluster.environment,
        timeout=PATIENCE_SECONDS * 2,
        check=False,
    )
    killer.join()
    assert killer.has_killed
    cluster.kill(leader)


@pytest.mark.parametrize(("voters", "who"), [(2, "follower"), (3, "follower"), (3, "leader")])
def test_the_leader_is_killed_at_the_record_of_a_new_voter(
    tmp_path: Path, voters: int, who: str
) -> None:
    """Goal: a new leader is elected, whichever nodes have the record.

    Method: kill when a follower uses the new set, or when the leader itself does. With two voters
    the leader may have been the only one with the record, and one of two cannot elect a leader.
    """
    with running(tmp_path, voters=voters) as cluster:
        write_configs(cluster, ["1"])
        new = cluster.add_observer(9)
        cluster.format(new)
        cluster.start(new)
        cluster.wait_ready([new])
        leader = cluster.leader()
        follower = next(node for node in cluster.voters if node is not leader)
        add_and_kill(cluster, new, leader if who == "leader" else follower)
        found = cluster.leader(PATIENCE_SECONDS)
        assert found is not leader
        write_configs(cluster, ["2"])
