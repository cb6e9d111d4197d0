"""The bench of many partitions: it counts what is there, and its table has every figure."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

from bench.scale import scale_rows
from bench.scale_image import BROKERS, REPLICAS, ImageScale, measure_image


def test_a_small_image_is_measured_and_shown(tmp_path: Path) -> None:
    found = measure_image(tmp_path, 5000)

    # Consecutive brokers from a start of every topic: each has the same share.
    assert (found.partitions, found.fenced_partitions) == (5000, 5000 * REPLICAS // BROKERS)
    operations = found.operations_us
    assert all(
        getattr(found, each.name) > 0 for each in fields(ImageScale) if each.name != "operations_us"
    )
    assert len(operations) == 7
    assert all(each > 0 for each in operations.values())
    cluster = {
        "partitions": 5000, "created_partitions_per_second": 7000, "describe_ms": {"p50": 1.0},
        "heartbeat_ms_while_creating": {"p99": None}, "node_mib": {"1": 70.5}, "fence_ms": {},
        "heartbeat_ms_while_fencing": {}, "write_ms_before": {}, "write_ms_while_checkpointing": {},
        "checkpoint_seconds": 1.5, "checkpoint_bytes": 9, "restart_seconds": 2.0,
    }  # fmt: skip
    rows = scale_rows({"images": [asdict(found)], "cluster": cluster})
    assert len({len(row) for row in rows}) == 1
    assert ["creation, partitions/s", "7,000"] in rows
    assert ["  create a topic", f"{operations['create']:,.1f}"] in rows
    assert ["memory by node, MiB", "1 70.5"] in rows
