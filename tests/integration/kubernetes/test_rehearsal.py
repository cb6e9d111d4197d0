"""The Helm chart on this machine: its pods as real processes, as a kubelet would run them.

Commands, environment, probes, the command before a stop and the order of everything are those of
the rendered chart, so chart and test cannot differ. Each pod has an address of its own, which
changes when it is made again; only the volume stays.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.kubernetes.sandbox import ENTER, ROOT
from tests.support.chart import INSECURE, render

pytestmark = [pytest.mark.integration, pytest.mark.long]

SECONDS_MAX = 900
WAIT_SECONDS_MAX = 15.0
"""Longest wait of a write. Half of gRPC's own pause between two look-ups of a name."""
INSTALLED: dict[str, Any] = {
    **INSECURE,
    # Shorter than an operator would choose; the rehearsal waits as often as it replaces a pod.
    "minReadySeconds": 1,
    "config": {"limits": {"disk_free_bytes_min": 0}},
}
UPGRADED = {**INSTALLED, "config": {"limits": {"disk_free_bytes_min": 0, "watches_max": 2048}}}
STEPS = {
    "first start", "lost pod of a follower", "lost pod of the leader", "rolling update",
    "one voter more", "one voter less",
}  # fmt: skip


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of the whole story."""
    tools = [tool for tool in ("unshare", "nsenter", "ip", "mount") if shutil.which(tool) is None]
    if tools:
        pytest.skip(f"a rehearsal needs {', '.join(tools)}")
    tried = subprocess.run([*ENTER, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"a rehearsal needs namespaces of its own: {tried.stderr.strip()}")
    folder = tmp_path_factory.mktemp("pods")
    for name, values in (
        ("installed", INSTALLED),
        ("upgraded", UPGRADED),
        ("larger", {**UPGRADED, "replicas": 4}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(render(values)))
    done = subprocess.run(
        [*ENTER, sys.executable, "-m", "tests.integration.kubernetes.rehearsal", str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GRPC_VERBOSITY": "NONE"},
        timeout=SECONDS_MAX,
        check=False,
    )
    logs = "".join(
        f"---- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-40:])
        for path in sorted(folder.glob("*.log"))
    )
    assert done.returncode == 0, f"{done.stderr[-6000:]}\n{logs}"
    found: dict[str, Any] = json.loads(done.stdout)
    print({key: value for key, value in found.items() if key != "before_stops"})
    return found


def test_no_acknowledged_write_is_lost(
    rehearsed: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    """Nor is one written twice, and clients write in every step."""
    record_property("acknowledged_writes", rehearsed["acknowledged"])
    record_property("longest_wait_ms", round(1000 * rehearsed["longest_wait_s"]))
    assert rehearsed["violations"] == []
    assert rehearsed["longest_wait_s"] < WAIT_SECONDS_MAX
    assert set(rehearsed["acknowledged_by_step"]) == STEPS
    idle = {name for name, count in rehearsed["acknowledged_by_step"].items() if not count}
    assert idle == {"first start"}, "no client writes before there is a cluster"


def test_voters_come_and_go_by_the_documented_procedure(rehearsed: dict[str, Any]) -> None:
    assert rehearsed["voters"] == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2]]


def test_no_container_is_restarted(rehearsed: dict[str, Any]) -> None:
    """Its probes hold while the cluster has no leader, loses pods and is rolled."""
    assert set(rehearsed["restarts"].values()) == {0}


def test_pods_stop_in_order_and_transfer_leadership_before(rehearsed: dict[str, Any]) -> None:
    assert set(rehearsed["exit_codes"]) == {0}, "each before its grace period was over"
    while_rolled = rehearsed["before_stops"][:3]
    assert all(text.startswith("0: ") for text in while_rolled), while_rolled
    moved = [text for text in while_rolled if "nothing changed" not in text]
    assert len(moved) >= 1, "whichever node leads is replaced at some time"
