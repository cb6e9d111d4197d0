"""The quorum as shown: lag, unknown values, and the order of rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quorate.cli.broker import parse_listener
from quorate.cli.cells import named_text
from quorate.cli.connection import refusal_exit
from quorate.cli.exits import CliError, Exit
from quorate.cli.main import main
from quorate.cli.quorum import replication_rows, status_fields
from quorate.cli.quorum_disqualified import advise
from quorate.cli.quorum_replay import advise_replay
from quorate.cli.quorum_support import unsupported_levels, warnings_about_versions
from quorate.cli.quorum_tree import route_of
from quorate.cli.session import Session
from quorate.cli.topic import parse_assignment, parse_pair
from quorate.client.results.admin import (
    DescribeQuorumResponse,
    FeatureDescription,
    ObserverLink,
    QuorumReplica,
    RemovedVoter,
    ReplicaAhead,
)
from quorum.errors import ErrorCode
from quorum.types import uuid_to_text


def replica(node_id: int, end: int, caught_up: int = -1, directory: bytes = b"") -> QuorumReplica:
    return QuorumReplica(
        replica_id=node_id,
        directory_id=directory,
        log_end_offset=end,
        last_fetch_timestamp_ms=caught_up,
        last_caught_up_timestamp_ms=caught_up,
    )


def quorum(*voters: QuorumReplica, leader: int = 2) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        cluster_id="c",
        leader_id=leader,
        leader_epoch=3,
        high_watermark=90,
        voters=voters,
        observers=(replica(9, 40),),
    )


def test_the_largest_lag_is_that_of_the_slowest_voter() -> None:
    fields = status_fields(
        quorum(replica(1, 70, 1000), replica(2, 100, 5000), replica(3, 95, 4000))
    )
    assert fields["max_follower_lag"] == 30
    assert fields["max_follower_lag_time_ms"] == 4000


def test_without_a_leader_no_replica_is_called_one() -> None:
    rows = replication_rows(quorum(replica(1, -1), replica(2, -1), leader=-1))
    shown = {(row["status"], row["lag"], row["fetches_from"]) for row in rows[:2]}
    assert shown == {("Follower", -1, None)}
    assert {named_text(name, -1) for name in ("lag", "log_end_offset", "compared_end")} == {
        "unknown"
    }


def test_a_leader_that_is_the_slowest_has_no_lag() -> None:
    fields = status_fields(quorum(replica(2, 100, 5000)))
    assert (fields["max_follower_lag"], fields["max_follower_lag_time_ms"]) == (0, 0)


def test_levels_in_force_that_a_node_does_not_support_are_named() -> None:
    in_force = [
        FeatureDescription(name="a", supported_max=9, finalized_level=5),
        FeatureDescription(name="b", supported_max=9, finalized_level=0),
        FeatureDescription(name="c", supported_max=9, finalized_level=1),
    ]
    there = [FeatureDescription(name="a", supported_min=1, supported_max=4)]
    assert unsupported_levels(4, there, in_force) == [
        "node 4 cannot take part: a 5 is in force, it supports 1 to 4",
        "node 4 cannot take part: c 1 is in force, it supports 0 to 0",
    ]
    assert not unsupported_levels(4, in_force, in_force)
    assert warnings_about_versions("n4:9190", 4) == []
    assert "--at" in warnings_about_versions(None, 4)[0]


@pytest.mark.parametrize("leader", [-1, 2])
def test_what_a_follower_does_not_know_stays_unknown(leader: int) -> None:
    fields = status_fields(quorum(replica(1, -1), replica(2, -1), leader=leader))
    assert (fields["max_follower_lag"], fields["max_follower_lag_time_ms"]) == (-1, -1)
    rows = replication_rows(quorum(replica(1, -1), replica(2, -1), leader=leader))
    assert {row["lag"] for row in rows} == {-1}


def test_the_leader_comes_first_then_voters_then_observers() -> None:
    rows = replication_rows(quorum(replica(1, 70), replica(2, 100), replica(3, 95)))
    assert [(row["node_id"], row["status"], row["lag"]) for row in rows] == [
        (2, "Leader", 0),
        (1, "Follower", 30),
        (3, "Follower", 5),
        (9, "Observer", 60),
    ]


def test_every_observer_is_shown_with_its_way() -> None:
    """Relay 9 serves 20, which serves 21; the leader knows both from 9 alone."""
    below = (
        ObserverLink(observer_id=20, fetches_from=9),
        ObserverLink(observer_id=21, fetches_from=20),
    )
    relay = replace(replica(9, 40), subtree_members=2, below=below)
    answer = replace(quorum(replica(2, 100)), is_leader=True, observers=(relay,))
    rows = {row["node_id"]: row for row in replication_rows(answer)}
    assert {each: (row["fetches_from"], row["route"]) for each, row in rows.items()} == {
        2: (None, []),
        9: (2, []),
        20: (9, [9]),
        21: (20, [20, 9]),
    }
    assert (rows[21]["lag"], rows[20]["subtree"], rows[9]["subtree"]) == (-1, 1, 2)


def test_a_relays_subtree_low_is_shown_with_whether_it_is_provisional() -> None:
    relay = replace(replica(9, 40), subtree_low_offset=7, is_subtree_low_provisional=True)
    answer = replace(quorum(replica(2, 100)), observers=(relay,))
    row = next(row for row in replication_rows(answer) if row["node_id"] == 9)
    assert (row["subtree_low"], row["is_low_provisional"]) == (7, True)
    fields = status_fields(answer)
    assert (fields["relay_low"], fields["is_relay_low_provisional"]) == (None, False)
    answer = replace(answer, relay_low_offset=0, is_relay_low_provisional=True)
    fields = status_fields(answer)
    assert (fields["relay_low"], fields["is_relay_low_provisional"]) == (0, True)


def test_a_relay_shows_the_way_of_its_own_observers_up_to_the_leader() -> None:
    below = (ObserverLink(observer_id=22, fetches_from=21),)
    observers = (replace(replica(21, 40), below=below),)
    answer = replace(quorum(replica(2, 100)), node_id=20, relay_path=(9,), observers=observers)
    rows = {row["node_id"]: row for row in replication_rows(answer)}
    assert (rows[21]["fetches_from"], rows[21]["route"]) == (20, [20, 9])
    assert (rows[22]["fetches_from"], rows[22]["route"]) == (21, [21, 20, 9])


def test_reports_that_contradict_each_other_end_somewhere() -> None:
    """One observer moved from relay to relay while both reports were under way."""
    assert len(route_of(1, {1: 2, 2: 1}, top=9)) == 64


def test_refusals_of_a_newer_server_are_plain_failures() -> None:
    assert refusal_exit(ErrorCode.TOPIC_ALREADY_EXISTS) is Exit.CONFLICT
    assert refusal_exit(31_337) is Exit.FAILED


@pytest.mark.parametrize(
    ("text", "parsed"), [("", []), ("1", [[1]]), ("1:2,2:3", [[1, 2], [2, 3]])]
)
def test_assignments(text: str, parsed: list[list[int]]) -> None:
    assert parse_assignment(text) == parsed


@pytest.mark.parametrize("text", ["a", "1:,2", "1;2"])
def test_an_invalid_assignment_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="write it like"):
        parse_assignment(text)


def test_pairs_may_hold_more_equals_signs() -> None:
    assert parse_pair("a=b=c") == ("a", "b=c")
    for text in ("a", "=b"):
        with pytest.raises(CliError):
            parse_pair(text)


def test_listeners() -> None:
    listener = parse_listener("plaintext://[::1]:9092")
    assert (listener.name, listener.host, listener.port) == ("PLAINTEXT", "::1", 9092)
    for text in ("h:1", "A://h", "A B://h:1", "A://h:99999"):
        with pytest.raises(CliError):
            parse_listener(text)


def test_what_is_known_of_differing_logs_is_shown() -> None:
    answer = quorum(replica(1, 70), replica(2, 100))
    assert status_fields(answer)["divergence_resolution"] is None
    first, second = answer.voters
    answer = replace(
        answer,
        voters=(replace(first, compared_end_offset=60), second),
        divergence_resolution="the log differs from that of node 1: asking the other voters",
    )
    assert status_fields(answer)["divergence_resolution"] == answer.divergence_resolution
    assert [row["compared_end"] for row in replication_rows(answer)] == [-1, 60, 0]


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_a_pending_change_and_removed_voters_are_shown(
    output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After an unknown outcome these two fields show the result of the change."""
    answer = quorum(replica(1, 90), replica(2, 90))
    assert status_fields(answer)["pending_change"] is None
    assert status_fields(answer)["removed_voters"] == []
    removed = (RemovedVoter(node_id=3, directory_id=b"d" * 16),)
    answer = replace(answer, pending_change="remove node 1, written at 90", removed=removed)
    monkeypatch.setattr("quorate.cli.quorum.ask", lambda *_: (answer, {}))
    assert main(["quorum", "describe", "status", "-o", output]) == 0
    shown = capsys.readouterr().out
    directory = uuid_to_text(b"d" * 16)
    if output == "json":
        found = json.loads(shown)
        assert found["pending_change"] == "remove node 1, written at 90"
        assert found["removed_voters"] == [{"id": 3, "directory_id": directory}]
    assert "remove node 1, written at 90" in shown
    assert directory in shown


