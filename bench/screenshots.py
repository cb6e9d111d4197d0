"""Take the pictures of docs/operations/console.md: a cluster with something to see, and Chromium.

``python -m bench.screenshots``, or ``make screenshots``. ``CHROMIUM`` names another browser.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quorate.demo.local_cluster import LocalCluster

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "operations" / "images"
SIZE = (1280, 900)
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"
PICTURES = {
    "console-overview.png": ("/", LIGHT),
    "console-quorum-dark.png": ("/quorum", DARK),
    "console-leadership.png": ("/leadership", LIGHT),
    "console-alerts.png": ("/alerts", LIGHT),
    "console-history.png": (
        "/history?kind=config&name=topic%3Aorders%2Fretention.ms",
        LIGHT,
    ),
}
PATIENCE_SECONDS = 90.0


def chromium() -> str | None:
    """The browser's program; None where there is none."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


def browser(program: str, *arguments: str, home: Path) -> str:
    """Run the browser without a window, with a profile of its own; return its output."""
    command = [
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        f"--user-data-dir={home}",
        f"--window-size={SIZE[0]},{SIZE[1]}",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def document(url: str, view: str) -> Any:
    """One JSON document of the console."""
    with urllib.request.urlopen(f"{url}api/{view}", timeout=10) as answer:
        return json.load(answer)[view]


def wait_for(url: str, view: str, is_so: Any) -> None:
    """Ask for a document until it is as wanted."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so(document(url, view)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{view}: {document(url, view)}")
        time.sleep(0.1)


@contextlib.contextmanager
def running(*arguments: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process of ``quorate`` for as long as the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quorate", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()


@contextlib.contextmanager
def console(addresses: str) -> Iterator[str]:
    """A console of a cluster on a free port; yields its address."""
    arguments = ("console", "--bootstrap", addresses, "--listen", "127.0.0.1:0")
    with running(*arguments, environment={"PYTHONPATH": str(ROOT)}) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "console at " in line:
                yield line.split("console at ")[1].strip()
                return
        raise RuntimeError("the console has ended")


def quorate(addresses: str, *arguments: str) -> None:
    """Run a command on the cluster."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "QUORATE_BOOTSTRAP": addresses}
    subprocess.run(
        [sys.executable, "-m", "quorate", *arguments],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def sample_cluster(folder: Path) -> Iterator[str]:
    """Three voters, an observer, three brokers of which one has failed; yields addresses."""
    cluster = LocalCluster(
        folder, voters=3, settings={"limits.disk_free_bytes_min": 0}, cluster_id="sample"
    )
    try:
        cluster.add_observer(11)
        for node in cluster.nodes.values():
            cluster.format(node)
            cluster.start(node)
        cluster.wait_ready(list(cluster.nodes.values()))
        addresses = ",".join(node.address for node in cluster.nodes.values() if node.is_voter)
        environment = {"PYTHONPATH": str(ROOT), "QUORATE_BOOTSTRAP": addresses}
        with contextlib.ExitStack() as stack:
            brokers = [
                stack.enter_context(
                    running(
                        *("broker", "register", str(number), "--stay"),
                        *("--listener", f"PLAINTEXT://b{number}:9092", "--rack", f"r{number}"),
                        environment=environment,
                    )
                )
                for number in (7, 8, 9)
            ]
            with console(addresses) as url:
                wait_for(
                    url,
                    "brokers",
                    lambda doc: sum(not each["is_fenced"] for each in doc["rows"]) == 3,
                )
                _fill(addresses)
                brokers[2].terminate()
                wait_for(url, "overview", lambda doc: doc["fenced_brokers"] == [9])
                yield url
    finally:
        cluster.stop_all()


def _fill(addresses: str) -> None:
    for name, replicas, why in (
        ("orders", "3", "launch of the shop"),
        ("payments", "3", "launch of the shop"),
        ("clicks", "2", "web analytics"),
        ("drafts", "1", "an experiment"),
    ):
        create = ("topic", "create", name, "--partitions", "6", "--replication-factor", replicas)
        quorate(addresses, *create, "--reason", why)
    for value, why in (("604800000", "a week is enough"), ("86400000", "the disks fill up")):
        quorate(
            addresses, "config", "set", "topic", "orders", f"retention.ms={value}", "--reason", why
        )
    for node in ("1", "2", "3"):
        quorate(addresses, "quorum", "transfer-leader", node, "--reason", "rolling restart")


def main() -> int:
    """Take every picture."""
    program = chromium()
    if program is None:
        print("chromium is not installed (apt-get install chromium); or set CHROMIUM")
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sample_cluster(Path(folder)) as url:
        home = Path(folder) / "browser"
        for name, (path, colours) in PICTURES.items():
            target = IMAGES / name
            address = url.rstrip("/") + path
            browser(program, colours, f"--screenshot={target}", address, home=home)
            print(target.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
