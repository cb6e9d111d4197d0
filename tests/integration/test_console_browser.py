"""The console as a process, in a real browser: pages are laid out, hostile text does nothing.

Skipped where Chromium is not installed: ``apt-get install chromium``, or set ``CHROMIUM``.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.screenshots import (
    DARK,
    LIGHT,
    ROOT,
    browser,
    chromium,
    console,
    document,
    wait_for,
)
from quorate.console.views import VIEWS
from tests.integration.processes import running

pytestmark = pytest.mark.integration

LINK = re.compile(r'href="([^"]*)"')
LINKS_MAX = 200
HOSTILE = "<script>document.title='changed'</script><img src=x onerror=document.title='changed'>"


def has_both_changes(history: dict[str, Any]) -> bool:
    newest = history["rows"][0] if history["rows"] else {"fields": {}}
    # The record of the writer's producer id has the same reason, and comes before.
    return "value" in newest["fields"] and newest["reason"] == HOSTILE


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("console"), voters=1) as cluster:
        addresses = ",".join(cluster.addresses)
        with console(addresses) as found:
            for value, reason in (("1", "first"), ("2", HOSTILE)):
                cluster.command(
                    *("--bootstrap", addresses),
                    *("config", "set", "broker", "", f"log.retention.ms={value}"),
                    *("--reason", reason),
                )
            wait_for(found, "history", has_both_changes)
            yield found


def test_the_process_answers_with_what_the_cluster_has(url: str) -> None:
    wait_for(url, "quorum", lambda doc: doc["has_leader"])
    assert document(url, "search")["rows"][0]["name"] == "broker:(default)/log.retention.ms"
    wait_for(url, "leadership", lambda doc: [each["leader"] for each in doc["rows"]] == [1])
    rows = document(url, "history")
    assert rows["rows"][0]["fields"]["value"] == {"before": "1", "after": "2"}
    features = {each["name"]: each for each in document(url, "features")["rows"]}
    assert features["metadata.version"]["level"] > 0


def test_a_write_is_refused_by_the_process(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, data=b"{}", method="POST"), timeout=10)
    assert refused.value.code == 405
    refused.value.close()


def links_of(page: str) -> set[str]:
    """Addresses of the same console that a page leads to, without what stands behind a #."""
    found = (html.unescape(each).partition("#")[0] for each in LINK.findall(page))
    return {each for each in found if each.startswith("/")}


def test_no_link_of_the_console_is_dead(url: str) -> None:
    """From the overview on; every page of a view, and the document beside each."""
    waiting, opened = ["/"], set[str]()
    while waiting and len(opened) < LINKS_MAX:
        address = waiting.pop(0)
        opened.add(address)
        with urllib.request.urlopen(url.rstrip("/") + address, timeout=30) as answer:
            kind, content = answer.headers["content-type"], answer.read().decode()
        if kind.startswith("text/html"):
            waiting += sorted(links_of(content) - opened - {*waiting})
    assert {view for view in VIEWS if f"/{view}" in opened} >= {*VIEWS} - {"overview", "topic"}
    assert {view for view in VIEWS if any(each.startswith(f"/api/{view}") for each in opened)} >= {
        *VIEWS
    } - {"topic"}
    assert links_of('<a href="/a?b=1&amp;c=2#d"> <a href="https://x"> <a href="#e">') == {
        "/a?b=1&c=2"
    }


@pytest.fixture
def program() -> str:
    found = chromium()
    if found is None:
        pytest.skip("chromium is not installed; `apt-get install chromium`, or set CHROMIUM")
    return found


def test_a_browser_runs_nothing_of_a_hostile_reason(url: str, program: str, tmp_path: Path) -> None:
    page = browser(program, "--dump-dom", f"{url}history", home=tmp_path)
    assert "<title>History · Quorate</title>" in page
    assert "&lt;script&gt;document.title=" in page
    assert "<img" not in page


def test_a_browser_draws_light_and_dark(url: str, program: str, tmp_path: Path) -> None:
    pictures = []
    for colours in (LIGHT, DARK):
        target = tmp_path / "picture.png"
        browser(program, colours, f"--screenshot={target}", f"{url}quorum", home=tmp_path / "home")
        pictures.append(target.read_bytes())
    assert all(each.startswith(b"\x89PNG") and len(each) > 10_000 for each in pictures)
    assert pictures[0] != pictures[1]


def test_the_document_beside_a_page_is_the_one_it_links_to(
    url: str, program: str, tmp_path: Path
) -> None:
    page = browser(program, "--dump-dom", f"{url}topics?q=ord", home=tmp_path)
    assert 'href="/api/topics?q=ord"' in page
    with urllib.request.urlopen(f"{url}api/topics?q=ord", timeout=10) as answer:
        assert json.load(answer)["topics"]["q"] == "ord"


def test_a_port_in_use_is_one_sentence(url: str) -> None:
    port = url.rstrip("/").rpartition(":")[2]
    command = ("console", "--bootstrap", "127.0.0.1:1", "--listen", f"127.0.0.1:{port}")
    done = subprocess.run(
        [sys.executable, "-m", "quorate", *command],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
