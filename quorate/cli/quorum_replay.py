"""Voters that cannot lead because they cannot apply what is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.cli.each_node import ASKED_MAX, ask_each
from quorate.cli.session import Session
from quorate.client.results.admin import DescribeQuorumResponse
from quorum.types import Endpoint

if TYPE_CHECKING:
    from quorate.client import Client


async def find_stopped(
    session: Session, client: Client, *, any_node: bool
) -> tuple[DescribeQuorumResponse, dict[int, str]]:
    """A description of the quorum, and by node id why replay has stopped there.

    Where no leader is known all voters are asked, because that may be the reason; else the one
    that answered speaks for itself.
    """
    answer = await client.describe_quorum(from_leader=not any_node)
    answers = [answer]
    if answer.leader_id < 0 and not any_node:
        known = {
            Endpoint(each.name, each.host, each.port).address
            for node in answer.nodes
            for each in node.endpoints
        }
        addresses = sorted(known | set(session.servers()))[:ASKED_MAX]
        asked = await ask_each(session, addresses)
        answers += [each.answer for each in asked if each.answer is not None]
    return answer, {each.node_id: each.replay_stopped for each in answers if each.replay_stopped}


def advise_replay(
    session: Session, answer: DescribeQuorumResponse, stopped: dict[int, str]
) -> None:
    """Say which voters cannot lead for it, and plainly when none can."""
    voters = {voter.replica_id for voter in answer.voters}
    for node_id, reason in sorted(stopped.items()):
        what = "voter" if node_id in voters else "observer"
        session.announce(f"{what} {node_id} applies no further record and cannot lead: {reason}")
    if voters and voters <= stopped.keys():
        session.announce(
            "no voter can replay the log, so none will lead: start them with a release that knows "
            "these records"
        )
