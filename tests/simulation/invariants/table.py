"""The standing invariants: what must hold after every step of any cluster.

They see what leaves a node, what its disk was given and has completed, and what it says of
itself; none knows how a fault was made. Shared by the simulation and the scenarios.

| Property | Source |
|---|---|
| one-leader | Raft 5.2, Election Safety |
| monotone | Raft figure 2; 279.4 |
| one-vote | Raft 5.2 |
| one-campaign | architecture, decision 9 |
| log-matching | Raft 5.3, Log Matching |
| committed-stays | Raft 5.4.3, State Machine Safety; 279.4 |
| leader-completeness | Raft 5.4, Leader Completeness |
| committed-on-majority | Raft 5.3, 5.4.2 |
| bounds | architecture 9 |
| log-start-covered | 630.14 |
| equal-images | Raft 5.4.3, State Machine Safety |
| equal-checkpoints | architecture, decision 8 |
| promises | Raft 5; architecture 4 and decision 9 |
| durable-survives | architecture, decision 9 |
| acknowledged-survives | requirements 360; decision 12 |
| confirmed-reads | Raft 8; architecture 5.3 |
"""

from __future__ import annotations

from tests.simulation.invariants.acknowledged_survives import AcknowledgedSurvives
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.committed_on_majority import CommittedOnMajority
from tests.simulation.invariants.committed_stays import CommittedStays
from tests.simulation.invariants.durable_survives import DurableSurvives
from tests.simulation.invariants.equal_checkpoints import EqualCheckpoints
from tests.simulation.invariants.equal_images import EqualImages
from tests.simulation.invariants.leader_completeness import LeaderCompleteness
from tests.simulation.invariants.log_matching import LogMatching
from tests.simulation.invariants.log_start_covered import LogStartCovered
from tests.simulation.invariants.monotone import Monotone
from tests.simulation.invariants.one_campaign import OneCampaign
from tests.simulation.invariants.one_leader import OneLeader
from tests.simulation.invariants.one_vote import OneVote
from tests.simulation.invariants.promises import Promises
from tests.simulation.invariants.reads import ConfirmedReads
from tests.simulation.invariants.violation import Invariant, Violation
from tests.simulation.invariants.witness import Seen, Witness

ALL: tuple[type[Invariant], ...] = (
    OneLeader,
    Monotone,
    OneVote,
    OneCampaign,
    LogMatching,
    CommittedStays,
    LeaderCompleteness,
    CommittedOnMajority,
    Bounds,
    LogStartCovered,
    EqualImages,
    EqualCheckpoints,
    Promises,
    DurableSurvives,
    AcknowledgedSurvives,
    ConfirmedReads,
)


def watch() -> Witness:
    """A witness with every standing invariant."""
    return Witness(ALL)


__all__ = ["ALL", "Invariant", "Seen", "Violation", "Witness", "watch"]
