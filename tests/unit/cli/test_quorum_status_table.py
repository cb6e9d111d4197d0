"""``quorum describe status`` fits a terminal whatever a cluster has; ``--wide`` shows all of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quorate.cli.main import main
from quorate.cli.quorum_status_table import WIDTH_MAX
from quorate.client.results.admin import (
    DescribeQuorumResponse,
    LogIncarnation,
    QuorumNode,
    QuorumReplica,
)
from quorate.client.results.common import Endpoint
from quorum.types import uuid_to_text

DIRECTORIES = [bytes([number]) * 16 for number in range(1, 5)]


def status_of(host: str) -> DescribeQuorumResponse:
    """A quorum of three voters and an observer, each with three listeners, and long texts."""
    endpoints = tuple(
        Endpoint(name=name, host=host, port=9190) for name in ("PEER", "CLIENT", "SASL")
    )
    replicas = [
        QuorumReplica(replica_id=node, directory_id=directory, log_end_offset=9)
        for node, directory in enumerate(DIRECTORIES, start=1)
    ]
    return DescribeQuorumResponse(
        cluster_id="c" * 22,
        leader_id=2,
        leader_epoch=3,
        high_watermark=9,
        voters=tuple(replicas[:3]),
        observers=tuple(replicas[3:]),
        nodes=tuple(QuorumNode(node_id=node, endpoints=endpoints) for node in range(1, 5)),
        log_incarnation_facts=LogIncarnation(
            number=12, id=b"i" * 16, previous_id=b"p" * 16, kept_end_offset=10**12,
            kept_end_epoch=10**6,
        ),
        pending_change="remove node 3, " + "written at 1000000000000 by someone " * 5,
        divergence_resolution="conflicting replica " * 9,
    )  # fmt: skip


def shown(
    answer: DescribeQuorumResponse,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *options: str,
) -> str:
    stopped = {1: "offset 7: unknown record " * 6, 2: "offset 7: unknown record"}
    monkeypatch.setattr("quorate.cli.quorum.ask", lambda *_: (answer, stopped))
    assert main(["quorum", "describe", "status", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "endpoints"),
    [
        ("n1", "PEER://n1:9190, CLIENT://n1:9190 (+1)"),
        ("node-1.prod.example.org", "PEER://node-1.prod.example.org:9190 (+2)"),
        ("q-0.quorate-headless.prod.svc.cluster.local", "3 endpoints (see --wide)"),
    ],
)
def test_it_fits_with_a_line_for_each_replica(
    host: str,
    endpoints: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(status_of(host), monkeypatch, capsys).splitlines()
    assert max(map(len, lines)) <= WIDTH_MAX
    for node, directory in enumerate(DIRECTORIES, start=1):
        (line,) = [each for each in lines if uuid_to_text(directory) in each]
        assert line.endswith(f"{node}  {uuid_to_text(directory)}  {endpoints}")


def test_no_text_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folded or not, every word is there; a program gets everything either way."""
    answer = status_of("n1")
    narrow, wide = (shown(answer, monkeypatch, capsys, *each) for each in ((), ("--wide",)))
    for text in (" ".join(each.split()) for each in (narrow, wide)):
        assert "kept_end_offset=1000000000000" in text
        assert text.count("written") == 5
        assert text.count("conflicting replica") == 9
        assert text.count("unknown record") == 7
    assert narrow.count("SASL://") == 0
    assert wide.count("SASL://n1:9190") == 4
    document = json.loads(shown(answer, monkeypatch, capsys, "-o", "json"))
    assert len(document["current_voters"][0]["endpoints"]) == 3
    assert document["log_incarnation"]["number"] == 12


def test_a_voter_of_which_little_is_known_has_its_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = status_of("n1")
    unknown = QuorumReplica(replica_id=7)
    text = shown(replace(answer, voters=(unknown, *answer.voters)), monkeypatch, capsys)
    assert "  7  -\n" in text
