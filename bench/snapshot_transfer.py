"""FetchSnapshot between two processes: megabytes per second, verified, before the final sync.

Uses the node's own parts: ``read_chunk`` of the store with its checksum, the peer stream, and on
the receiver a thread that checks every batch and writes the part file. Requests in flight and
waiting chunks are at the configured limits.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crc32c import crc32c
from grpc import aio

from bench.loop import loop_factory
from quorum.config import QuorumConfig
from quorum.core.messages.message_types import Received, ReceivedRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.log.filesystem import OsFileSystem
from quorum.runtime.clock import SystemClock
from quorum.transport.hello import Hello
from quorum.transport.limits import SERVER_OPTIONS
from quorum.transport.link import Link
from quorum.transport.peers import PeerNetwork
from quorum.types import OffsetAndEpoch, ReplicaKey
from snapshot.store import DirectorySnapshotStore
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord

SNAPSHOT = OffsetAndEpoch(1_000_000, 1)
CLUSTER = "bench"
_KEYS = (ReplicaKey(1, b"\x01" * 16), ReplicaKey(2, b"\x02" * 16))
_VALUE = "v" * 400
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class TransferResult:
    """One download."""

    size_bytes: int
    seconds: float
    final_sync_seconds: float
    file_write_mb_per_second: float
    """The floor: one process only writes a new file of the same size."""

    @property
    def mb_per_second(self) -> float:
        """Decimal megabytes per second, before the final sync."""
        return self.size_bytes / self.seconds / 1e6


def _values(size_bytes: int) -> Iterator[bytes]:
    made, number = 0, 0
    while made < size_bytes:
        value = encode_record(ConfigRecord(2, f"topic-{number}", "quorate.note", _VALUE))
        made += len(value)
        number += 1
        yield value


class _Sender:
    """The leader's side: responds to each request with the requested chunk."""

    def __init__(self, directory: Path) -> None:
        self.network: PeerNetwork | None = None
        self._store = DirectorySnapshotStore(OsFileSystem(), directory, SystemClock())

    def receive(self, sender: int, received: Received) -> None:
        """Serve one chunk."""
        assert isinstance(received, ReceivedRequest)
        message = received.request
        assert isinstance(message, FetchSnapshotRequest)
        assert self.network is not None
        chunk = self._store.read_chunk(message.snapshot_id, message.position, message.max_bytes)
        answer = FetchSnapshotResponse(
            message.request_id, ErrorCode.NONE, 1, 1, message.snapshot_id,
            size=self._store.size(message.snapshot_id), position=message.position,
            chunk=chunk, chunk_crc=crc32c(chunk),
        )  # fmt: skip
        self.network.send(sender, answer)

    def on_refused(self, peer: int) -> None:
        """Not expected."""

    def on_request_failed(self, peer: int, request_id: int, *_: object) -> None:
        """Not expected: the sender makes no requests."""


