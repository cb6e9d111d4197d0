"""The Helm chart on this machine: its pods as real processes, as a kubelet would run them.

Commands, environment, volumes, rights, probes, the command before a stop and the order of
everything are those of the rendered chart, so chart and test cannot differ. Each pod has an address
of its own, which changes when it is made again; only the claim stays. The cluster is installed
with chart and program of the last release, and upgraded to those of this commit.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kubernetes.sandbox import ROOT, enter, has_users
from tests.integration.kubernetes.workstation import Workstation, page_values, script
from tests.integration.older_release import mark
from tests.support.chart import CHART, CLUSTER_ID, INSECURE, render
from tests.support.image import image_user
from tests.support.last_release import checkout, last_release

pytestmark = [pytest.mark.integration, pytest.mark.long]

SECONDS_MAX = 900
WAIT_SECONDS_MAX = 15.0
"""Longest wait of a write. Half of gRPC's own pause between two look-ups of a name."""
UPDATE_WAIT_SECONDS_MAX = 1.0
"""The same while pods are replaced in order. Half of gRPC's wait for the old address of a pod."""
QUICK: dict[str, Any] = {
    # Shorter than an operator would choose; the rehearsal waits as often as it replaces a pod.
    "minReadySeconds": 1,
    "config": {"limits": {"disk_free_bytes_min": 0}},
}
CHANGED: dict[str, Any] = {
    "config": {"limits": {"disk_free_bytes_min": 0, "watches_max": 2048}},
}
MONITOR: dict[str, Any] = {"serviceMonitor": {"enabled": True}}
TOKEN = {"name": "quorate-metrics", "key": "token-of-prometheus"}
MAKE_TOKEN = f"""
printf an-unguessable-word >{TOKEN["key"]}
kubectl -n prod create secret generic {TOKEN["name"]} --from-file={TOKEN["key"]}
"""
SECURED: dict[str, Any] = {**page_values(), "metrics": {"tls": True}}
SCRAPED: dict[str, Any] = {"metrics": {"tls": True, "tokenSecret": TOKEN}, **MONITOR}
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "insecure": ({**INSECURE, **QUICK}, {**CHANGED, **MONITOR}),
    "secured": (
        {**SECURED, **QUICK, "clusterId": CLUSTER_ID},
        {**CHANGED, **SCRAPED},
    ),
}
"""Values as installed, and what changes with the upgrade. The page has the secured ones."""
MODE_TLS: dict[str, Any] = {
    **{name: value for name, value in SECURED.items() if name != "security"},
    **QUICK,
    **SCRAPED,
    "clusterId": CLUSTER_ID,
    "security": {"mode": "tls"},
    "tls": {"secretName": SECURED["tls"]["secretName"]},
}
"""Those of the page without roles: every caller with a certificate may do everything."""
STEPS = {
    "first start", "lost pod of a follower", "lost pod of the leader", "rolling update",
    "feature level raised", "one voter more", "one voter less",
}  # fmt: skip
ROLLED = 3
SCRAPES = {"as set up": 200, "another token": 401, "no token": 401, "not encrypted": 0}
"""Status of a scrape by how it asks; 0 is no answer at all."""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the last release; its programs say so when they start."""
    # The folder around it is closed to other users than the present one.
    folder = tmp_path_factory.mktemp("images") / "older"
    folder.mkdir()
    checkout(last_release(), folder)
    mark(folder)
    # Pods cannot write them. Those of an image are compiled as well.
    for package in (each.parent for each in folder.glob("*/__init__.py")):
        assert compileall.compile_dir(package, quiet=1)
    return folder


@pytest.fixture(scope="module", params=FORMS)
def rehearsed(
    request: pytest.FixtureRequest, older: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What came of the whole story."""
    folder = tmp_path_factory.mktemp("pods")
    is_secured = request.param == "secured"
    needs_namespaces()
    prepare(folder, older, *FORMS[request.param], is_secured=is_secured)
    found = {**rehearse(folder), "form": request.param}
    print({key: value for key, value in found.items() if key != "before_stops"})
    return found


