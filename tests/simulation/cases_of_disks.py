"""Stub clusters whose disks get their work in the wrong order, or lose what they completed."""

from __future__ import annotations

from quorum.core.contract.output import SaveElectionState
from quorum.runtime.ports import WriteGroup
from quorum.types import ElectionState
from tests.support.stub_cluster import Stage, key_of


def later_ticket_first(stage: Stage) -> None:
    for ticket in (3, 2):
        effect = SaveElectionState(ElectionState(ticket))
        stage.run_observer.submitted(1, WriteGroup(ticket, (effect,)))


def vote_lost(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1, voted=key_of(2))))
    stage.open(1, ElectionState(1))


def records_lost(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.open(1)


def records_lost_in_silence(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.run_observer.nodes[1].secured_end = 1
    stage.run_observer.damaged(1)
    stage.open(1)


CASES = (
    (later_ticket_first, "tickets-in-order"),
    (vote_lost, "durable-survives"),
    (records_lost, "durable-survives"),
    (records_lost_in_silence, "losses-known"),
)
