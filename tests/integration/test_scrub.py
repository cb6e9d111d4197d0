"""The node itself finds, names and heals corruption in data that is rarely read."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs, write_many

pytestmark = [pytest.mark.integration, pytest.mark.long]

SETTINGS: dict[str, object] = {
    "log.segment_bytes": 16 << 10,
    "scrub.bytes_per_second": 64 << 20,
    "scrub.pause_ms": 1000,
}


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(path.stat().st_size // 2)
        file.write(bytes([byte ^ 0x10]))


def scrubbed(cluster: Processes, node: LocalNode) -> None:
    """Wait until a pass that began after now is complete."""
    before = cluster.metric(node, "quorate_scrub_passes_total") or 0
    cluster.until(
        f"two more passes of node {node.id}",
        lambda: (cluster.metric(node, "quorate_scrub_passes_total") or 0) >= before + 2 or None,
    )


def test_a_corrupt_segment_is_found_and_fetched_anew(tmp_path: Path) -> None:
    with running(tmp_path, settings=SETTINGS) as cluster:
        write_configs(cluster, ["1"])
        write_many(cluster, 400)
        wait_equal_images(cluster, cluster.voters)
        leader = cluster.leader()
        node = next(each for each in cluster.voters if each is not leader)
        scrubbed(cluster, node)
        assert cluster.metric(node, "quorate_scrub_findings_total") == 0
        victim = sorted((node.data_dir / "__cluster_metadata-0").glob("*.log"))[0]
        flip(victim)
        assert cluster.wait_ended(node) == Exit.DAMAGED
        log_text = node.log_path.read_text()
        assert "event=scrub_found" in log_text
        assert str(victim) in log_text
        write_configs(cluster, ["2"])
        cluster.start(node)
        cluster.wait_ready([node])
        assert victim.with_name(victim.name + ".damaged").exists()
        wait_equal_images(cluster, cluster.voters)
        scrubbed(cluster, node)
        assert cluster.metric(node, "quorate_scrub_findings_total") == 0
        assert config_value(cluster) == "2"


def test_a_lone_voter_reports_damage_and_continues(tmp_path: Path) -> None:
    with running(tmp_path, voters=1, settings=SETTINGS) as cluster:
        write_configs(cluster, ["1"])
        write_many(cluster, 200)
        (node,) = cluster.voters
        flip(sorted((node.data_dir / "__cluster_metadata-0").glob("*.log"))[0])
        cluster.until(
            "the damage to be counted",
            lambda: cluster.metric(node, "quorate_scrub_findings_total") or None,
        )
        write_configs(cluster, ["2"])
        assert config_value(cluster) == "2"
        assert node.is_running
        # Its next start would set the segment aside, and with it the right to vote.
        assert "event=scrub_found" in node.log_path.read_text()
