"""The steps of the demo: a quorum of real servers on this machine, each step checked.

Processes, files and commands are those that a user would have. A step that does
not show what it claims ends the demo with its name and the cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorate.client.client import Client
from quorate.client.errors import ClientError
from quorate.demo.audit_steps import AuditSteps
from quorate.demo.local_cluster import ClusterError, LocalCluster, LocalNode
from quorate.demo.patience import POLL_SECONDS, SECONDS_MAX, until
from quorate.demo.secure_steps import SecureSteps
from quorate.demo.stage import Stage
from quorate.demo.workload import Workload
from quorum.v1 import commands_pb2 as wire

STEPS = 12
SECURED_STEPS = STEPS + 1
CHUNKS_MIN = 20
_CHUNKS_WANTED = 24
_CHUNK = re.compile(r"event=chunk_received .*position=(\d+) chunk_bytes=(\d+) size=(\d+)")
_INSTALLED = re.compile(r"event=download_ended .*outcome=installed")

_SHOWN_METRICS = (
    "quorate_raft_state",
    "quorate_raft_high_watermark",
    "quorate_raft_replica_lag_records",
    "quorate_snapshot_size_bytes",
    "quorate_topics",
    "quorate_partitions ",
)

SETTINGS: dict[str, object] = {
    "log.segment_bytes": 256 << 10,
    "snapshot.max_bytes_between": 256 << 10,
    "snapshot.min_changed_records_ratio": 0.2,
    # A replica that is silent for this long no longer delays trimming (requirement 630.5).
    "quorum.observer_session_ms": 3_000,
    "limits.disk_free_bytes_min": 0,
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the realistic cluster is."""

    brokers: int = 30
    topics: int = 300
    partitions: int = 10
    seed: int = 1


