"""``quorate health``: one line per node, and an exit code that says the same."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from quorate.cli import each_node
from quorate.cli import health as module
from quorate.cli import top as top_module
from quorate.cli.cells import ago
from quorate.cli.each_node import Asked, addresses_of
from quorate.cli.health import evaluate
from quorate.cli.main import main
from quorate.cli.reachability import SERVES_NO_CLIENTS
from quorate.cli.session import Session
from quorate.client.errors import RefusedError
from quorate.client.node_addresses import likely_addresses
from quorate.client.results.admin import (
    DescribeQuorumResponse,
    QuorumNode,
    QuorumReplica,
    RemovedVoter,
    ReplicaAhead,
)
from quorate.client.results.common import Endpoint
from quorum.errors import ErrorCode

NOW_MS = 1_000_000


def answer(node: int, *, leader: int = 1, silent: tuple[int, ...] = (), **fields: Any) -> Any:
    """What ``node`` of a cluster of three says; those that are ``silent`` fetch no longer."""
    return DescribeQuorumResponse(
        cluster_id="c",
        leader_id=leader,
        leader_epoch=fields.pop("epoch", 4),
        high_watermark=9,
        node_id=node,
        is_leader=node == leader,
        log_end_offset=9,
        timestamp_ms=NOW_MS,
        check_quorum_ms=3_000,
        voters=[
            QuorumReplica(
                replica_id=each,
                log_end_offset=9,
                last_fetch_timestamp_ms=NOW_MS - (60_000 if each in silent else 300),
                last_caught_up_timestamp_ms=NOW_MS - (60_000 if each in silent else 300),
            )
            for each in (1, 2, 3)
        ],
        nodes=[
            QuorumNode(
                node_id=each,
                endpoints=[
                    Endpoint(name="PEER", host=f"n{each}", port=9094),
                    Endpoint(name="CLIENT", host=f"n{each}", port=9093),
                ],
            )
            for each in (1, 2, 3)
        ],
        **fields,
    )


def well(node: int, **fields: Any) -> Asked:
    return Asked(f"n{node}:9093", answer(node, **fields))


def gone(node: int, why: str = "connection refused") -> Asked:
    return Asked(f"n{node}:9093", None, why)


def ran(
    monkeypatch: pytest.MonkeyPatch,
    *asked: Asked,
    output: str = "table",
    command: tuple[str, ...] = ("health",),
) -> int:
    async def answers(_session: object, _servers: object) -> list[Asked]:
        return list(asked)

    for each in (module, top_module):
        monkeypatch.setattr(each, "ask_all", answers)
    return main([*command, "--bootstrap", "n1:9093", "-o", output])


def problems(*asked: Asked) -> dict[object, object]:
    return {row["node_id"]: row["problem"] for row in evaluate(asked).rows if row["problem"]}


def test_a_healthy_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, well(1), well(2), well(3), output="json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["is_healthy"], found["leader_id"]) == ("Health", True, 1)
    assert found["margin"] == 1
    assert [(row["node_id"], row["role"]) for row in found["rows"]] == [
        (1, "leader"), (2, "voter"), (3, "voter"),
    ]  # fmt: skip
    assert [row["last_fetch_age_ms"] for row in found["rows"]] == [-1, 300, 300]


def test_one_line_per_node_that_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, well(1, silent=(3,)), well(2), gone(3)) == 3
    seen = capsys.readouterr()
    assert seen.err == "error: 1 of 3 nodes have a problem\n"
    lines = seen.out.splitlines()
    assert sum("n3:9093" in line for line in lines) == 1
    assert "0.3 s ago" in seen.out
    # The problem comes last, so that everything else is within a terminal's width.
    assert lines[-4].index("PROBLEM") < 80


def test_a_node_that_is_gone_and_that_the_leader_misses() -> None:
    assert problems(well(1, silent=(3,)), well(2), gone(3)) == {
        3: "connection refused; silent: the leader hears nothing from it"
    }


def test_no_leader_is_status_seven(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, well(2, leader=-1), well(3, leader=-1), gone(1)) == 7
    assert capsys.readouterr().err == "error: no node leads\n"
    assert problems(well(2, leader=-1), gone(1))[2] == "knows no leader"


def test_a_table_says_in_words_that_there_is_no_leader(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, well(2, leader=-1), well(3, leader=-1), gone(1)) == 7
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines()[:6])
    assert {name: text.strip() for name, text in lines.items() if name != "cluster_id"} == {
        "leader_id": "none", "leader_epoch": "unknown", "high_watermark": "unknown",
        "margin": "-", "is_healthy": "no",
    }  # fmt: skip
    assert ran(monkeypatch, well(2, leader=-1), output="json") == 7
    assert json.loads(capsys.readouterr().out)["leader_id"] == -1


def test_a_removed_voter_that_fetches_on_is_named_and_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = b"d" * 16
    observers = [
        QuorumReplica(
            replica_id=node,
            directory_id=disk,
            log_end_offset=9,
            last_fetch_timestamp_ms=NOW_MS,
            last_caught_up_timestamp_ms=NOW_MS,
        )
        for node in (4, 5, 6)
    ]
    # The number of node 6 was removed with another disk: this one is new, and never voted.
    removed = [
        RemovedVoter(node_id=4, directory_id=disk),
        RemovedVoter(node_id=6, directory_id=b"e" * 16),
    ]
    leader = well(1, observers=observers, removed=removed)
    assert ran(monkeypatch, leader, well(2), well(3)) == 0
    seen = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in seen if "removed from the voters" in line] == ["4"]
    assert ran(monkeypatch, well(1), well(2), well(3)) == 0
    assert "NOTE" not in capsys.readouterr().out


def test_a_leader_that_is_only_spoken_of_does_not_count() -> None:
    """Followers name a leader for a while after it is gone."""
    report = evaluate([gone(1), well(2), well(3)])
    assert (report.leader_id, report.is_healthy) == (-1, False)


def test_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, gone(1, "no answer within 2 s")) == 7
    seen = capsys.readouterr()
    assert seen.err == "error: no node answers\n"
    assert "no answer within 2 s" in seen.out


def refused(code: int) -> Asked:
    return Asked("n1:9093", None, "refused by the node", code)


@pytest.mark.parametrize("command", [("health",), ("top", "--count", "1")])
def test_a_node_that_refuses_is_one_that_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    denied = refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert ran(monkeypatch, denied, gone(2), command=command) == 6
    assert capsys.readouterr().err == "error: refused: refused by the node\n"
    assert ran(monkeypatch, denied, gone(1), well(2), command=command) == 7
    assert capsys.readouterr().err == "error: no node leads\n"


def test_top_ends_as_its_last_look(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("top", "--count", "1")
    assert ran(monkeypatch, well(1), well(2), well(3), command=command) == 0
    assert ran(monkeypatch, well(2, leader=-1), command=command) == 7
    assert ran(monkeypatch, gone(1), gone(2), output="jsonl", command=command) == 7
    assert capsys.readouterr().err == "error: no node leads\nerror: no node answers\n"


def test_of_two_leaders_the_later_counts_and_the_other_is_reported() -> None:
    old = Asked("n2:9093", answer(2, leader=2, epoch=3))
    report = evaluate([old, well(1), well(3)])
    assert (report.leader_id, report.leader_epoch) == (1, 4)
    assert problems(old, well(1), well(3)) == {2: "takes node 2 for the leader"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"replay_stopped": "offset 7"}, "applies no further record: offset 7"),
        ({"divergence_resolution": "with 1"}, "log differs: with 1"),
    ],
)
def test_what_a_node_says_about_itself(fields: dict[str, str], words: str) -> None:
    assert problems(well(1), well(2, **fields), well(3)) == {2: words}


def with_listeners(
    found: Any, *, peer_ports: tuple[int, ...] = (9094, 9094, 9094), own: bool = True
) -> Any:
    """The answer where peers have a listener of their own: only the leader's entry has both."""
    nodes = [
        QuorumNode(
            node_id=each,
            endpoints=[
                Endpoint(name="CONTROLLER", host=f"n{each}", port=peer_ports[each - 1]),
                *([Endpoint(name="CLIENT", host=f"n{each}", port=9093)] if each == 1 else ()),
            ],
        )
        for each in (1, 2, 3)
    ]
    shown = [
        Endpoint(name="CONTROLLER", host=f"n{found.node_id}", port=9094),
        Endpoint(name="CLIENT", host=f"n{found.node_id}", port=9093),
    ]
    return replace(found, nodes=nodes, own_endpoints=shown if own else ())


