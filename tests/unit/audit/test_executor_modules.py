"""What a Spark executor gets is complete, small, and free of the server's libraries."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import grimp

from audit.shipping import write_executor_zip
from audit.source import ClusterMetadataSource

ROOT = Path(__file__).resolve().parents[3]

READ = """
import sys
archive, site, source, checkout = sys.argv[1:]
sys.path[:0] = [archive, site]
sys.path[:] = [each for each in sys.path if each != checkout]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
from audit.plan import ReadPlan, SegmentFile
import audit.source_reader, audit.source_stream
assert audit.source_reader.__file__.startswith(archive), audit.source_reader.__file__
before = set(sys.modules)
segment = SegmentFile(source, 0, 0, 43)
plan = ReadPlan(source, end_offset=43, committed_offset=43, segments=(segment,))
reader = audit.source_reader.HistoryReader(plan, audit.source_reader.Question("history"), 0, 43)
rows = sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))
assert rows == 43, rows
banned = {"grpc", "google.protobuf", "asyncio", "quorum.log", "quorum.core", "quorum.v1"}
assert not banned & set(sys.modules), banned & set(sys.modules)
print("read", rows)
from audit.source import ClusterMetadataSource
from pathlib import Path
source = ClusterMetadataSource({"path": str(Path(source).parent), "uncommitted": "true"})
reader = source.reader(None)
assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 43
banned -= {"quorum.log"}
assert not banned & set(sys.modules), banned & set(sys.modules)
print("planned")
"""


def test_the_zip_alone_reads_a_log(tmp_path: Path) -> None:
    archive = write_executor_zip(tmp_path / "executor.zip")
    source = ROOT / "tests" / "data" / "kafka-kraft-log" / f"{0:020d}.log"
    answer = subprocess.run(
        [sys.executable, "-I", "-c", READ, archive, sysconfig.get_path("purelib"), source, ROOT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "read 43\nplanned\n"


def test_the_zip_is_small_and_reproducible(tmp_path: Path) -> None:
    first = write_executor_zip(tmp_path / "a.zip").read_bytes()
    assert write_executor_zip(tmp_path / "b.zip").read_bytes() == first
    assert len(first) < 272 << 10
    names = zipfile.ZipFile(tmp_path / "a.zip").namelist()
    assert not [name for name in names if name.startswith(("quorum/core", "quorum/v1", "quorate"))]


def test_the_zip_has_what_the_source_imports_and_no_more(tmp_path: Path) -> None:
    names = zipfile.ZipFile(write_executor_zip(tmp_path / "executor.zip")).namelist()
    held = {each.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for each in names}
    graph = grimp.build_graph(
        "audit",
        *("quorum", "snapshot", "statemachine"),
        exclude_type_checking_imports=True,
        cache_dir=None,
    )
    needed: set[str] = set()
    todo = ["audit.source"]
    while todo:
        module = todo.pop()
        if module not in needed:
            needed.add(module)
            # Importing a module imports the package that it is in, too.
            todo += [*graph.find_modules_directly_imported_by(module)]
            todo += [module.rpartition(".")[0]] if "." in module else []
    assert held == needed


def test_spark_finds_the_source_by_the_name_of_its_module() -> None:
    """Spark's rule: a top-level module called pyspark_*, with an attribute DefaultSource."""
    found = [info.name for info in pkgutil.iter_modules([str(ROOT)])]
    assert "pyspark_quorate" in found
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # With it, an editable install puts this folder on the path.
    assert project["tool"]["setuptools"]["package-dir"] == {"": "."}
    import pyspark_quorate

    assert pyspark_quorate.DefaultSource is ClusterMetadataSource
    assert pyspark_quorate.DefaultSource.name() == "cluster_metadata"
    # pushFilters is left to the base class, so Spark keeps the filters to itself.
    from pyspark.sql.datasource import DataSourceReader

    from audit.source_reader import HistoryReader

    assert HistoryReader.pushFilters is DataSourceReader.pushFilters
