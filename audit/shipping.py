"""The zip of modules that Spark executors need, for clusters where Quorate is not installed.

The list is short on purpose (architecture, guard 4): only modules that plan and read, without gRPC,
protobuf or an event loop. Spark plans in a Python process of its own, with the executors' Python,
so planning is part of it. Besides the standard library they need ``msgpack``, ``crc32c``,
``immutables``, ``zstandard`` for compressed batches, and ``pyarrow``.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import quorum
import snapshot
import statemachine
from audit import schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDERS = {
    "audit": Path(schema.__file__).parent,
    "quorum": Path(quorum.__file__).parent,
    "snapshot": Path(snapshot.__file__).parent,
    "statemachine": Path(statemachine.__file__).parent,
}
_AUDIT = (
    "__init__", "arrow_schema", "chosen_partitions", "cycle_collection", "directory", "errors",
    "export_files", "history_rows", "lineage", "partition_rows", "plan", "position", "reader",
    "replay", "scan", "schema", "segment_file", "source", "source_endpoint", "source_path",
    "source_reader", "source_stream", "splits", "typed_rows", "typed_tables",
)  # fmt: skip
# Folders and modules that only nodes use. A test compares the zip with what the source imports.
_LEFT_OUT: dict[str, tuple[str, ...]] = {
    "quorum": (
        *("core", "runtime", "transport", "v1"),
        *("answered", "config", "fair_share", "protobuf_table", "scram", "supervisor"),
        *("log/append_checks", "log/chain", "log/directory_lock", "log/failure", "log/log_files"),
        *("log/quarantine_mark_file", "log/recent_digests", "log/recovery", "log/segmented_log"),
        *("log/verify", "listen_problem", "pem_pair", "watched_file"),
    ),
    "statemachine": (
        *("changes", "command_access", "config_catalog", "departures", "election"),
        *("encoded_runs", "feature_levels", "machine", "placement", "prepare"),
        *("redacted_records", "sessions"),
    ),
}  # fmt: skip
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def ship(spark: SparkSession) -> None:
    """Make the data source ``cluster_metadata`` known to a session whose executors lack Quorate.

    Sends the zip to them, then registers the source: Spark gives a source the files that were
    there when it was registered, so the other order ends in ModuleNotFoundError. The driver must
    have Quorate installed.
    """
    from audit.source import ClusterMetadataSource

    # Spark reads the file until the session ends.
    folder = tempfile.mkdtemp(prefix="quorate-executor-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spark.sparkContext.addPyFile(str(write_executor_zip(Path(folder) / "quorate-executor.zip")))
    spark.dataSource.register(ClusterMetadataSource)


def write_executor_zip(path: Path) -> Path:
    """Write the zip; pass it to ``SparkContext.addPyFile`` or ``--py-files`` before registering.

    Equal sources give equal bytes.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package, folder in sorted(_FOLDERS.items()):
            for file in sorted(folder.rglob("*.py")):
                inner = file.relative_to(folder)
                if package == "audit" and inner.stem not in _AUDIT:
                    continue
                module = inner.with_suffix("")
                if not any(module.is_relative_to(each) for each in _LEFT_OUT.get(package, ())):
                    info = zipfile.ZipInfo(f"{package}/{inner.as_posix()}", _FIXED_DATE)
                    info.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(info, file.read_bytes())
    return path
