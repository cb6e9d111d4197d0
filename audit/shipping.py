"""The zip of modules that Spark executors need, for clusters where Quorate is not installed.

The list is short on purpose (architecture, guard 4): only modules that read, without gRPC, protobuf
or an event loop. Besides the standard library they need ``msgpack``, ``crc32c``, ``immutables``,
``zstandard`` for compressed batches, and ``pyarrow``.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import quorum
import snapshot
import statemachine
from audit import schema

_FOLDERS = {
    "audit": Path(schema.__file__).parent,
    "quorum": Path(quorum.__file__).parent,
    "snapshot": Path(snapshot.__file__).parent,
    "statemachine": Path(statemachine.__file__).parent,
}
_AUDIT = (
    "__init__", "errors", "history_rows", "lineage", "plan", "reader", "schema", "segment_file",
    "source_reader", "source_stream", "typed_rows", "typed_tables", "scan",
)  # fmt: skip
_DRIVER_ONLY = frozenset({"core", "log", "runtime", "transport", "v1", "prepare"})
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def write_executor_zip(path: Path) -> Path:
    """Write the zip; pass it to ``SparkContext.addPyFile`` or ``--py-files``.

    Equal sources give equal bytes.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package, folder in sorted(_FOLDERS.items()):
            for file in sorted(folder.rglob("*.py")):
                inner = file.relative_to(folder)
                if package == "audit" and inner.stem not in _AUDIT:
                    continue
                if _DRIVER_ONLY.isdisjoint(inner.parts):
                    info = zipfile.ZipInfo(f"{package}/{inner.as_posix()}", _FIXED_DATE)
                    info.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(info, file.read_bytes())
    return path
