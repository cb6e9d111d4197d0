"""Replicas that need an operator: how they are marked, and what to do about them."""

from __future__ import annotations

from quorate.cli.session import Session
from quorate.client.results.admin import DescribeQuorumResponse
from quorum.types import uuid_to_text


def disqualified_voters(answer: DescribeQuorumResponse) -> list[int]:
    """Ids of voters whose disks never vote, as the leader knows them."""
    return [voter.replica_id for voter in answer.voters if voter.is_disqualified]


def stranded_observers(answer: DescribeQuorumResponse) -> list[dict[str, object]]:
    """Observers in a later epoch than the leader that answers, which they cannot follow."""
    return [
        {"id": each.replica_id, "epoch": each.epoch, "is_brought_back": each.is_brought_back}
        for each in answer.replicas_ahead
    ]


def removed_observers(answer: DescribeQuorumResponse) -> list[int]:
    """Ids of observers that were voters until somebody removed them (KIP-853)."""
    removed = {(each.node_id, each.directory_id) for each in answer.removed}
    return [
        each.replica_id
        for each in answer.observers
        if (each.replica_id, each.directory_id) in removed
    ]


def _advise_removed(session: Session, answer: DescribeQuorumResponse) -> None:
    for node in removed_observers(answer):
        session.announce(
            f"observer {node} was removed from the voters; it fetches the log and never votes. "
            f"Stop it, keep it as an observer, or `quorum add-voter {node} --readmit`."
        )


def _advise_stranded(session: Session, answer: DescribeQuorumResponse) -> None:
    for each in answer.replicas_ahead:
        where = f"observer {each.replica_id} is in epoch {each.epoch} and cannot follow "
        what = (
            "the leader soon hands leadership over for it"
            if each.is_brought_back
            else "`quorum transfer-leader` begins the next epoch (docs/operations/recover.md, "
            "Epoch-ahead)"
        )
        session.announce(f"{where}epoch {answer.leader_epoch}: {what}.")


def advise(session: Session, answer: DescribeQuorumResponse) -> None:
    """Say what to do about each of them."""
    _advise_stranded(session, answer)
    _advise_removed(session, answer)
    for voter in answer.voters:
        if voter.is_disqualified:
            directory = uuid_to_text(voter.directory_id)
            session.announce(
                f"voter {voter.replica_id} is disqualified: its disk was wiped, or put back from "
                "a copy, "
                f"and never votes with directory id {directory}. Format an empty folder with "
                f"--no-initial-voters and start it, then `quorum remove-voter {voter.replica_id} "
                f"--directory-id {directory}` and "
                f"`quorum add-voter {voter.replica_id} --at HOST:PORT`."
            )
