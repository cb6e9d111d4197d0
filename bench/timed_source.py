"""The Spark source of the audit trail, with the processor time of each task's Python.

Spark counts the processor time of Java only. A task writes one line of JSON into the folder of the
option ``times``, which is on this machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from audit.source import ClusterMetadataSource
from audit.source_reader import OffsetRange

_spent = [0.0]
"""Processor time of this process when its last task ended: Spark uses processes again."""


class TimedSource(ClusterMetadataSource):
    """``cluster_metadata`` under another name and with the option ``times``."""

    def __init__(self, options: dict[str, str]) -> None:
        self._times = options.pop("times", "")
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "timed_metadata"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan the read, and time its tasks."""
        return _TimedReader(super().reader(schema), self._times)


class _TimedReader(DataSourceReader):
    def __init__(self, reader: DataSourceReader, times: str) -> None:
        self._reader = reader
        self._times = times

    def partitions(self) -> Sequence[InputPartition]:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in self._reader.read(partition):
            rows += batch.num_rows
            yield batch
        before, _spent[0] = _spent[0], time.process_time()
        if isinstance(partition, OffsetRange):
            found = {"start": partition.start, "cpu_s": _spent[0] - before, "rows": rows}
            name = f"{os.getpid()}-{time.monotonic_ns()}.json"
            Path(self._times, name).write_text(json.dumps(found), encoding="utf-8")
