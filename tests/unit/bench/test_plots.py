"""The plots of a run: one file per measured part, with every system and size in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.plots import draw, main
from bench.scale_operations import OPERATIONS

SIZES = (10_000, 1_000_000)
IMAGES = [
    {
        "partitions": size, "bytes_per_partition": 400.0, "load_records_per_second": 2e5,
        "checkpoint_records_per_second": 2e5, "iterated_per_second": 6e6, "fence_ms": 2.0,
        "fenced_partitions": size * 3 // 100, "lookup_us": 0.5,
        "operations_us": dict.fromkeys(OPERATIONS, 40.0),
    }
    for size in SIZES
]  # fmt: skip
WRITES = [{"clients": each, "rate": each * 100.0, "p50_ms": 2.0} for each in (1, 16, 256)]


@pytest.mark.parametrize(
    ("figures", "names", "words"),
    [
        ({"writes": WRITES, "peers": {"etcd": {"writes": WRITES}, "zookeeper": {}}},
         ["bench-writes.svg"], ["quorate", "etcd", "256"]),
        ({"writes": [], "peers": {}, "scale": {"images": IMAGES}},
         ["bench-scale.svg"], ["1,000,000", "fence", "iteration", "lookup of a topic",
          "delete a topic"]),
        ({"writes": [], "peers": {}}, [], []),
    ],
)  # fmt: skip
def test_each_measured_part_is_drawn(
    tmp_path: Path, figures: dict[str, Any], names: list[str], words: list[str]
) -> None:
    pytest.importorskip("matplotlib")
    paths = draw(figures, tmp_path / "new")
    assert [path.name for path in paths] == names
    # Text becomes outlines; each label is named in a comment beside them.
    text = "".join(path.read_text() for path in paths)
    assert [word for word in words if f"<!-- {word} -->" not in text] == []
    assert [path.read_text() for path in draw(figures, tmp_path / "again")] == [
        path.read_text() for path in paths
    ]


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ({"unoptimised": []}, ""),
        ({"unoptimised": ["it is slow"]}, "UNOPTIMISED BUILD: it is slow."),
        ({}, "UNOPTIMISED BUILD: these figures do not say how they were built."),
    ],
)
def test_a_plot_says_first_what_the_build_lacks(
    tmp_path: Path, form: dict[str, Any], line: str
) -> None:
    pytest.importorskip("matplotlib")
    stored = tmp_path / "figures.json"
    stored.write_text(json.dumps({**form, "writes": WRITES, "peers": {}}))
    main(str(tmp_path), [str(stored)])
    text = (tmp_path / "bench-writes.svg").read_text()
    assert (f"<!-- {line} -->" in text) == bool(line)
    assert ("UNOPTIMISED" in text) == bool(line)
