"""A Python with what Spark executors need, and without Quorate."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

NEEDED = ("msgpack", "crc32c", "immutables", "zstandard", "pyarrow", "pyspark", "py4j")
"""What docs/audit-spark.md asks for on executors, and what Spark itself brings."""


def bare_python(folder: Path) -> Path:
    """Make an environment with only what executors need, linked from this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    for name in NEEDED:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (site / source.name).symlink_to(source)
        metadata = importlib.metadata.distribution(name).locate_file("")
        for info in Path(str(metadata)).glob(f"{name}-*.dist-info"):
            (site / info.name).symlink_to(info)
    return folder / "bin" / "python"
