"""A leader with a stopped process sends and refuses nothing: exactly one election must follow.

The default settings: a fetch timer of two seconds. The nightly simulation
(`simulation.silent_death`) has the many deaths; these are a few of real processes.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorate.client import ClientError
from quorate.demo.local_cluster import LocalNode
from quorum.config import QuorumConfig
from tests.integration.processes import Processes, running
from tests.integration.traffic import write_configs

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.alone]

DEATHS = 5
CAN_WRITE = "quorate_raft_can_write"
EPOCH = "quorate_raft_epoch"


@pytest.mark.parametrize("is_loaded", [False, True], ids=["idle", "loaded"])
def test_a_stopped_leader_costs_one_election(
    tmp_path: Path, record_property: Callable[[str, object], None], *, is_loaded: bool
) -> None:
    """Goal: ADR 37. Method: SIGSTOP, until another node takes writes; thaw it; five times."""
    times_ms: list[int] = []
    elections: list[int] = []
    with running(tmp_path) as cluster, _load(cluster, is_loaded=is_loaded):
        write_configs(cluster, ["1"])
        for death in range(DEATHS):
            time.sleep(1.0 + 0.13 * death)  # the kill must not come right after an election
            leader = cluster.leader()
            epoch = cluster.metric(leader, EPOCH) or 0.0
            cluster.freeze(leader)
            frozen_s = time.monotonic()
            successor = cluster.until("a successor", lambda gone=leader: _successor(cluster, gone))
            times_ms.append(round(1000 * (time.monotonic() - frozen_s)))
            risen = cluster.metric(successor, EPOCH) or 0.0
            elections.append(round(risen - epoch))
            cluster.thaw(leader)
            cluster.until(
                "the old leader to follow",
                lambda old=leader, since=risen: (cluster.metric(old, EPOCH) or 0.0) >= since,
            )
    print(times_ms, elections)
    record_property("times_ms", times_ms)
    record_property("elections", elections)
    assert statistics.median(times_ms) <= 1.5 * QuorumConfig().fetch_timeout_ms
    assert sum(each > 1 for each in elections) <= 1


def _successor(cluster: Processes, gone: LocalNode) -> LocalNode | None:
    return next(
        (n for n in cluster.voters if n is not gone and cluster.metric(n, CAN_WRITE) == 1.0), None
    )


@contextlib.contextmanager
def _load(cluster: Processes, *, is_loaded: bool) -> Iterator[None]:
    """One client that writes all the while, if asked for."""
    is_over = threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            with contextlib.suppress(ClientError):
                write_configs(
                    cluster, [f"{number}{each}" for each in range(200)], name="log.segment.bytes"
                )

    writer = threading.Thread(target=write)
    if is_loaded:
        writer.start()
    try:
        yield
    finally:
        is_over.set()
        if is_loaded:
            writer.join()