async def _serve(directory: Path) -> None:
    sender = _Sender(directory)
    sender.network = PeerNetwork(Link(Hello(CLUSTER, _KEYS[0], b"", process_id=b"0"), sender, 10.0))
    server = aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers((sender.network.service.handlers(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


class _Receiver:
    """The replica's side: requests chunk after chunk; a thread verifies and writes them."""

    def __init__(self, directory: Path) -> None:
        self.network: PeerNetwork | None = None
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self.store = DirectorySnapshotStore(OsFileSystem(), directory, SystemClock())
        self.store.begin_download(SNAPSHOT)
        self.position = 0
        self._writer = ThreadPoolExecutor(1)
        self._unwritten = 0
        self._requests = 0
        self._asked = 0
        self._size = 0

    async def connected(self, network: PeerNetwork) -> None:
        """Return once there is a stream to the sender."""
        while not any(status.is_connected for status in network.statuses()):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)

    def ask(self) -> None:
        """Keep requests in flight as the core does, unless the disk is behind or all are done."""
        if self._size and self.position >= self._size:
            if not self._unwritten and not self.done.done():
                self.done.set_result(None)
            return
        assert self.network is not None
        config, size = QuorumConfig(), self._size or 1
        while (
            self._asked < size
            and self._requests < config.snapshot_requests_max
            and self._requests + self._unwritten < config.unwritten_chunks_max
        ):
            request = FetchSnapshotRequest(
                self._asked + 1, CLUSTER, _KEYS[1], 1, SNAPSHOT, self._asked,
                config.snapshot_chunk_bytes,
            )  # fmt: skip
            self._requests += 1
            self._asked += config.snapshot_chunk_bytes
            self.network.send(1, request)

    def receive(self, _sender: int, message: Received) -> None:
        """Pass a chunk to the writing thread and request the next."""
        assert isinstance(message, FetchSnapshotResponse)
        assert crc32c(message.chunk) == message.chunk_crc
        self._requests -= 1
        self._size = message.size
        written = self._writer.submit(
            self.store.write_chunk, SNAPSHOT, message.position, message.chunk
        )
        self.position += len(message.chunk)
        self._unwritten += 1
        written.add_done_callback(
            lambda outcome: self._loop.call_soon_threadsafe(self._written, outcome)
        )
        self.ask()

    def _written(self, outcome: Future[None]) -> None:
        outcome.result()
        self._unwritten -= 1
        self.ask()

    def on_refused(self, peer: int) -> None:
        """Fail the download: the sender has ended."""
        self.done.set_exception(RuntimeError(f"node {peer} is gone"))

    def on_request_failed(self, peer: int, request_id: int, *_: object) -> None:
        """Fail the download: a chunk did not arrive."""
        self.done.set_exception(RuntimeError(f"no response from node {peer} to {request_id}"))


def _file_write_mb_per_second(directory: Path, size_bytes: int) -> float:
    chunk = bytes(QuorumConfig().snapshot_chunk_bytes)
    path = directory / "floor"
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(size_bytes // len(chunk)):
            file.write(chunk)
    seconds = time.perf_counter() - started
    path.unlink()
    return size_bytes / seconds / 1e6


async def _download(port: int, directory: Path, floor: float) -> TransferResult:
    receiver = _Receiver(directory)
    network = PeerNetwork(Link(Hello(CLUSTER, _KEYS[1], b"", process_id=b"1"), receiver, 10.0))
    receiver.network = network
    network.set_peers({1: f"127.0.0.1:{port}"})
    await receiver.connected(network)
    started = time.perf_counter()
    receiver.ask()
    await receiver.done
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    receiver.store.seal_download(SNAPSHOT)
    final_sync_seconds = time.perf_counter() - started
    receiver.store.close()
    await network.stop()
    return TransferResult(receiver.position, seconds, final_sync_seconds, floor)


def _with_loop(main: Any) -> Any:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


def measure_transfer(folder: Path, *, size_bytes: int, rounds: int) -> list[TransferResult]:
    """Write an intact checkpoint of about ``size_bytes`` and download it ``rounds`` times."""
    results: list[TransferResult] = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        source = Path(name) / "source"
        source.mkdir()
        write_checkpoint(
            OsFileSystem(), source, SNAPSHOT, values=_values(size_bytes),
            last_contained_log_timestamp=1,
        )  # fmt: skip
        command = [sys.executable, "-m", "bench.snapshot_transfer", str(source)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline())
                for number in range(rounds):
                    target = Path(name) / f"target-{number}"
                    target.mkdir()
                    floor = _file_write_mb_per_second(target, size_bytes)
                    results.append(_with_loop(_download(port, target, floor)))
                    # Memory that the machine allocates for the first time is many times slower
                    # than memory that the file cache used before, as in a running node.
                    shutil.rmtree(target)
            finally:
                process.kill()
    return results


if __name__ == "__main__":
    _with_loop(_serve(Path(sys.argv[1])))
