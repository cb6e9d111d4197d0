"""A real controller's directory under a real server of ours, and given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from tests.integration.processes import Processes
from tests.integration.traffic import config_value, write_configs
from tests.support.kafka_directory import SAMPLE_END_OFFSET, whole_sample

pytestmark = pytest.mark.integration


def test_the_sample_is_led_written_and_given_back(tmp_path: Path) -> None:
    """Adopted in place, the node leads the next epoch; every record is there, old and new."""
    cluster = Processes(tmp_path / "cluster", voters=1)
    (node,) = cluster.voters
    node.settings["bootstrap.voters"] = [f"{node.id}@{node.address}"]
    node.settings["cluster.record_codec"] = "kafka"
    try:
        cluster.configure(node)
        whole_sample(tmp_path).rename(node.data_dir)
        refused = cluster.serve(node)
        assert refused.status != Exit.OK
        assert "`quorate adopt DIR`" in refused.out + refused.err
        assert cluster.run("adopt", str(node.data_dir)).status == Exit.OK
        cluster.start(node)
        cluster.wait_ready([node])
        running = cluster.run("adopt", str(node.data_dir))
        assert running.status != Exit.OK
        assert "in use by another process" in running.err
        status = cluster.ask("quorum", "describe", "status")
        assert status["leader_epoch"] > 1
        topics = cluster.ask("topic", "list")["rows"]
        assert topics
        write_configs(cluster, ["7"])
        assert cluster.ask("quorum", "describe", "status")["high_watermark"] > SAMPLE_END_OFFSET
        cluster.stop(node)
        released = cluster.run("release", str(node.data_dir))
        assert released.status == Exit.OK, released.err
        dump = cluster.run("log", "dump", "--no-records", str(node.data_dir))
        assert dump.status == Exit.OK, dump.out + dump.err
        assert cluster.run("adopt", str(node.data_dir)).status == Exit.OK
        cluster.start(node)
        cluster.wait_ready([node])
        assert cluster.ask("topic", "list")["rows"] == topics
        assert config_value(cluster) == "7"
    finally:
        cluster.end_all()
