"""A part that fails costs its own figures only: the others are printed, and the run fails."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench import scale
from bench.peers.processes import PeerError
from bench.report import render
from bench.rounds import Row, summarise

TRIMMED = "quorateload failed: the log begins at offset 9"


def row(kind: str, clients: int, **more: object) -> Row:
    return {
        "kind": kind, "place": "leader", "clients": clients, "rate": 100.0, "p50_ms": 1.0,
        "p99_ms": 2.0, "leader_us": 1.0, "followers_us": [1.0], "load_us": 1.0, "stolen": 0.0,
        "rounds": 1, "disturbed": 0, **more,
    }  # fmt: skip


class FakeSystems:
    """Loads that are measured at once; the second count of writers and the watchers fail."""

    def __init__(self, _folder: Path, _peers: object, stack: ExitStack, **_more: object) -> None:
        self.figures: dict[str, Any] = {"etcd": {}}

    def idle(self) -> dict[str, float]:
        return {"resident_mb": 63.0}

    def writes(self, counts: list[int], _rounds: int) -> Iterator[Row]:
        yield row("write", counts[0])
        raise TimeoutError("no answer")

    def reads(self, readers: int, _rounds: int) -> Iterator[Row]:
        yield row("local", readers)

    def watchers(self, _watchers: int, _rounds: int) -> Iterator[Row]:
        raise PeerError(TRIMMED)

    def failover(self, kills: int) -> list[float]:
        self.figures["etcd"]["failover"] = [7.0]
        return [60.0] * kills


class NoSystems:
    def __init__(self, *_given: object, **_more: object) -> None:
        raise RuntimeError("node 2 does not start")


def run(monkeypatch: pytest.MonkeyPatch, place: Path, *only: str) -> tuple[int, dict[str, Any]]:
    words = ["bench", "--only", *only, "--writers", "1", "16", "--kills", "3"]
    monkeypatch.setattr(sys, "argv", [*words, "--output", str(place)])
    return bench.main(), json.loads(place.read_text())


def test_the_parts_that_finished_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: no figure is lost. Method: two parts fail, one after its first load."""
    monkeypatch.setattr(bench, "Systems", FakeSystems)
    wanted = ("writes", "reads", "watchers", "failover")
    status, figures = run(monkeypatch, tmp_path / "figures", *wanted)
    assert status == 1
    assert figures["failed"] == {
        "writes": "TimeoutError: no answer",
        "watchers": f"PeerError: {TRIMMED}",
    }
    assert [each["clients"] for each in figures["writes"]] == [1]
    assert len(figures["reads"]) == 1
    assert figures["idle"] == {"resident_mb": 63.0}
    assert figures["failover"]["all"] == [60.0] * 3
    assert figures["peers"]["etcd"]["failover"]["p50_ms"] == 7.0
    printed = capsys.readouterr().err
    report = printed[printed.index("per second") :]
    assert "write at the leader" in report
    assert "local at the leader" in report
    assert "kill to next ack, quorate" in report
    assert f"FAILED watchers: PeerError: {TRIMMED}" in report
    assert "FAILED writes: TimeoutError: no answer" in report


def test_nodes_that_do_not_start_fail_their_parts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def image(_options: argparse.Namespace) -> dict[str, float]:
        return {"p50": 1.0, "min": 1.0, "max": 1.0, "per_cpu_second": 1.0}

    monkeypatch.setattr(bench, "Systems", NoSystems)
    monkeypatch.setattr(bench, "_image", image)
    status, figures = run(monkeypatch, tmp_path / "figures", "writes", "reads", "image")
    assert status == 1
    assert figures["failed"] == dict.fromkeys(
        ("writes", "reads"), "RuntimeError: node 2 does not start"
    )
    assert figures["image"]["p50"] == 1.0


def test_images_stay_when_their_cluster_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object) -> dict[str, object]:
        raise TimeoutError("the leader wrote no checkpoint")

    monkeypatch.setattr(scale, "_cluster", broken)
    place = tmp_path / "figures"
    words = ["bench", "--only", "scale", "--partitions", "1000", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*words, "--output", str(place)])
    assert bench.main() == 1
    figures = json.loads(place.read_text())
    assert figures["scale"]["images"][0]["partitions"] == 1000
    assert "lookup of a topic, us" in render(figures)


def test_a_run_without_failure_ends_with_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "Systems", FakeSystems)
    status, figures = run(monkeypatch, tmp_path / "figures", "reads")
    assert (status, figures["failed"]) == (0, {})


def test_watchers_that_began_again_are_reported() -> None:
    """Goal: never silent. Method: restarts in a round that is not the median one."""
    rates = (1.0, 2.0, 3.0)
    rounds = [
        {"quorate": row("watch", 9, rate=rate, watch_restarts=2, events_missed=int(5 * rate))}
        for rate in rates
    ]
    found = summarise(rounds, "quorate")["quorate"]
    assert (found["watch_restarts"], found["events_missed"]) == (6, 30)
    figures = {"watchers": [found], "peers": {"etcd": {"watchers": [row("watch", 9)]}}}
    lines = [line for line in render(figures).splitlines() if "began again" in line]
    assert lines == [
        "6 times a watcher of quorate began again at the newest state; 30 events were missed"
    ]
