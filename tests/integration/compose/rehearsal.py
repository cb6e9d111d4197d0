"""The compose file's nodes and console as containers; run inside of ``ENTER``.

``python -m tests.integration.compose.rehearsal FOLDER`` prints what happened as one JSON document.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.integration.compose.built_image import build
from tests.integration.compose.container import PATIENCE_S, Container
from tests.integration.kubernetes.sandbox import BRIDGE_ADDRESS, make_network, publish
from tests.support.image import ROOT
from tests.support.promtool import PROMTOOL

ENTER = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Command that runs the rest in namespaces of its own. Users are not mapped, so it needs root."""
NODES = ("n1", "n2", "n3")
RESOURCE = ("client-metrics", "m1")
"""Its configuration is written and read again. It needs no broker."""
SECONDS_MAX = 60.0
_PAUSE_S = 0.2
_WORK = Path("/srv")
"""Hidden by an empty file system while the rehearsal lasts. A container has a /tmp of its own."""


def rehearse(folder: Path) -> dict[str, Any]:
    """Start, use, stop and start again; returns what was seen."""
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text("utf-8"))["services"]
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(_WORK)], check=True)
    root = build(_WORK)
    make_network(_WORK)
    ours = {name: each for name, each in services.items() if each["image"] == "quorate"}
    containers = {
        name: Container(name, each, root, _WORK, folder / f"{name}.log")
        for name, each in ours.items()
    }
    names = {name: each.address for name, each in containers.items()}
    publish(_WORK, {**names, "prometheus": BRIDGE_ADDRESS})
    servers = services["n1"]["environment"]["QUORATE__BOOTSTRAP__SERVERS"]
    quorate = ("quorate", "-o", "json", "--bootstrap", servers, "--timeout", "120")
    first = containers["n1"]
    try:
        for each in containers.values():
            each.start()
        for each in containers.values():
            each.wait_healthy()
        with prometheus(folder) as is_scraped:
            written = first.execute(*quorate, "config", "set", *RESOURCE, "interval.ms=5000")
            seen: dict[str, Any] = {
                "written": written.stderr,
                "doctor": first.execute("quorate", "doctor").returncode,
                "processes": {name: each.status() for name, each in containers.items()},
                "can_write": {
                    place: first.execute("touch", place).returncode == 0
                    for place in (
                        "/new",
                        "/opt/quorate/new",
                        "/etc/new",
                        "/tmp/new",
                        "/var/lib/quorate/new",
                    )
                },
                "targets": is_scraped(services["prometheus"], len(NODES)),
                "console": json.loads(_get("http://console:9192/api/quorum")),
            }
            seen["alerts"] = _alerts() if seen["targets"] else None
        seen["stopped"] = {name: each.stop() for name, each in containers.items()}
        for name in NODES:
            containers[name].start()
        for name in NODES:
            containers[name].wait_healthy()
        read = first.execute(*quorate, "config", "get", *RESOURCE)
        seen["read_again"] = read.stdout + read.stderr
        return seen
    finally:
        for each in containers.values():
            each.remove()


@contextmanager
def prometheus(folder: Path) -> Iterator[Callable[[Mapping[str, Any], int], list[str] | None]]:
    """Prometheus with the compose file's configuration, if this machine has it.

    Yields what returns the addresses that it has scraped, once there are so many; else None.
    """
    program = None if PROMTOOL is None else Path(PROMTOOL).with_name("prometheus")
    if program is None or not program.is_file():
        yield lambda _service, _count: None
        return
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program, f"--config.file={ROOT}/deploy/prometheus/prometheus.yaml",
             f"--storage.tsdb.path={folder}/prometheus"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield _wait_scraped
    finally:
        process.kill()
        process.wait()


def _wait_scraped(service: Mapping[str, Any], count: int) -> list[str]:
    assert service["command"] == ["--config.file=/etc/prometheus/prometheus.yaml"]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with suppress(OSError):
            found = json.loads(_get("http://prometheus:9090/api/v1/targets"))["data"]
            up = [each["scrapeUrl"] for each in found["activeTargets"] if each["health"] == "up"]
            if len(up) == count:
                return sorted(up)
        assert time.monotonic() < deadline, "Prometheus has not scraped every node"
        time.sleep(_PAUSE_S)


def _alerts() -> list[str]:
    """The alerts of the console, once it has their states from Prometheus."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = json.loads(_get("http://console:9192/api/alerts"))["alerts"]
        if not found["prometheus_problem"]:
            return [each["alert"] for each in found["rows"]]
        assert time.monotonic() < deadline, found["prometheus_problem"]
        time.sleep(_PAUSE_S)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
        return str(answer.read().decode())


if __name__ == "__main__":
    print(json.dumps(rehearse(Path(sys.argv[1]))))
