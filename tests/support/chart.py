"""Renders the chart of deploy/helm with helm; tests are skipped where it is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "quorate"
HELM = shutil.which("helm") or shutil.which("helm", path=ROOT / ".venv" / "helm")
"""``.ci/helm`` builds it there if the system has none."""
KUBERNETES = "1.34.0"
NAMESPACE = "prod"
CLUSTER_ID = "n9cWlVqhT3uUXTn2CZ1jcQ"
INSECURE: Mapping[str, Any] = {
    "clusterId": CLUSTER_ID,
    "security": {"mode": "insecure", "unsafeInsecureListeners": True},
}
BOUND: Mapping[str, Any] = {
    "clusterId": CLUSTER_ID,
    "security": {"mode": "bound"},
    "tls": {"secretName": "quorate-tls"},
}


def render(
    values: Mapping[str, Any], release: str = "quorate", chart: Path = CHART
) -> list[dict[str, Any]]:
    """Every object that ``helm install`` would create."""
    done = helm("template", release, str(chart), "--namespace", NAMESPACE, values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def refusal(values: Mapping[str, Any]) -> str:
    """What helm says about values that cannot work."""
    done = helm("template", "quorate", str(CHART), "--namespace", NAMESPACE, values=values)
    assert done.returncode != 0
    return done.stderr


def helm(*arguments: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run helm with these values, given as a file."""
    if HELM is None:
        pytest.skip("the chart needs helm to be rendered; `.ci/helm` builds it")
    return subprocess.run(
        [HELM, *arguments, "--kube-version", KUBERNETES, "--values", "-"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )


def one(objects: list[dict[str, Any]], kind: str, name: str = "quorate") -> dict[str, Any]:
    """The object of this kind and name."""
    found = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, (kind, name)
    return found[0]