def needs_namespaces() -> None:
    """Skip where a rehearsal cannot be run."""
    needed = ("unshare", "nsenter", "setpriv", "ip", "mount")
    tools = [tool for tool in needed if shutil.which(tool) is None]
    if tools:
        pytest.skip(f"a rehearsal needs {', '.join(tools)}")
    tried = subprocess.run([*enter(), "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"a rehearsal needs namespaces of its own: {tried.stderr.strip()}")


def rehearse(folder: Path) -> dict[str, Any]:
    """Run what was prepared."""
    done = subprocess.run(
        [*enter(), sys.executable, "-m", "tests.integration.kubernetes.rehearsal", str(folder)],
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
    return found


def prepare(
    folder: Path,
    older: Path,
    installed: dict[str, Any],
    changes: dict[str, Any],
    *,
    is_secured: bool,
) -> None:
    """Render the charts of both releases, and make the Secrets as the page says."""
    workstation = Workstation(folder)
    workstation.set_up()
    if is_secured:
        workstation.paste(script("Install") + MAKE_TOKEN)
    of_older, of_newer = ({"repository": "quorate", "tag": tag} for tag in ("older", "newer"))
    upgraded = {**installed, **changes, "image": of_newer}
    for name, values, chart in (
        ("installed", {**installed, "image": of_older}, older / CHART.relative_to(ROOT)),
        ("upgraded", upgraded, CHART),
        ("larger", {**upgraded, "replicas": 4}, CHART),
    ):
        (folder / f"{name}.json").write_text(json.dumps(render(values, chart=chart)))
    images = {"quorate:older": str(older), "quorate:newer": str(ROOT)}
    (folder / "images.json").write_text(json.dumps(images))


def test_no_acknowledged_write_is_lost(
    rehearsed: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    """Nor is one written twice, and clients write in every step."""
    record_property("acknowledged_writes", rehearsed["acknowledged"])
    record_property("longest_wait_ms", round(1000 * rehearsed["longest_wait_s"]))
    assert rehearsed["violations"] == []
    assert rehearsed["longest_wait_s"] < WAIT_SECONDS_MAX
    waits = rehearsed["longest_wait_s_by_step"]
    assert waits["rolling update"] < UPDATE_WAIT_SECONDS_MAX, waits
    more = {"certificate renewed"} if rehearsed["form"] == "secured" else set()
    assert set(rehearsed["acknowledged_by_step"]) == STEPS | more
    idle = {name for name, count in rehearsed["acknowledged_by_step"].items() if not count}
    assert idle == {"first start"}, "no client writes before there is a cluster"


def test_the_update_brings_another_release_one_pod_at_a_time(rehearsed: dict[str, Any]) -> None:
    assert rehearsed["unready_max"] == 1
    before, after = rehearsed["older_starts"]
    assert len(before) == ROLLED
    assert all(before.values()), "each ran the older release"
    assert after == before, "and was not started with it again"


def test_the_feature_level_is_raised_when_all_nodes_are_new(rehearsed: dict[str, Any]) -> None:
    first, rolled, raised, highest = rehearsed["levels"]
    assert first == rolled < raised == highest


def test_a_pod_has_no_rights_but_those_of_its_user(rehearsed: dict[str, Any]) -> None:
    """A key is a link to a file of root, which the group of the volumes may read."""
    rights = rehearsed["rights"]
    assert int(rights["CapEff"], 16) == 0
    user, group = image_user() if has_users() else (0, 0)
    assert rights["Uid"].split() == [str(user)] * 4
    assert rights["Gid"].split() == [str(group)] * 4
    if rehearsed["form"] == "secured":
        link, *keys = rehearsed["keys"]
        assert link.startswith("l")
        assert keys
        assert set(keys) == {f"-r--r----- 0:{group}"}


def test_prometheus_reads_metrics_as_it_is_set_up(rehearsed: dict[str, Any]) -> None:
    """With the token of its Secret, and checking the node's name; with no other one."""
    assert len(rehearsed["scrapes"]) == ROLLED
    for statuses in rehearsed["scrapes"]:
        expected = SCRAPES if rehearsed["form"] == "secured" else dict.fromkeys(SCRAPES, 200)
        assert statuses == expected


def test_a_cluster_starts_and_stops_in_mode_tls(tmp_path: Path) -> None:
    """Clients and Prometheus reach it with TLS only, and leadership is transferred at a stop."""
    needs_namespaces()
    workstation = Workstation(tmp_path)
    workstation.set_up()
    workstation.paste(script("Install") + MAKE_TOKEN)
    values = {**MODE_TLS, "image": {"repository": "quorate", "tag": "newer"}}
    (tmp_path / "installed.json").write_text(json.dumps(render(values)))
    (tmp_path / "images.json").write_text(json.dumps({"quorate:newer": str(ROOT)}))
    found = rehearse(tmp_path)
    assert found["voters"] == [[0, 1, 2]]
    assert found["refusal"], "a client without TLS was served"
    assert found["scrapes"] == [SCRAPES] * ROLLED
    assert set(found["exit_codes"]) == {0}
    first, *_ = found["before_stops"]
    assert first.startswith("0: "), first
    assert "nothing changed" not in first, "the leader was stopped first"


def test_voters_come_and_go_by_the_documented_procedure(rehearsed: dict[str, Any]) -> None:
    assert rehearsed["voters"] == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2]]


def test_no_container_is_restarted(rehearsed: dict[str, Any]) -> None:
    """Its probes hold while the cluster has no leader, loses pods and is rolled."""
    assert set(rehearsed["restarts"].values()) == {0}


def test_pods_stop_in_order_and_transfer_leadership_before(rehearsed: dict[str, Any]) -> None:
    assert set(rehearsed["exit_codes"]) == {0}, "each before its grace period was over"
    *with_majority, _ = rehearsed["before_stops"]
    assert all(text.startswith("0: ") for text in with_majority), with_majority
    moved = [text for text in with_majority[:ROLLED] if "nothing changed" not in text]
    assert len(moved) >= 1, "whichever node leads is replaced at some time"
    assert "nothing changed" not in with_majority[ROLLED + 1], "the leader was stopped first"
