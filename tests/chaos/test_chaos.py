"""The chaos lanes: minutes of faults on real processes, and a complete check of the history.

``make test-long`` runs three minutes, ``make nightly`` thirty and five with the peers' streams over
TCP; ``make chaos MINUTES=30`` does the same and prints a report. Another test shows that a build
without syncs is found.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from history.search import CheckResult
from quorate.demo.local_cluster import ClusterError
from tests.chaos.__main__ import table
from tests.chaos.run import LONG_FAULTS_MIN, LONG_OPERATIONS_MIN, Result, Run
from tests.chaos.schedule import Kind
from tests.chaos.tally import Tally

pytestmark = [pytest.mark.integration, pytest.mark.long]

SHORT_SECONDS = 180.0
SHORT_FAULTS_MIN = 30
SHORT_OPERATIONS_MIN = 20_000
"""Far below the rate of an idle machine: the lane checks that there is load, not its speed."""
LONG_SECONDS = 1800.0
TCP_SECONDS = 300.0
NO_SYNC_SECONDS = 20.0
NO_SYNC_SETTLE_SECONDS = 20.0
NO_SYNC_RUNS_MAX = 3
"""Attempts with another cluster: one that does not restart cannot show what it lost."""
TCP_BYTES_MIN = 1_000_000
"""Bytes between nodes at their ports of TCP; a minute after each fault they may use gRPC."""
FILESYSTEM = "node.filesystem"
NO_SYNC = "tests.chaos.disk:NoSyncChaosFileSystem"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """``--sim-seed`` repeats a schedule; the timing of the processes is not repeated."""
    given = request.config.getoption("--sim-seed")
    return secrets.randbits(32) if given is None else int(given)


def execute(folder: Path, seed: int, seconds: float, *, has_peer_tcp: bool = False) -> Result:
    run = Run(folder, seed=seed, seconds=seconds, has_peer_tcp=has_peer_tcp)
    print(f"seed {seed}, history and logs below {folder}")
    try:
        result = run.execute()
    except BaseException as error:
        error.add_note(run.cluster.report())
        raise
    print("\n".join(table(result)))
    assert [*result.report.explanation(), *result.problems] == []
    assert result.report.check_result is CheckResult.VALID
    # The log cannot show whether a write was lost if it was trimmed before it was read.
    assert result.report.unread < result.report.batches
    _, by_tcp = run.cluster.carried_between_nodes()
    assert (by_tcp > TCP_BYTES_MIN) is has_peer_tcp
    return result


def test_three_minutes(tmp_path: Path, seed: int) -> None:
    result = execute(tmp_path, seed, SHORT_SECONDS)
    assert result.shortfalls(faults_min=SHORT_FAULTS_MIN, operations_min=SHORT_OPERATIONS_MIN) == []


@pytest.mark.nightly
def test_thirty_minutes(tmp_path: Path, seed: int) -> None:
    result = execute(tmp_path, seed, LONG_SECONDS)
    assert result.shortfalls(faults_min=LONG_FAULTS_MIN, operations_min=LONG_OPERATIONS_MIN) == []
    assert len(+result.tally.effects) >= 15, "hardly any kind of fault is missing"


@pytest.mark.nightly
def test_five_minutes_over_tcp(tmp_path: Path, seed: int) -> None:
    execute(tmp_path, seed, TCP_SECONDS, has_peer_tcp=True)


def test_a_build_without_fsync_is_found_out(tmp_path: Path, seed: int) -> None:
    """All nodes are killed at once, again and again, on disks that only claim to sync."""
    for number in range(NO_SYNC_RUNS_MAX):
        result = _without_sync(tmp_path / str(number), seed + number)
        if result.report.check_result is CheckResult.INVALID:
            break
    assert result.report.check_result is CheckResult.INVALID
    found = {each.rule for each in result.report.violations}
    assert found & {"stale-read", "stale-write", "prefix", "linearizable", "lost-write"}, found


def _without_sync(folder: Path, seed: int) -> Result:
    folder.mkdir()
    run = Run(
        folder,
        seed=seed,
        seconds=NO_SYNC_SECONDS,
        settings={FILESYSTEM: NO_SYNC},
        weights=({Kind.KILL_ALL: 1}, {}),
        settle_seconds=NO_SYNC_SETTLE_SECONDS,
    )
    try:
        result = run.execute()
    except ClusterError as error:
        # The cluster may not even restart: its epochs decreased, so clients refuse every node.
        print(f"seed {seed}: {error}")
        result = run.evaluate(Tally(), [])
    print("\n".join(table(result)))
    return result
