"""A watch hangs on a node while a checkpoint replaces that node's log.

The node is paused until the leader has trimmed its log beyond it, so it catches up by FetchSnapshot
with the stream still open. The watcher must get an error with the readable range; it must not get
the records behind the gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import grpc
import pytest

from history.history import Delivery, History
from history.watches import watch_violations
from quorate.client.errors import LogTruncationError, OffsetOutOfRangeError, from_rpc
from quorate.demo.local_cluster import LocalNode
from quorum.v1 import metadata_pb2
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from tests.integration.processes import Processes, running
from tests.integration.test_snapshot_bootstrap import SETTINGS, a_follower, outrun
from tests.integration.traffic import write_configs

pytestmark = pytest.mark.integration

READ_SECONDS_MAX = 60.0


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("cluster"), settings=SETTINGS) as cluster:
        yield cluster


class Watcher:
    """Streams of one watcher on one node, and everything it received, in order."""

    def __init__(self, node: LocalNode) -> None:
        self._node = node
        self.history = History()
        self.offset = -1
        self.epoch = -1

    def note(self, what: str, end: int, *, base: int = -1, epoch: int = -1) -> None:
        self.history.deliveries.append(Delivery("w", what, end, base, epoch))

    async def read(self, until: int, *, from_offset: int | None = None) -> None:
        """Watch until everything below ``until`` was received.

        Raises:
            OffsetOutOfRangeError: The next records have been trimmed.
        """
        request = metadata_pb2.WatchRequest(client_id="watcher")
        if from_offset is not None:
            request.from_offset, request.from_epoch = from_offset, self.epoch
            self.note("resume", from_offset)
        async with grpc.aio.insecure_channel(self._node.address) as channel:
            call = MetadataServiceStub(channel).Watch(request)
            try:
                async with asyncio.timeout(READ_SECONDS_MAX):
                    while self.offset < until:
                        self._take(await call.read())
            except grpc.RpcError as error:
                raise from_rpc(error) from error

    def _take(self, response: metadata_pb2.WatchResponse) -> None:
        kind = response.WhichOneof("event")
        if kind == "state" and response.state.is_last:
            self.offset, self.epoch = response.state.offset, response.state.epoch
            self.note("state", self.offset, epoch=self.epoch)
        elif kind == "progress":
            self.note("progress", response.progress.offset)
        elif kind == "changes":
            for batch in response.changes.batches:
                self.note("batch", batch.end_offset, base=batch.base_offset, epoch=batch.epoch)
                self.offset, self.epoch = batch.end_offset, batch.epoch


def end_of(cluster: Processes, node: LocalNode) -> int:
    end = cluster.metric(node, "quorate_raft_high_watermark")
    assert end is not None
    return int(end)


def test_a_watch_reports_keys_that_a_snapshot_install_removed(cluster: Processes) -> None:
    """Refused with the readable range, under the open stream and on a resume; then begun again."""
    node = a_follower(cluster)
    watcher = Watcher(node)
    asyncio.run(_watch_over_an_install(cluster, node, watcher))
    assert [str(each) for each in watch_violations(watcher.history)] == []
    states = [each for each in watcher.history.deliveries if each.what == "state"]
    assert len(states) == 2


async def _watch_over_an_install(cluster: Processes, node: LocalNode, watcher: Watcher) -> None:
    await asyncio.to_thread(write_configs, cluster, ["1"])
    started = asyncio.Event()
    take = watcher._take

    def take_and_report(response: metadata_pb2.WatchResponse) -> None:
        take(response)
        if watcher.offset >= 0:
            started.set()

    watcher._take = take_and_report  # type: ignore[method-assign]  # to know when it hangs there
    hanging = asyncio.create_task(watcher.read(1 << 40))
    await asyncio.wait_for(started.wait(), READ_SECONDS_MAX)
    cluster.freeze(node)
    try:
        start = await asyncio.to_thread(outrun, cluster, end_of(cluster, cluster.leader()))
    finally:
        cluster.thaw(node)
    with pytest.raises(OffsetOutOfRangeError) as caught:
        await hanging
    _check_refusal(caught.value, watcher, start)
    await asyncio.to_thread(cluster.until_logged, node, "outcome=installed")

    with pytest.raises(OffsetOutOfRangeError) as caught:
        await watcher.read(1 << 40, from_offset=watcher.offset)
    _check_refusal(caught.value, watcher, start)

    watcher.offset = watcher.epoch = -1
    await asyncio.to_thread(write_configs, cluster, ["2", "3"])
    await watcher.read(end_of(cluster, cluster.leader()))
    assert watcher.offset >= start


def _check_refusal(error: OffsetOutOfRangeError, watcher: Watcher, start: int) -> None:
    assert not isinstance(error, LogTruncationError)
    bounds = error.bounds
    assert bounds is not None
    assert watcher.offset < start <= bounds.earliest_offset <= bounds.high_watermark
    watcher.note("refused", bounds.high_watermark, base=bounds.earliest_offset)