class Story:
    """One run of the demo. Owned by one event loop; the cluster is stopped by its creator."""

    def __init__(
        self, cluster: LocalCluster, stage: Stage, scale: Scale, *, source: Path | None
    ) -> None:
        self.cluster = cluster
        self._stage = stage
        self._scale = scale
        self._source = source
        self._client: Client
        self._workload: Workload
        self._log_sizes: dict[int, int] = {}

    async def run(self) -> None:
        """All steps in order.

        Raises:
            StepFailedError: A step failed.
        """
        stage = self._stage
        with stage.step("Format three voters and an observer, and start them"):
            self._start()
        with stage.step("Elect a leader"):
            await self._elect()
        if self.cluster.security is not None:
            steps = SecureSteps(self.cluster, self.cluster.security, stage)
            with stage.step("Give a user a password and rights; the rest is refused"):
                await asyncio.to_thread(steps.give_rights)
                await asyncio.to_thread(steps.show_refusals)
        self._client = self._connect(self.cluster.user_addresses, "showing the whole job")
        try:
            await self._with_cluster()
        finally:
            await self._client.close()

    def _connect(self, addresses: list[str], reason: str = "") -> Client:
        security = self.cluster.security
        proof = {} if security is None else security.user_arguments()
        return Client(addresses, client_id="demo", reason=reason, **proof)

    async def _with_cluster(self) -> None:
        stage = self._stage
        with stage.step("Write the metadata of a cluster through gRPC"):
            await self._write()
        async with self._workload.heartbeats():
            with stage.step("Stop one voter; write on until the log is trimmed beyond its end"):
                lagging = await self._outrun_a_voter()
            with stage.step("Bring it back: bootstrapped by FetchSnapshot"):
                await self._bring_back(lagging)
            with stage.step("A brand-new observer joins the same way"):
                await self._join()
            with stage.step("Kill the leader with SIGKILL; writes go on"):
                await self._kill_leader()
            with stage.step("Compare the images of all replicas"):
                await self._compare()
            with stage.step("Query it over gRPC and scrape its metrics"):
                await self._look()
        audit = AuditSteps(self.cluster, stage, self._workload)
        with stage.step("Export the metadata history to Parquet"):
            await audit.export()
        with stage.step("Ask the three audit questions, without a JVM"):
            answers = await asyncio.to_thread(audit.ask_duckdb)
        with stage.step("Ask Spark as well: the same rows"):
            await asyncio.to_thread(audit.ask_spark, answers)

    # ------------------------------------------------------------------ steps

    def _start(self) -> None:
        if self.cluster.security is not None:
            self.cluster.security.make(self.cluster.command)
            self._stage.announce(
                f"an authority and secrets in {self.cluster.security.certs.parent}"
            )
        self.cluster.add_observer(4)
        for node in self.cluster.nodes.values():
            self.cluster.format(node)
            self.cluster.start(node)
            kind = "voter" if node.is_voter else "observer"
            self._stage.announce(
                f"node {node.id} ({kind}) on {node.address}, data in {node.data_dir}"
            )

    async def _elect(self) -> None:
        nodes = list(self.cluster.nodes.values())
        await asyncio.to_thread(self.cluster.wait_ready, nodes)
        leader = self._leader()
        self._stage.announce(
            f"node {leader.id} leads epoch {self._metric(leader, 'raft_epoch'):.0f}"
        )

    async def _write(self) -> None:
        if self._source is not None:
            await asyncio.to_thread(self._import, self._source)
        scale = self._scale
        self._workload = Workload(
            self._client, self.cluster.cluster_id, seed=scale.seed, brokers=scale.brokers
        )
        await self._workload.start_brokers()
        self._stage.announce(f"{scale.brokers} brokers registered and unfenced")
        async with self._workload.heartbeats():
            with self._stage.bar("topics created", scale.topics) as bar:
                await self._workload.create_topics(
                    scale.topics, scale.partitions, on_topic=bar.advance
                )
        self._stage.announce(f"{scale.topics * scale.partitions} partitions, three replicas each")

    def _import(self, source: Path) -> None:
        self._stage.show(self._command("import", str(source)))

    async def _outrun_a_voter(self) -> LocalNode:
        leader = self._leader()
        lagging = next(
            node for node in self.cluster.nodes.values() if node.is_voter and node is not leader
        )
        await asyncio.to_thread(self.cluster.stop, lagging)
        # The metric was read before the stop; the node may have fetched more meanwhile.
        end_offset = int(self._metric(self._leader(), "raft_log_end_offset"))
        self._stage.announce(f"node {lagging.id} stopped; its log ends at {end_offset} or before")
        checkpoints: set[int] = set()

        def is_outrun() -> bool:
            newest = int(self._metric(self._leader(), "snapshot_end_offset"))
            if newest and newest not in checkpoints:
                checkpoints.add(newest)
                self._stage.announce(
                    f"checkpoint of the image at offset {newest} by the thresholds"
                )
            return self._metric(self._leader(), "raft_log_start_offset") > end_offset

        with self._stage.bar("changes written", None) as bar:
            await self._churn_until(is_outrun, bar.advance)
        start_offset = int(self._metric(self._leader(), "raft_log_start_offset"))
        self._stage.announce(
            f"the leader's log starts at {start_offset}; node {lagging.id}'s ends before"
        )
        return lagging

    async def _bring_back(self, node: LocalNode) -> None:
        self._want_many_chunks(node)
        await asyncio.to_thread(self.cluster.start, node)
        await self._watch_bootstrap(node)

    async def _join(self) -> None:
        node = self.cluster.add_observer(5)
        self.cluster.format(node)
        self._want_many_chunks(node)
        await asyncio.to_thread(self.cluster.start, node)
        await self._watch_bootstrap(node)

    async def _kill_leader(self) -> None:
        leader = self._leader()
        await asyncio.to_thread(self.cluster.kill, leader)
        began = time.monotonic()
        await self._client.set_config(
            wire.CONFIG_RESOURCE_TYPE_TOPIC, self._workload.topics[0], "retention.ms", "3600001"
        )
        waited = time.monotonic() - began
        successor = await until("a new leader", self._elected)
        self._stage.announce(
            f"node {leader.id} killed; the next write was acknowledged after {waited * 1000:.0f} ms"
            f" by node {successor.id}"
        )
        with self._stage.bar("changes written", 200) as bar:
            await self._workload.churn(should_stop=lambda: bar.done >= 200, on_write=bar.advance)
        await asyncio.to_thread(self.cluster.start, leader)
        await asyncio.to_thread(self.cluster.wait_ready, [leader])
        self._stage.announce(f"node {leader.id} is back as a follower")

    async def _compare(self) -> None:
        digests = await until("equal images", self._equal_digests)
        for node_id, digest in digests.items():
            self._stage.announce(f"node {node_id}: image digest {digest}")

    async def _look(self) -> None:
        topic = self._workload.topics[0]
        self._stage.announce(f"quorate topic describe {topic}")
        self._stage.show(self._command("topic", "describe", topic))
        self._stage.announce("quorate quorum describe replication")
        self._stage.show(self._command("quorum", "describe", "replication"))
        lines = self.cluster.metrics(self._leader()).splitlines()
        self._stage.announce("GET /metrics of the leader, a few lines of it")
        self._stage.show("\n".join(line for line in lines if line.startswith(_SHOWN_METRICS)))

    # ------------------------------------------------------------------ how it is done

    async def _churn_until(self, is_done: Callable[[], bool], on_write: Callable[[], None]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        finished = asyncio.Event()

        async def look() -> None:
            while not await asyncio.to_thread(is_done):
                if time.monotonic() > deadline:
                    raise ClusterError(f"it did not happen within {SECONDS_MAX:g} s")
                await asyncio.sleep(POLL_SECONDS)

        async def write() -> None:
            await self._workload.churn(should_stop=finished.is_set, on_write=on_write)

        writing = asyncio.create_task(write(), name="churn")
        looking = asyncio.create_task(look(), name="look")
        try:
            await asyncio.wait({writing, looking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            finished.set()
            await asyncio.gather(writing, looking)

    def _want_many_chunks(self, node: LocalNode) -> None:
        size = int(self._metric(self._leader(), "snapshot_size_bytes"))
        node.settings["quorum.snapshot_chunk_bytes"] = max(1, size // _CHUNKS_WANTED)
        # Chunks are logged at this level only.
        node.settings["logging.level"] = "debug"
        self.cluster.configure(node)
        if node.log_path.exists():
            self._log_sizes[node.id] = len(node.log_path.read_text(errors="replace"))
        self._stage.announce(
            f"checkpoint of {size} bytes, fetched in slices of {size // _CHUNKS_WANTED}"
        )

    async def _watch_bootstrap(self, node: LocalNode) -> None:
        chunks = 0
        position = self._log_sizes.get(node.id, 0)
        deadline = time.monotonic() + SECONDS_MAX
        is_ready = is_installed = False
        while not (is_installed and is_ready):
            if not node.is_running or time.monotonic() > deadline:
                raise ClusterError(f"node {node.id} did not catch up:\n{node.log_tail()}")
            is_ready = await asyncio.to_thread(self.cluster.is_ready, node)
            text = node.log_path.read_text(errors="replace")
            for match in _CHUNK.finditer(text, position):
                chunks += 1
                done, size = int(match[1]) + int(match[2]), int(match[3])
                self._stage.announce(f"chunk {chunks}: {done} of {size} bytes")
                position = match.end()
            is_installed = _INSTALLED.search(text, position) is not None
            await asyncio.sleep(POLL_SECONDS)
        if chunks < CHUNKS_MIN:
            raise ClusterError(f"only {chunks} chunks were fetched, {CHUNKS_MIN} expected")
        self._stage.announce(f"node {node.id} loaded it and follows the log, {chunks} chunks later")

    async def _equal_digests(self) -> dict[int, str] | None:
        digests: dict[int, str] = {}
        for node in self.cluster.nodes.values():
            if not node.is_running:
                continue
            async with self._connect([node.user_address]) as client:
                with contextlib.suppress(ClientError):
                    digests[node.id] = (await client.describe_image()).state_digest.hex()
        running = sum(node.is_running for node in self.cluster.nodes.values())
        return digests if len(digests) == running and len(set(digests.values())) == 1 else None

    def _find_leader(self) -> LocalNode | None:
        for node in self.cluster.nodes.values():
            if node.is_running and self.cluster.metric(node, "quorate_raft_can_write") == 1:
                return node
        return None

    async def _elected(self) -> LocalNode | None:
        return await asyncio.to_thread(self._find_leader)

    def _leader(self) -> LocalNode:
        leader = self._find_leader()
        if leader is None:
            raise ClusterError("no node leads")
        return leader

    def _metric(self, node: LocalNode, name: str) -> float:
        value = self.cluster.metric(node, f"quorate_{name}")
        if value is None:
            raise ClusterError(f"node {node.id} does not show quorate_{name}")
        return value

    def _command(self, *arguments: str) -> str:
        return self.cluster.command(*arguments, "--bootstrap", ",".join(self.cluster.addresses))
