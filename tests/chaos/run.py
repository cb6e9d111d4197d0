"""One run: a cluster, its clients, its nemesis, and the verdict on what the clients saw."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from history.check import Report, check
from history.history import History
from history.recorder import Recorder
from history.search import CheckResult
from history.storage import save
from quorate.client.client import Client
from quorate.demo.local_cluster import ClusterError
from quorate.demo.workload import Workload
from tests.chaos.cluster import ChaosCluster
from tests.chaos.nemesis import Nemesis
from tests.chaos.observers import LogReader, Watcher
from tests.chaos.requests import BROKERS
from tests.chaos.schedule import NETWORK, PROCESS, Weights
from tests.chaos.tally import Tally
from tests.chaos.workload import Work
from tests.integration.write_check import log_violations, read_log

LONG_FAULTS_MIN = 300
LONG_OPERATIONS_MIN = 500_000
"""Minimum of a run of half an hour: answered operations of clients, without deliveries."""
WATCHERS = 2
SETTLE_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1


@dataclass(slots=True)
class Result:
    """The result of a run."""

    seed: int
    seconds: float
    tally: Tally
    report: Report
    problems: list[str] = field(default_factory=list)
    """Violations outside of the history: files that differ, calls that hang."""
    check_seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return self.report.check_result is CheckResult.VALID and not self.problems

    def shortfalls(self, *, faults_min: int, operations_min: int) -> list[str]:
        """Return one sentence for each minimum that the run missed; deliveries do not count."""
        found = []
        if (faults := self.tally.effects.total()) < faults_min:
            found.append(f"{faults:,} faults with an effect, at least {faults_min:,} are needed")
        if self.report.answered < operations_min:
            found.append(
                f"{self.report.answered:,} answered operations of clients, "
                f"at least {operations_min:,} are needed"
            )
        return found

    def exit_code(self, shortfalls: list[str]) -> int:
        """3 if something is violated or undecided, 1 if only too little happened, else 0."""
        if not self.is_good:
            return 3
        return 1 if shortfalls else 0

    def count(self, *rules: str) -> int:
        return sum(each.rule in rules for each in self.report.violations)

    def document(self) -> dict[str, object]:
        """For programs."""
        report = self.report
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            **self.tally.document(),
            "operations": report.operations,
            "answered": report.answered,
            "operations_by_outcome": report.outcomes,
            "keys": report.keys,
            "log_batches": report.batches,
            "log_gaps": report.gaps,
            "log_offsets_unread": report.unread,
            "watched": report.deliveries,
            "lost": self.count("lost-write"),
            "duplicated": self.count("applied-twice"),
            "stale": self.count("stale-read", "stale-write", "session-went-back", "at-least"),
            "not_linearizable": self.count("linearizable", "prefix"),
            "check_result": report.check_result.value
            if not self.problems
            else CheckResult.INVALID.value,
            "undecided": report.undecided,
            "violations": [str(each) for each in report.violations],
            "problems": self.problems,
            "search_steps": report.steps,
            "check_seconds": round(self.check_seconds, 1),
        }


class Run:
    """One run; use it once. All its files are below ``folder``."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        seconds: float,
        voters: int = 3,
        settings: dict[str, object] | None = None,
        weights: tuple[Weights, Weights] = (PROCESS, NETWORK),
        settle_seconds: float = SETTLE_SECONDS_MAX,
        has_peer_tcp: bool = False,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._folder = folder
        self._seed = seed
        self._seconds = seconds
        self._announce = announce
        self._weights = weights
        self._settle_seconds = settle_seconds
        self.cluster = ChaosCluster(
            folder, voters=voters, settings=settings, has_peer_tcp=has_peer_tcp
        )
        self.history = History(notes={"seed": seed, "voters": voters})

    def execute(self) -> Result:
        """Run and check. Keeps `history.jsonl` and ``result.json`` in the folder.

        Raises:
            ClusterError: The cluster does not come back after all faults have ended.
        """
        self.cluster.format_all()
        try:
            tally, problems = asyncio.run(self._run())
        finally:
            self.cluster.end_all()
            save(self.history, self._folder / "history.jsonl")
        return self.evaluate(tally, problems)

    def evaluate(self, tally: Tally, problems: list[str]) -> Result:
        """Check the present history, and write the result file."""
        began = time.monotonic()
        report = check(self.history)
        result = Result(self._seed, self._seconds, tally, report, problems)
        result.check_seconds = time.monotonic() - began
        document = json.dumps(result.document(), indent=2)
        (self._folder / "result.json").write_text(document + "\n")
        return result

    async def _run(self) -> tuple[Tally, list[str]]:
        cluster = self.cluster
        began = time.monotonic()
        await cluster.open_proxies()
        await asyncio.to_thread(cluster.start_all)
        recorder = Recorder(self.history, lambda: int((time.monotonic() - began) * 1e6))
        work = Work(cluster, recorder, self._seed)
        nemesis = Nemesis(
            cluster, self._seed, self._weights, lambda text: self._announce(self._now(began, text))
        )
        helper = Client(cluster.addresses, client_id="helper", timeout_seconds=30)
        brokers = Workload(helper, cluster.cluster_id, seed=self._seed, brokers=len(BROKERS))
        await brokers.start_brokers()
        reader = LogReader(self._reader("reader"), self.history)
        watchers = [
            Watcher(self._reader(f"watcher{each}"), self.history, f"watcher{each}")
            for each in range(WATCHERS)
        ]
        watching = [asyncio.create_task(each.run()) for each in watchers]
        tasks = [asyncio.create_task(reader.run()), *watching]
        try:
            async with brokers.heartbeats():
                working = asyncio.create_task(work.run())
                tasks.append(working)
                await nemesis.run(self._seconds, self._settle_seconds)
                await self._settle(work)
                work.stop()
                await working
                await work.look_at_everything()
            await self._read_to_the_end(reader, watchers)
            await stop(watching)
            # The leader continues to write NoOp records, so the reader must pass all watchers.
            await self._read_to_the_end(reader, watchers)
            await self._equal_images(helper)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await work.close()
            await helper.close()
            problems = [*nemesis.problems, *work.faults, *reader.faults]
            problems += [fault for each in watchers for fault in each.faults]
            problems += await self._stop_and_compare(reader)
            await cluster.close_proxies()
        return nemesis.tally, problems

    def _reader(self, name: str) -> Client:
        return Client(self.cluster.addresses, client_id=name, timeout_seconds=5)

    @staticmethod
    def _now(began: float, text: str) -> str:
        return f"{time.monotonic() - began:7.1f} s  {text}"

    async def _settle(self, work: Work) -> None:
        """Check that writes are acknowledged again after the last fault."""
        wanted = work.acknowledged + 20
        await self._until("writes after the last fault", lambda: work.acknowledged >= wanted)

    async def _read_to_the_end(self, reader: LogReader, watchers: list[Watcher]) -> None:
        end = max((each.offset for each in self.history.operations), default=0)
        await self._until(
            "readers at the end of the log",
            lambda: have_read(end, reader, watchers),
        )

    async def _equal_images(self, client: Client) -> None:
        """Check that all nodes reach the same image; digests are compared at equal offsets."""
        del client
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settle_seconds
        while True:
            seen = set()
            for node in self.cluster.voters:
                async with Client([node.address], client_id="check") as each:
                    answer = await each.describe_image()
                    seen.add((answer.position.offset, answer.state_digest))
            if len(seen) == 1:
                return
            if loop.time() > deadline:
                raise ClusterError(f"images stay different: {seen}")
            await asyncio.sleep(POLL_SECONDS)

    async def _until(self, what: str, is_done: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settle_seconds
        while not is_done():
            if loop.time() > deadline:
                raise ClusterError(f"{what}: not within {self._settle_seconds:g} s")
            await asyncio.sleep(POLL_SECONDS)

    async def _stop_and_compare(self, reader: LogReader) -> list[str]:
        """Stop all nodes; compare their files with one another and with what was read."""
        cluster = self.cluster
        problems = []
        for node in cluster.voters:
            if node.is_running:
                try:
                    status = await asyncio.to_thread(cluster.stop, node)
                except ClusterError as error:
                    problems.append(str(error))
                    continue
                if status != 0:
                    problems.append(f"node {node.id} ended with {status} when asked to stop")
        logs = {node.id: read_log(node.data_dir, reader.offset) for node in cluster.voters}
        return problems + log_violations(logs, reader.records)


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel the tasks, and return when they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def have_read(end: int, reader: LogReader, watchers: list[Watcher]) -> bool:
    """Return whether all have read up to ``end``, and the reader as far as every watcher.

    The batches of watchers are compared with those of the reader. A watcher or reader that has
    found a problem reads no more.
    """
    if not all(each.offset >= end or each.faults for each in watchers):
        return False
    return bool(reader.faults) or reader.offset >= max((end, *(each.offset for each in watchers)))


def default_folder(seed: int) -> Path:
    """Return the default directory of a run."""
    return Path(os.environ.get("TMPDIR", "/tmp")) / f"quorate-chaos-{seed}-{os.getpid()}"
