"""A server as systemd runs it by the unit file: ready, watched, stopped; and not restarted."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

import pytest

from tests.integration.processes import PATIENCE_SECONDS, running
from tests.support.unit_file import service_section

pytestmark = pytest.mark.integration

WATCHDOG_SECONDS = 2.0
TURNS = 6


def test_a_server_reports_ready_turns_and_its_stop(tmp_path: Path) -> None:
    """Goal: what Type=notify and WatchdogSec need. Method: a real server, a socket as systemd's."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        running(tmp_path / "cluster", voters=1, starts=False) as cluster,
    ):
        # In the abstract namespace: the path of a temporary folder may be too long for a socket.
        name = f"quorate-test-{secrets.token_hex(8)}"
        manager.bind(f"\0{name}")
        manager.settimeout(PATIENCE_SECONDS)
        cluster.loads_anew = True
        cluster.environment |= {
            "NOTIFY_SOCKET": f"@{name}",
            "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1_000_000)),
        }
        node = cluster.nodes[1]
        cluster.start(node)
        assert manager.recv(100) == b"READY=1"
        assert [manager.recv(100) for _ in range(TURNS)] == [b"WATCHDOG=1"] * TURNS
        assert cluster.stop(node) == 0
        last = manager.recv(100)
        while last == b"WATCHDOG=1":
            last = manager.recv(100)
        assert last == b"STOPPING=1"


def test_a_bad_configuration_ends_with_a_code_that_the_unit_does_not_restart(
    tmp_path: Path,
) -> None:
    codes = service_section()["RestartPreventExitStatus"].split()
    with running(tmp_path, voters=1, starts=False) as cluster:
        node = cluster.nodes[1]
        refused = cluster.serve(node, "--set", "quorum.fetch_timeout_ms=soon")
        assert str(refused.status) in codes
        refused = cluster.serve(node, "--set", "listeners.client=0.0.0.0:0")
        assert str(refused.status) in codes
