"""A node whose disk blocks only a checkpoint can be stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from tests.integration import held_checkpoint
from tests.integration.processes import running
from tests.integration.traffic import config_value, write_configs

pytestmark = pytest.mark.integration


def test_a_process_ends_although_its_disk_holds_a_checkpoint(tmp_path: Path) -> None:
    """Goal: the process ends in bounded time with a reason, and its log is intact. The blocked
    thread never ends, so the stop must not wait for it.
    """
    settings = {
        "node.filesystem": held_checkpoint.NAME,
        "snapshot.interval_ms": 1,
        "limits.shutdown_ms_max": 300,
    }
    with running(tmp_path, voters=1, settings=settings) as cluster:
        (node,) = cluster.voters
        write_configs(cluster, ["1", "2"])
        cluster.until("a held checkpoint", (node.folder / held_checkpoint.HELD).exists)
        write_configs(cluster, ["3"])
        assert cluster.stop(node) == Exit.FAILED
        assert "the disk hangs" in node.log_tail(5)

        cluster.settings.pop("node.filesystem")
        cluster.configure(node)
        cluster.start_all()
        assert config_value(cluster) == "3"
        assert cluster.stop(node) == Exit.OK
