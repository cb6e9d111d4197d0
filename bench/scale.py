"""Many partitions: images of several sizes in this process, a cluster of the largest.

``make bench ONLY=scale``, or ``python -m bench --only scale --partitions 10000 100000``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.loop import loop_factory
from bench.scale_cluster import SETTINGS, ManyPartitions, newest_checkpoint, restart_seconds
from bench.scale_image import PARTITIONS_PER_TOPIC, measure_image
from bench.scale_operations import OPERATIONS
from bench.systems import scratch
from quorate.client.client import Client
from quorate.demo.local_cluster import LocalCluster

SIZES = (10_000, 100_000, 1_000_000)
_TIMEOUT_SECONDS = 60.0


def measure_scale(
    folder: Path, sizes: Sequence[int], announce: Callable[[str], None], found: dict[str, Any]
) -> None:
    """Put the figures of images of these sizes into ``found``, then those of a cluster.

    The cluster has the largest size. What was measured stays in ``found`` if the rest fails.
    """
    for size in sizes:
        announce(f"image of {size:,} partitions")
        image = asdict(measure_image(folder, size))
        found.setdefault("images", []).append(image)
    found["cluster"] = _cluster(folder, max(sizes), announce)


def _cluster(folder: Path, partitions: int, announce: Callable[[str], None]) -> dict[str, object]:
    with scratch(folder) as home:
        cluster = LocalCluster(home, settings=SETTINGS)
        nodes = list(cluster.nodes.values())
        try:
            for node in nodes:
                cluster.format(node)
                cluster.start(node)
            cluster.wait_ready(nodes)

            async def measure() -> dict[str, object]:
                async with Client(cluster.addresses, timeout_seconds=_TIMEOUT_SECONDS) as client:
                    many = ManyPartitions(cluster, client, announce)
                    return await many.measure(partitions // PARTITIONS_PER_TOPIC)

            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                figures = runner.run(measure())
            announce("restart from the checkpoint")
            # Not every node has written it yet, and one that has not would replay the log instead.
            checkpoint = newest_checkpoint(home)
            assert checkpoint is not None
            node = next(each for each in nodes if checkpoint.is_relative_to(each.data_dir))
            figures["checkpoint_bytes"] = checkpoint.stat().st_size
            figures["restart_seconds"] = round(restart_seconds(cluster, node), 2)
        finally:
            cluster.stop_all()
    return figures


def scale_rows(scale: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of both tables: images by size, then the cluster if it was measured."""
    rows = [["image", *(f"{each['partitions']:,}" for each in scale["images"])]]
    for key, text, form in _IMAGE_ROWS:
        rows.append([text, *(form.format(each[key]) for each in scale["images"])])
    rows.append(["us of a leader for one operation:", *([""] * len(scale["images"]))])
    for key, text in OPERATIONS.items():
        costs = [each["operations_us"][key] for each in scale["images"]]
        rows.append([f"  {text}", *(f"{each:,.1f}" for each in costs)])
    cluster = scale.get("cluster")
    if cluster is None:
        return rows
    blank = [""] * (len(rows[0]) - 2)
    rows.append([f"cluster of {cluster['partitions']:,}", "", *blank])
    for key, text in _CLUSTER_ROWS:
        value = cluster[key]
        rows.append([text, _shown(value), *blank])
    return rows


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each:,}" for name, each in value.items() if each is not None)
    return f"{value:,}"


_IMAGE_ROWS = (
    ("bytes_per_partition", "memory, bytes per partition", "{:,.0f}"),
    ("load_records_per_second", "checkpoint to image, records/s", "{:,.0f}"),
    ("checkpoint_records_per_second", "image to checkpoint, records/s", "{:,.0f}"),
    ("iterated_per_second", "iteration, partitions/s", "{:,.0f}"),
    ("iterated_floor", "  the same in dictionaries", "{:,.0f}"),
    ("fenced_partitions", "partitions of the fenced broker", "{:,}"),
    ("fence_ms", "  applying its fence, ms", "{:,.1f}"),
    ("lookup_us", "lookup of a topic, us", "{:,.2f}"),
    ("lookup_floor_us", "  the same in two dictionaries", "{:,.2f}"),
)
_CLUSTER_ROWS = (
    ("created_partitions_per_second", "creation, partitions/s"),
    ("describe_ms", "describe of a topic meanwhile, ms"),
    ("heartbeat_ms_while_creating", "heartbeat meanwhile, ms"),
    ("node_mib", "memory by node, MiB"),
    ("fence_ms", "removal of a broker, ms"),
    ("heartbeat_ms_while_fencing", "heartbeat meanwhile, ms"),
    ("write_ms_before", "1,000 writes/s, ms"),
    ("write_ms_while_checkpointing", "the same while a checkpoint is written, ms"),
    ("checkpoint_seconds", "  time until it was written, s"),
    ("checkpoint_bytes", "  its size, bytes"),
    ("restart_seconds", "start from it until ready, s"),
)