def test_a_disqualified_voter_is_marked_with_the_recovery_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its directory id is in the commands, so that they can be copied."""
    disqualified = QuorumReplica(
        replica_id=3, directory_id=b"d" * 16, log_end_offset=-1, is_disqualified=True
    )
    answer = quorum(replica(1, 90), replica(2, 90), disqualified)
    statuses = {row["node_id"]: row["status"] for row in replication_rows(answer)}
    assert statuses == {1: "Follower", 2: "Leader", 3: "Disqualified", 9: "Observer"}
    assert status_fields(answer)["disqualified_voters"] == [3]
    advise(Session(), answer)
    warnings = capsys.readouterr().err
    assert f"remove-voter 3 --directory-id {uuid_to_text(b'd' * 16)}" in warnings
    assert "--no-initial-voters" in warnings


def test_an_observer_in_a_later_epoch_is_named_with_what_ends_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command is only shown where the leader does not act by itself."""
    ahead = ReplicaAhead(replica_id=9, epoch=5, is_brought_back=True)
    answer = replace(quorum(replica(1, 90), replica(2, 90)), replicas_ahead=(ahead,))
    assert status_fields(answer)["stranded_observers"] == [
        {"id": 9, "epoch": 5, "is_brought_back": True}
    ]
    advise(Session(), answer)
    warnings = capsys.readouterr().err
    assert "observer 9 is in epoch 5 and cannot follow epoch 3: the leader soon hands" in warnings
    assert "transfer-leader" not in warnings
    answer = replace(answer, replicas_ahead=(replace(ahead, is_brought_back=False),))
    advise(Session(), answer)
    assert "`quorum transfer-leader`" in capsys.readouterr().err


