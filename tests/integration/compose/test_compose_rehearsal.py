"""Image and compose file on this machine, without a container engine: what can be proven of them.

The Dockerfile's instructions are carried out over a copy of this machine's root, and the compose
file's nodes and console run from it: with their commands, environment, users, names, volumes and
health checks, and a root that nobody can write. Not proven: the base image, the compiled form,
the versions of the lock, published ports, and the images of Prometheus and Grafana.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.integration.compose.rehearsal import ENTER, NODES
from tests.support.image import ROOT, image_user

pytestmark = [pytest.mark.integration, pytest.mark.long]

SECONDS_MAX = 900
TOOLS = ("unshare", "nsenter", "chroot", "setpriv", "ip", "mount", "useradd", "git")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of the whole story."""
    tools = [tool for tool in TOOLS if shutil.which(tool) is None]
    if tools:
        pytest.skip(f"a rehearsal of the image needs {', '.join(tools)}")
    if os.geteuid() != 0:
        pytest.skip("a rehearsal of the image needs root, to run as another user")
    tried = subprocess.run([*ENTER, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"a rehearsal needs namespaces of its own: {tried.stderr.strip()}")
    if not (ROOT / ".git").exists():
        pytest.skip("a rehearsal of the image needs git, which knows the sources")
    folder = tmp_path_factory.mktemp("compose")
    done = subprocess.run(
        [*ENTER, sys.executable, "-m", "tests.integration.compose.rehearsal", str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=SECONDS_MAX,
        check=False,
    )
    logs = "".join(
        f"---- {path.name}\n" + path.read_text(errors="replace")[-3000:]
        for path in sorted(folder.glob("*.log"))
    )
    if "overlay" in done.stderr and "mount" in done.stderr:
        pytest.skip(f"a rehearsal of the image needs overlays: {done.stderr[-300:]}")
    assert done.returncode == 0, f"{done.stderr[-6000:]}\n{logs}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_wheel_of_the_sources_is_all_that_the_image_has(rehearsed: dict[str, Any]) -> None:
    """With the dependencies that the lock names, and no others."""
    assert rehearsed["doctor"] == 0
    assert rehearsed["written"] == ""


def test_every_container_has_the_user_of_the_image_and_no_rights(
    rehearsed: dict[str, Any],
) -> None:
    user, group = image_user()
    assert set(rehearsed["processes"]) == {*NODES, "console"}
    for name, status in rehearsed["processes"].items():
        assert status["Uid"].split() == [str(user)] * 4, name
        assert status["Gid"].split() == [str(group)] * 4, name
        assert status["Groups"] == "", name
        assert status["NoNewPrivs"] == "1", name
        for each in ("CapEff", "CapPrm", "CapBnd", "CapInh"):
            assert int(status[each], 16) == 0, (name, each)


def test_only_the_volume_and_tmp_can_be_written(rehearsed: dict[str, Any]) -> None:
    can = rehearsed["can_write"]
    assert {place for place, is_written in can.items() if is_written} == {
        "/tmp/new", "/var/lib/quorate/new",
    }  # fmt: skip


def test_the_console_sees_the_three_nodes(rehearsed: dict[str, Any]) -> None:
    text = json.dumps(rehearsed["console"])
    assert all(f"{name}:" in text for name in NODES), text


def test_prometheus_scrapes_the_three_nodes(rehearsed: dict[str, Any]) -> None:
    """A Prometheus of this machine, with the compose file's configuration and alerts."""
    if rehearsed["targets"] is None:
        pytest.skip("scraping needs a prometheus; `.ci/promtool` fetches it")
    assert rehearsed["targets"] == [f"http://{name}:9191/metrics" for name in NODES]
    groups = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text("utf-8"))["groups"]
    rules = {rule["alert"] for group in groups for rule in group["rules"]}
    assert set(rehearsed["alerts"]) == rules, "the console shows their states"


def test_a_stop_is_orderly_and_the_volume_keeps_the_state(rehearsed: dict[str, Any]) -> None:
    stopped = rehearsed["stopped"]
    assert {stopped[name] for name in NODES} == {0}
    # The web server ends itself by the signal, after it has served what was open.
    assert stopped["console"] in (0, -15)
    assert "5000" in rehearsed["read_again"], "formatting again keeps a directory as it is"