def test_nodes_with_a_listener_for_peers_are_asked_at_the_port_for_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same port as that of the node that answers; another node's answer there is dropped."""
    found = {
        "n2:9093": with_listeners(answer(2)),
        "n1:9093": with_listeners(answer(1)),
        "n3:9093": replace(answer(3), node_id=7),
    }
    seen: list[str] = []

    async def asked(_session: object, address: str) -> Asked:
        seen.append(address)
        return Asked(address, found[address])

    monkeypatch.setattr(each_node, "_asked", asked)
    report = evaluate(asyncio.run(each_node.ask_all(Session(), ["n2:9093"])))
    assert sorted(seen) == ["n1:9093", "n2:9093", "n3:9093"]
    assert [row["node_id"] for row in report.rows] == [1, 2, 3]
    assert [row["address"] for row in report.rows] == ["n1:9093", "n2:9093", ""]
    assert report.is_healthy
    note = str(report.rows[2]["note"])
    assert note == (
        "not asked, as no node knows where: add its `listeners.client` to --bootstrap (nor at "
        "n3:9093: another node answers there)"
    )


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("failure", [SERVES_NO_CLIENTS.cause, "connection refused"])
def test_a_node_that_cannot_be_asked_is_as_well_as_its_leader_says(failure: str, own: bool) -> None:
    """Whatever its peers' port says to a client; the note says what to do."""
    ports = (9094, 9095, 9096)
    leading = with_listeners(answer(1), peer_ports=ports, own=own)
    failed = [Asked("n2:9095", None, failure), Asked("n3:9096", None, failure)]
    report = evaluate([Asked("n1:9093", leading), *failed])
    assert report.is_healthy
    assert [(row["address"], row["note"]) for row in report.rows[1:]] == [
        ("", "not asked, as no node knows where: add its `listeners.client` to --bootstrap")
    ] * 2
    silent = with_listeners(answer(1, silent=(2,)), peer_ports=ports, own=own)
    assert problems(Asked("n1:9093", silent), *failed) == {
        2: "silent: the leader hears nothing from it"
    }


