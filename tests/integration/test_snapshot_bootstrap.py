"""A replica whose log ends below the leader's log start catches up from a checkpoint.

Real processes and real files: a voter that was down for too long, a new observer, and one that is
killed in the middle of the download.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest

from quorate.client import Client, LogPosition
from quorate.client.queries import LATEST_TIMESTAMP
from quorate.demo.local_cluster import LocalNode
from snapshot.format import DATA_BATCH_BYTES
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs, write_many

pytestmark = pytest.mark.integration

CHUNKS_MIN = 20
SETTINGS: dict[str, object] = {
    "log.segment_bytes": 32 << 10,
    "snapshot.max_bytes_between": 64 << 10,
    # One round of writes is enough of the largest image here.
    "snapshot.min_changed_records_ratio": 0.05,
    "quorum.snapshot_chunk_bytes": 2 << 10,
    # None is to be still under way, and to replace the one being downloaded, after the writes.
    "snapshot.cpu_share": 1.0,
    # A replica that is silent for this long no longer holds the log back (630.5).
    "quorum.observer_session_ms": 1_000,
    # Chunks are logged at this level only.
    "logging.level": "debug",
}
WRITES_PER_ROUND = 400
ROUNDS_MAX = 30
RECORDS_OF_SEVERAL_BATCHES = 6_000
WITH_A_WHOLE_BATCH = DATA_BATCH_BYTES * 5 // 4
"""So many bytes of a checkpoint hold its first data batch, what frames the values included."""
FOUND = re.compile(r"event=download_found .*kept_bytes=(\d+)")
CHUNK = re.compile(r"event=chunk_received .*position=(\d+) chunk_bytes=(\d+) size=(\d+)")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("cluster"), settings=SETTINGS) as cluster:
        yield cluster


def metric(cluster: Processes, node: LocalNode, name: str) -> int:
    value = cluster.metric(node, f"quorate_{name}")
    assert value is not None, name
    return int(value)


def outrun(cluster: Processes, offset: int) -> int:
    """Write until the leader's log starts above ``offset``; returns where it starts."""
    for _ in range(ROUNDS_MAX):
        write_many(cluster, WRITES_PER_ROUND)
        start = metric(cluster, cluster.leader(), "raft_log_start_offset")
        if start > offset:
            return start
    raise AssertionError(f"the log was never trimmed beyond {offset}")


def chunks_since(node: LocalNode, position: int) -> list[tuple[int, int, int]]:
    """Return position, length and total of every chunk fetched since a position of the text log."""
    text = node.log_path.read_text()[position:]
    return [(int(at), int(size), int(total)) for at, size, total in CHUNK.findall(text)]


def bytes_since(node: LocalNode, position: int) -> int:
    """Where the newest of these slices ends."""
    chunks = chunks_since(node, position)
    return chunks[-1][0] + chunks[-1][1] if chunks else 0


def assert_whole(chunks: list[tuple[int, int, int]], begin: int = 0) -> None:
    """Slices that follow each other from ``begin`` to the last byte."""
    assert len(chunks) >= CHUNKS_MIN
    expected = begin
    for at, size, _ in chunks:
        assert at == expected
        expected = at + size
    assert expected == chunks[-1][2]


def a_follower(cluster: Processes) -> LocalNode:
    leader = cluster.leader()
    return next(node for node in cluster.voters if node is not leader)


def log_size(node: LocalNode) -> int:
    return len(node.log_path.read_text()) if node.log_path.exists() else 0


def test_a_voter_that_was_away_while_the_log_was_trimmed(cluster: Processes) -> None:
    # Any checkpoint from here on takes many chunks, also one from the middle of a round.
    write_many(cluster, WRITES_PER_ROUND)
    voter = a_follower(cluster)
    end_offset = metric(cluster, voter, "raft_log_end_offset")
    assert cluster.stop(voter) == 0
    start_offset = outrun(cluster, end_offset)
    write_configs(cluster, ["1"])
    seen = log_size(voter)
    cluster.start(voter)
    cluster.until_logged(voter, "outcome=installed")
    cluster.wait_ready([voter])
    assert_whole(chunks_since(voter, seen))
    assert metric(cluster, voter, "raft_log_start_offset") >= start_offset
    write_configs(cluster, ["2"])
    wait_equal_images(cluster, cluster.voters)
    assert config_value(cluster) == "2"


