"""Maintenance: every pod sleeps with its volume, so that a person can recover the cluster."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.chart import BOUND, CLUSTER_ID, INSECURE, ROOT, one, render
from tests.tidy.test_chart import config_of, pod_of

PAGE = (ROOT / "docs" / "operations" / "kubernetes.md").read_text("utf-8")
STEPS = PAGE.partition("\n## The majority is lost\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("values", [INSECURE, BOUND], ids=["insecure", "bound"])
def test_no_server_runs_and_nothing_is_formatted(values: dict[str, Any]) -> None:
    """An empty volume must stay empty: a formatted one would look like a voter's."""
    pod = pod_of({**values, "maintenance": True})
    assert "initContainers" not in pod
    (container,) = pod["containers"]
    assert container["command"] == ["/bin/sleep", "infinity"]
    assert "args" not in container
    assert [name for name in container if name.endswith("Probe") or name == "lifecycle"] == []
    (served,) = pod_of(values)["containers"]
    for same in ("env", "volumeMounts", "securityContext", "resources", "image"):
        assert container[same] == served[same]
    assert pod["volumes"] == pod_of(values)["volumes"]
    assert pod["shareProcessNamespace"], "else the first process would ignore SIGTERM"


def test_no_pod_waits_for_another_one_that_cannot_start() -> None:
    def strategy(**values: Any) -> str:
        found = one(render({**BOUND, **values}), "StatefulSet")["spec"]["updateStrategy"]
        # Without the null a merge keeps the default, which Kubernetes refuses beside OnDelete.
        assert ("rollingUpdate" in found) == (found["type"] == "OnDelete")
        assert found.get("rollingUpdate") is None
        return str(found["type"])

    assert strategy() == "RollingUpdate"
    assert strategy(maintenance=True) == "OnDelete"
    assert strategy(updateStrategy="OnDelete") == "OnDelete"


def test_a_change_of_the_strategy_restarts_no_pod() -> None:
    assert pod_of({**BOUND, "updateStrategy": "OnDelete"}) == pod_of(BOUND)


def test_the_steps_name_values_and_folders_of_the_chart() -> None:
    flags = dict(re.findall(r"--set (\w+)=(\w+|<[^>]+>)", STEPS))
    assert set(flags) == {"maintenance", "updateStrategy", "logIncarnation"}
    recovered = {**BOUND, "logIncarnation": CLUSTER_ID, "updateStrategy": flags["updateStrategy"]}
    assert pod_of(recovered)["initContainers"], "nodes with a new volume are formatted"
    (mount,) = (
        each["mountPath"]
        for each in pod_of(BOUND)["containers"][0]["volumeMounts"]
        if each["name"] == "data"
    )
    data_dir = str(config_of(BOUND, 0).node.data_dir)
    assert data_dir == f"{mount}/data"
    assert f"recover plan {data_dir} {mount}/others/1/data" in STEPS
    assert f"tar -C {mount} -cf - data" in STEPS
