"""``quorum may-stop``: one exit code for yes, one for no, others for "nobody could tell"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.cli import quorum_may_stop
from quorate.cli.exits import CliError, Exit
from quorate.cli.main import main
from quorum.v1.admin_pb2 import DescribeQuorumResponse, QuorumReplica

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


def ran(monkeypatch: pytest.MonkeyPatch, answer: Any, *arguments: str) -> int:
    def asked(_session: object, _work: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(quorum_may_stop, "ask", asked)
    return main(["-o", "json", "quorum", "may-stop", *arguments])


@pytest.mark.parametrize(
    ("answer", "arguments", "status"),
    [
        (described(10, 10), ["2"], Exit.OK),
        (described(10, 10), ["9"], Exit.OK),
        (described(10, 10), ["2", "--spare", "1"], Exit.REFUSED),
        (described(10, 4_000), ["2"], Exit.REFUSED),
        (described(10, 4_000), ["3"], Exit.OK),
        (described(10, 4_000, check_quorum_ms=9_000), ["2"], Exit.OK),
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
    said = json.loads(capsys.readouterr().out)
    assert said["kind"] == "MayStop"
    assert said["may_stop"] is False
    assert said["reasons"] == [
        "1 of 3 voters would be left that can acknowledge, 2 are needed",
        "node 3 is silent for 4.0 s",
    ]
    assert said["unable"] == [{"id": 3, "condition": "silent", "lag": 0, "silent_ms": 4_000}]
    assert said["patience_ms"] == 3_000
    ran(monkeypatch, described(10, 10), "2")
    may = json.loads(capsys.readouterr().out)
    assert (may["may_stop"], may["reasons"], may["reason"]) == (True, [], "")
