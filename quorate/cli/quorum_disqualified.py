"""Voters whose disks never vote: how they are marked, and what to do about them."""

from __future__ import annotations

from quorate.cli.session import Session
from quorum.types import uuid_to_text
from quorum.v1.admin_pb2 import DescribeQuorumResponse


def disqualified_voters(answer: DescribeQuorumResponse) -> list[int]:
    """Ids of voters whose disks never vote, as the leader knows them."""
    return [voter.replica_id for voter in answer.voters if voter.is_disqualified]


def advise(session: Session, answer: DescribeQuorumResponse) -> None:
    """Say what to do about each of them."""
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
