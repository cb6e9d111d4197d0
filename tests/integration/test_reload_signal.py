"""SIGHUP to a server: it serves on, with another log level."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.processes import running
from tests.integration.traffic import config_value, write_configs

pytestmark = pytest.mark.integration


def test_a_signal_for_reloading_stops_nothing(tmp_path: Path) -> None:
    """Goal: a server survives SIGHUP and reloads its settings. Method: one node, twice."""
    with running(tmp_path, voters=1) as cluster:
        node = cluster.nodes[1]
        assert node.process is not None
        pid = node.process.pid
        for value, level in (("1000", "debug"), ("2000", "warning")):
            node.settings["logging.level"] = level
            cluster.configure(node)
            node.process.send_signal(signal.SIGHUP)
            cluster.until_logged(
                node, f"event=configuration_reloaded level={level} need_a_restart=none"
            )
            write_configs(cluster, [value])
            assert config_value(cluster) == value
        assert node.process.pid == pid
        assert cluster.stop(node) == 0
