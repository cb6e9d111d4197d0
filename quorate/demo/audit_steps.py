"""The last steps of the demo: the export of the metadata history, and questions about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from quorate.demo.local_cluster import ClusterError, LocalCluster
from quorate.demo.patience import until
from quorate.demo.stage import Stage
from quorate.demo.workload import Workload

_EXPORTED = re.compile(r"end_offset: +(\d+)")
_QUESTIONS = {
    "partitions": "the state of all partitions",
    "leaders": "who led when",
    "configs": "who changed what, and why",
}
_ROWS_SHOWN = 8


class AuditSteps:
    """Exports an observer's directory, and asks about the workload's first topic."""

    def __init__(self, cluster: LocalCluster, stage: Stage, workload: Workload) -> None:
        self._cluster = cluster
        self._stage = stage
        self._workload = workload
        self._export_dir = cluster.folder / "export"

    async def export(self) -> None:
        """Export twice: a second run adds what was written meanwhile."""
        topic = self._workload.topics[0]
        # However long the export takes, every partition has a leader afterwards.
        async with self._workload.heartbeats():
            self._stage.show(await asyncio.to_thread(self._run_export))
            for days in (3, 7):
                await self._workload.set_retention(topic, days=days, reason=f"keep it {days} days")
        broker, end_offset = await self._workload.fence_leader_of(topic)
        self._stage.announce(
            f"two configuration changes of {topic}, and broker {broker} fenced; exporting again"
        )

        async def exported() -> str | None:
            # The committed offset of a directory may be a second old.
            printed = await asyncio.to_thread(self._run_export)
            found = _EXPORTED.search(printed)
            return printed if found and int(found[1]) >= end_offset else None

        self._stage.show(await until("an export of the changes", exported))
        files = sorted(self._export_dir.rglob("*.parquet"))
        if not files:
            raise ClusterError(f"no Parquet file appeared in {self._export_dir}")
        self._stage.announce(f"{len(files)} Parquet files in {self._export_dir}")

    def _run_export(self) -> str:
        # An observer's directory is the simplest live feed of the log.
        observer = self._cluster.nodes[4]
        return self._cluster.command(
            "export", str(observer.data_dir), "--to", str(self._export_dir)
        )

    def _ask(self, question: str, *options: str) -> str:
        topic = self._workload.topics[0]
        self._stage.announce(
            f"quorate audit {question} --export … --topic {topic} {' '.join(options)}  "
            f"({_QUESTIONS[question]})"
        )
        folder = str(self._export_dir)
        return self._cluster.command(
            "audit", question, "--export", folder, "--topic", topic, *options
        )

    def ask_duckdb(self) -> dict[str, str]:
        """Return the answers by question."""
        topic = self._workload.topics[0]
        answers = {}
        for question in _QUESTIONS:
            answers[question] = self._ask(question)
            rows = answers[question].rstrip().splitlines()
            if len(rows) < 2:
                raise ClusterError(f"audit {question} has no answer for {topic}")
            self._stage.show("\n".join(rows[:_ROWS_SHOWN]))
            if len(rows) > _ROWS_SHOWN:
                self._stage.announce(f"… and {len(rows) - _ROWS_SHOWN} more rows")
        return answers

    def ask_spark(self, answers: Mapping[str, str]) -> None:
        """Compare the answers with Spark's."""
        for question, answer in answers.items():
            if self._ask(question, "--engine", "spark") != answer:
                raise ClusterError(f"audit {question} has other rows in Spark")
        self._stage.announce(f"{len(answers)} answers, the same line by line")
