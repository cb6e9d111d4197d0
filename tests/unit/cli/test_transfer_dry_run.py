"""A dry run of a transfer names who would lead, or refuses as the leader would."""

from __future__ import annotations

import pytest

from quorate.cli.exits import CliError, Exit
from quorate.cli.quorum_transfer import successor
from quorate.quorum_arithmetic import QuorumStatus, Replica

LEADER = Replica(1, is_leader=True)


def voter(node: int, *, lag: int = 0, silent_ms: int = 10, behind_ms: int = 10) -> Replica:
    return Replica(node, lag=lag, silent_ms=silent_ms, behind_ms=behind_ms)


def test_the_furthest_voter_that_is_caught_up_would_lead() -> None:
    status = QuorumStatus((LEADER, voter(2, lag=3), voter(3, lag=1)))
    assert successor(status, None) == 3
    assert successor(status, 2) == 2
    assert successor(status, 1) == 1, "it leads already"


@pytest.mark.parametrize(
    ("others", "wanted", "words", "code"),
    [
        ((), 9, "VOTER_NOT_FOUND: there is no other voter", Exit.NOT_FOUND),
        ((voter(2),), 9, "VOTER_NOT_FOUND: node 9 is not a voter", Exit.NOT_FOUND),
        ((), None, "INELIGIBLE_REPLICA: there is no other voter", Exit.REFUSED),
        ((voter(2, silent_ms=60_000),), 2, "INELIGIBLE_REPLICA: voter 2 is silent", Exit.REFUSED),
        ((voter(2, silent_ms=60_000),), None, "no other voter is caught up", Exit.REFUSED),
    ],
)
def test_what_the_leader_would_refuse_is_refused(
    others: tuple[Replica, ...], wanted: int | None, words: str, code: Exit
) -> None:
    with pytest.raises(CliError, match=words) as refused:
        successor(QuorumStatus((LEADER, *others)), wanted)
    assert refused.value.code is code


def test_the_refusal_of_an_unknown_node_names_the_voters() -> None:
    with pytest.raises(CliError) as refused:
        successor(QuorumStatus((LEADER, voter(2), voter(3))), 9)
    assert refused.value.hint == "voters: 1, 2, 3"