def test_voters_that_cannot_replay_are_named_and_all_of_them_plainly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Goal: an operator without a leader learns from ``describe status`` that none can come."""
    answer = quorum(replica(1, 90), replica(2, 90))
    advise_replay(Session(), answer, {2: "offset 7: unknown record"})
    warnings = capsys.readouterr().err
    assert "voter 2 applies no further record and cannot lead: offset 7: unknown record" in warnings
    assert "no voter can replay" not in warnings
    advise_replay(Session(), answer, {1: "offset 7: unknown record", 2: "x", 9: "y"})
    warnings = capsys.readouterr().err
    assert "observer 9 applies no further record" in warnings
    assert "no voter can replay the log, so none will lead" in warnings


def test_the_replication_table_fits_a_terminal_and_shows_ages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--wide`` shows the other columns; documents have all fields either way."""
    end = 9_000_000_000
    answer = quorum(replica(1, end - 12, 4_700, b"d" * 16), replica(2, end, 5_000, b"e" * 16))
    answer = replace(answer, timestamp_ms=5_000)
    monkeypatch.setattr("quorate.cli.quorum.ask", lambda *_: answer)
    assert main(["quorum", "describe", "replication"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 100
    assert any("0.3 s ago" in line for line in lines)
    assert main(["quorum", "describe", "replication", "--wide"]) == 0
    assert "COMPARED_END" in capsys.readouterr().out
    assert main(["quorum", "describe", "replication", "-o", "json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][1]
    assert (row["last_fetch"], row["last_fetch_timestamp_ms"]) == ("0.3 s ago", 4_700)
    assert "compared_end" in row
