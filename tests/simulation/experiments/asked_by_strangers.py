"""A leader dies, and a candidate in no record asks all voters for votes: they must elect a leader.

No voter can tell such a candidate from a voter that was just added, so it may get votes. It must
not keep voters from campaigning by that, however often it asks. It asks cores without a network or
disks, so that it is always as fast as it can be.
"""

from __future__ import annotations

import random

from quorum.core.messages.vote_messages import VoteRequest
from quorum.types import OffsetAndEpoch, ReplicaKey
from simulation.invariants.violation import Violation
from tests.simulation.experiments.experiment import Experiment
from tests.support.core_cluster import CLUSTER, CoreCluster

NAME = "liveness"
VOTERS = ((1, 2, 3), (1, 2, 3, 4, 5))
PERIOD_MS = (5, 150)
ELECTED_MS_MAX = 10_000
AHEAD = 1 << 40
"""No log ends there, so none is ahead of the candidate's."""


def run(seed: int) -> Violation | None:
    """The first voter leads and dies; the candidate asks the others, one after the other."""
    rng = random.Random(seed)
    voters = rng.choice(VOTERS)
    cluster = CoreCluster(voters, seed=seed)
    cluster.elect(voters[0])
    cluster.advance(1_000)
    cluster.crash(voters[0])
    candidate = ReplicaKey(77, rng.randbytes(16))
    period_ms, began_ms = rng.randint(*PERIOD_MS), cluster.now_ms
    while not cluster.leaders():
        if cluster.now_ms - began_ms > ELECTED_MS_MAX:
            return Violation(NAME, "no leader while a stranger asks for votes", period=period_ms)
        cluster.advance(period_ms)
        for node_id in voters[1:]:
            _ask(cluster, node_id, candidate)
    return None


def _ask(cluster: CoreCluster, node_id: int, candidate: ReplicaKey) -> None:
    node = cluster[node_id]
    last = OffsetAndEpoch(AHEAD, node.epoch)
    request = VoteRequest(
        9, CLUSTER, candidate, ReplicaKey(-1), node.epoch + 1, last, pre_vote=False
    )
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, candidate.id, request))


ASKED_BY_STRANGERS = Experiment("a leader dies, and a stranger asks for votes", run)
