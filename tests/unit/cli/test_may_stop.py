"""``quorum may-stop``: one exit code for yes, one for no, others for an unknown answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.cli import quorum_may_stop
from quorate.cli.exits import CliError, Exit
from quorate.cli.main import main
from quorate.client.results.admin import DescribeQuorumResponse, QuorumReplica

NOW_MS = 1_000_000


def described(*silent_ms: int, check_quorum_ms: int = 3_000, **fields: Any) -> Any:
    """Node 1 leads; the others have been silent for so long."""
    ages = (0, *silent_ms)
    return DescribeQuorumResponse(
        leader_id=1,
        is_leader=fields.pop("is_leader", True),
        node_id=1,
        log_end_offset=9,
        timestamp_ms=NOW_MS,
        check_quorum_ms=check_quorum_ms,
        voters=[
            QuorumReplica(
                replica_id=place + 1,
                log_end_offset=9,
                last_fetch_timestamp_ms=NOW_MS - age,
                last_caught_up_timestamp_ms=NOW_MS - age,
            )
            for place, age in enumerate(ages)
        ],
        observers=[QuorumReplica(replica_id=9, log_end_offset=3)],
        **fields,
    )


class Cluster:
    """The leader's answers over time: every live node fetches every half second."""

    def __init__(self, answer: Any, dead: tuple[int, ...] = (), revived_s: float = 1e9) -> None:
        self.answer, self.dead, self.revived_s = answer, dead, revived_s
        self.now_s = 0.0
        self.asked = 0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def ask(self, _session: object, _work: object) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        passed_ms = round(self.now_s * 1000)
        response = self.answer.to_message()
        response.timestamp_ms += passed_ms
        for each in response.voters:
            is_silent = response.timestamp_ms - passed_ms - each.last_fetch_timestamp_ms > 500
            if (each.replica_id in self.dead and self.now_s < self.revived_s) or is_silent:
                continue
            each.last_fetch_timestamp_ms += passed_ms // 500 * 500
            each.last_caught_up_timestamp_ms = each.last_fetch_timestamp_ms
        return DescribeQuorumResponse.of(response)


def ran(monkeypatch: pytest.MonkeyPatch, answer: Any, *arguments: str) -> int:
    cluster = answer if isinstance(answer, Cluster) else Cluster(answer)
    monkeypatch.setattr(quorum_may_stop, "ask", cluster.ask)
    monkeypatch.setattr(quorum_may_stop, "time", cluster)
    return main(["-o", "json", "quorum", "may-stop", *arguments])


@pytest.mark.parametrize(
    ("answer", "arguments", "status"),
    [
        (described(10, 10), ["2"], Exit.OK),
        (described(10, 10), ["9"], Exit.OK),
        (described(10, 10), ["2", "--spare", "1"], Exit.REFUSED),
        (described(10, 4_000), ["2"], Exit.REFUSED),
        (described(10, 4_000), ["3"], Exit.OK),
        (described(10, 4_000, check_quorum_ms=9_000), ["2"], Exit.REFUSED),
        (described(10, 400, check_quorum_ms=9_000), ["2"], Exit.OK),
        (described(10, 4_000, check_quorum_ms=0), ["2"], Exit.REFUSED),
        (described(10, 10, pending_change="add node 4, not written yet"), ["2"], Exit.REFUSED),
        (described(), ["1"], Exit.REFUSED),
        (described(10, 10), ["7"], Exit.NOT_FOUND),
        (described(10, 10, is_leader=False), ["2"], Exit.UNREACHABLE),
        (CliError("nobody there", code=Exit.UNREACHABLE), ["2"], Exit.UNREACHABLE),
        (CliError("not allowed", code=Exit.REFUSED), ["2"], Exit.FAILED),
        (described(10, 10), ["two"], Exit.USAGE),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, answer: Any, arguments: list[str], status: Exit
) -> None:
    assert ran(monkeypatch, answer, *arguments) == status


def test_reasons_are_sentences_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(monkeypatch, described(10, 4_000), "2")
    report = json.loads(capsys.readouterr().out)
    assert report["kind"] == "MayStop"
    assert report["may_stop"] is False
    assert report["reasons"] == [
        "1 of 3 voters would be left that can acknowledge, 2 are needed",
        "node 3 is silent for 4.0 s",
    ]
    assert report["unable"] == [{"id": 3, "condition": "silent", "lag": 0, "silent_ms": 4_000}]
    assert report["patience_ms"] == 3_000
    ran(monkeypatch, described(10, 10), "2")
    may = json.loads(capsys.readouterr().out)
    assert (may["may_stop"], may["reasons"], may["reason"]) == (True, [], "")


def test_a_voter_that_died_a_moment_ago_does_not_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: no yes from what was true before. Method: node 3 was killed 10 ms ago; ask at once."""
    cluster = Cluster(described(10, 10), dead=(3,))
    assert ran(monkeypatch, cluster, "2") == Exit.REFUSED
    assert 2.0 <= cluster.now_s < 2.2
    report = json.loads(capsys.readouterr().out)
    assert report["reasons"][0] == "1 of 3 voters would be left that can acknowledge, 2 are needed"
    assert report["unable"][0]["condition"] == "silent"


def test_the_answer_comes_as_soon_as_all_have_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no waiting for nothing. Method: all alive; then one that has long been silent."""
    cluster = Cluster(described(10, 10))
    assert ran(monkeypatch, cluster, "2") == Exit.OK
    assert 0.45 <= cluster.now_s < 0.6
    cluster = Cluster(described(10, 4_000))
    assert ran(monkeypatch, cluster, "3") == Exit.OK
    assert cluster.now_s < 0.6
    cluster = Cluster(described(10, 4_000))
    assert ran(monkeypatch, cluster, "2") == Exit.REFUSED
    assert cluster.asked == 1


def test_it_waits_until_the_node_may_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(described(10, 10), dead=(3,), revived_s=5.0)
    assert ran(monkeypatch, cluster, "2", "--wait", "3") == Exit.REFUSED
    cluster = Cluster(described(10, 10), dead=(3,), revived_s=5.0)
    assert ran(monkeypatch, cluster, "2", "--wait", "30") == Exit.OK
    assert 5.0 <= cluster.now_s < 8.0


def test_another_leader_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: times of two leaders' clocks are not compared. Method: the epoch rises in between."""

    class Changing(Cluster):
        def ask(self, _session: object, _work: object) -> Any:
            response = super().ask(_session, _work).to_message()
            if self.now_s >= 0.2:
                response.leader_epoch = 2
                ahead_ms = 3_600_000
                response.timestamp_ms += ahead_ms
                for each in response.voters:
                    each.last_fetch_timestamp_ms += ahead_ms
                    each.last_caught_up_timestamp_ms += ahead_ms
            return DescribeQuorumResponse.of(response)

    cluster = Changing(described(10, 10), dead=(3,))
    assert ran(monkeypatch, cluster, "2") == Exit.REFUSED