def test_without_a_leader_a_node_that_cannot_be_asked_has_a_problem() -> None:
    lost = with_listeners(answer(2, leader=-1), peer_ports=(9094, 9095, 9096))
    found = problems(Asked("n2:9093", lost))
    assert "add its `listeners.client` to --bootstrap" in str(found[3])


def test_nodes_that_share_a_port_are_asked_there() -> None:
    shared = [Endpoint(name="CONTROLLER", host="n1", port=9093)]
    nodes = [
        QuorumNode(
            node_id=each, endpoints=[Endpoint(name="CONTROLLER", host=f"n{each}", port=9093)]
        )
        for each in (1, 2, 3)
    ]
    leading = replace(answer(1), nodes=nodes, own_endpoints=shared)
    assert likely_addresses(leading) == {}
    assert problems(Asked("n1:9093", leading), gone(2), gone(3)) == {
        2: "connection refused",
        3: "connection refused",
    }


def test_with_a_password_nodes_are_asked_at_the_listener_for_passwords() -> None:
    leading = answer(1)
    first = QuorumNode(
        node_id=1,
        endpoints=(
            Endpoint(name="CONTROLLER", host="n1", port=9094),
            Endpoint(name="SASL", host="n1", port=9095),
            Endpoint(name="CLIENT", host="n1", port=9093),
        ),
    )
    leading = replace(leading, nodes=(first, *leading.nodes[1:]))
    assert addresses_of(leading, is_sasl=True) == {1: "n1:9095"}
    assert addresses_of(leading)[1] == "n1:9093"
    assert evaluate([Asked("n1:9095", leading)], is_sasl=True).is_healthy


def test_what_the_leader_says_about_others() -> None:
    leading = answer(1)
    first, second, third = leading.voters
    leading = replace(
        leading,
        voters=(first, replace(second, is_disqualified=True, log_end_offset=-1), third),
        observers=(QuorumReplica(replica_id=9, log_end_offset=-1),),
        replicas_ahead=(ReplicaAhead(replica_id=9, epoch=7),),
    )
    found = problems(Asked("n1:9093", leading), well(2), well(3))
    assert found[2] == "disqualified: its disk never votes"
    assert "in epoch 7, later than the leader's" in str(found[9])


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (-1, None), (0, "0.0 s ago"), (300, "0.3 s ago"), (59_949, "59.9 s ago"),
        (60_000, "1 min ago"), (7_200_000, "2 h ago"), (200_000_000, "2 d ago"),
    ],
)  # fmt: skip
def test_ages_as_text(age_ms: int, text: str | None) -> None:
    assert ago(age_ms) == text


def test_a_status_without_a_leader_is_status_seven(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(2, leader=-1)
    monkeypatch.setattr("quorate.cli.quorum.ask", lambda *_: (found, {}))
    assert main(["quorum", "describe", "status"]) == 7
    assert "error: node 2 knows no leader" in capsys.readouterr().err
    monkeypatch.setattr("quorate.cli.quorum.ask", lambda *_: found)
    assert main(["quorum", "describe", "replication"]) == 7


def test_a_refusal_keeps_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    code = ErrorCode.SASL_AUTHENTICATION_FAILED

    class Refusing:
        async def __aenter__(self) -> Refusing:
            return self

        async def __aexit__(self, *_error: object) -> None:
            return None

        async def describe_quorum(self, *, from_leader: bool) -> None:
            assert not from_leader
            raise RefusedError(code, "wrong password")

    monkeypatch.setattr(each_node, "client_of", lambda *_: Refusing())
    (asked,) = asyncio.run(each_node.ask_each(Session(), ["127.0.0.1:1"]))
    assert (asked.answer, asked.refusal) == (None, code)
    assert "wrong password" in asked.failure