def test_a_new_observer_joins_by_a_snapshot(cluster: Processes) -> None:
    outrun(cluster, 0)
    observer = cluster.add_observer(4)
    cluster.format(observer)
    cluster.start(observer)
    cluster.until_logged(observer, "outcome=installed")
    cluster.wait_ready([observer])
    assert_whole(chunks_since(observer, 0))
    write_configs(cluster, ["3"])
    wait_equal_images(cluster, list(cluster.nodes.values()))
    described = cluster.ask("quorum", "describe", "replication")["rows"]
    assert {row["node_id"]: row["status"] for row in described}[4] == "Observer"
    assert metric(cluster, observer, 'raft_state{state="leader"}') == 0


def test_killed_in_the_middle_of_the_download(cluster: Processes) -> None:
    """The downloaded batches are verified and kept; the next attempt continues behind them."""
    voter = a_follower(cluster)
    assert cluster.stop(voter) == 0
    write_many(cluster, RECORDS_OF_SEVERAL_BATCHES)
    # The checkpoint must hold all of them: an older one may have let the log be trimmed beyond
    # where the voter's ends, and is too small to be stopped after a batch.
    outrun(cluster, metric(cluster, cluster.leader(), "raft_log_end_offset"))
    voter.settings["quorum.snapshot_chunk_bytes"] = 256
    cluster.configure(voter)
    seen = log_size(voter)
    cluster.start(voter)

    def half_of_a_download() -> bool:
        assert "outcome=installed" not in voter.log_path.read_text()[seen:]
        return bytes_since(voter, seen) > WITH_A_WHOLE_BATCH

    cluster.until("half of a download", half_of_a_download)
    cluster.kill(voter)
    assert "outcome=installed" not in voter.log_path.read_text()[seen:]
    received = bytes_since(voter, seen)
    again = log_size(voter)
    voter.settings["quorum.snapshot_chunk_bytes"] = 2 << 10
    cluster.configure(voter)
    cluster.start(voter)
    cluster.wait_ready([voter])
    found = FOUND.search(voter.log_path.read_text()[again:])
    assert found is not None
    kept = int(found[1])
    assert DATA_BATCH_BYTES // 2 < kept <= received
    assert_whole(chunks_since(voter, again), begin=kept)
    wait_equal_images(cluster, cluster.voters)
    partial = list((voter.data_dir / "__cluster_metadata-0").glob("*.part"))
    assert partial == []


def test_checkpoints_of_one_position_are_equal_byte_for_byte(cluster: Processes) -> None:
    """630.16: a written checkpoint and a downloaded one are identical."""
    outrun(cluster, metric(cluster, cluster.leader(), "raft_log_start_offset"))
    wait_equal_images(cluster, cluster.voters)
    files: dict[str, set[bytes]] = {}
    for node in cluster.nodes.values():
        for path in (node.data_dir / "__cluster_metadata-0").glob("*.checkpoint"):
            if path.name != bootstrap_name():
                files.setdefault(path.name, set()).add(path.read_bytes())
    assert files
    assert {name: len(contents) for name, contents in files.items()} == dict.fromkeys(files, 1)


def bootstrap_name() -> str:
    return f"{0:020d}-{0:010d}.checkpoint"


def test_a_consumer_below_the_log_start_gets_a_checkpoints_state(cluster: Processes) -> None:
    """Goal: the state of a checkpoint, then each record from exactly its offset, and no gap.
    Method: read from offset 0 while the log begins higher, and count what is read."""
    start = outrun(cluster, 0)
    write_configs(cluster, ["41", "42"])
    node = cluster.leader()

    def checkpoint_ends() -> set[int]:
        names = (node.data_dir / "__cluster_metadata-0").glob("*.checkpoint")
        return {int(each.name.partition("-")[0]) for each in names}

    ends = checkpoint_ends()

    async def read() -> tuple[int, list[int]]:
        async with Client([node.address]) as client:
            end = (await client.list_offsets(LATEST_TIMESTAMP)).offset
            consumer = client.consumer(position=LogPosition(0))
            state_end, offsets = -1, []
            while consumer.position is None or consumer.position.offset < end:
                records = await consumer.poll()
                if consumer.state is not None:
                    state_end = consumer.state.offset
                    assert all(each.is_state for each in records)
                else:
                    offsets += [each.offset for each in records]
            return state_end, offsets

    state_end, offsets = asyncio.run(read())
    # A newer one may have been written, and the log trimmed to it, while the state was read.
    ends |= checkpoint_ends()
    assert (state_end >= start, state_end in ends) == (True, True), (start, state_end, ends)
    # Control records have offsets, too, and are not handed out.
    assert offsets == sorted(set(offsets))
    assert offsets
    assert offsets[0] - state_end <= 3
