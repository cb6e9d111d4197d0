"""The standing invariants: the properties that hold after every step of any cluster.

They see the messages that a node sends, the submitted and completed effects of its disk, and the
state it reports. None knows how a fault was injected. Simulation and scenarios share them.

| Property | Source |
|---|---|
| one-leader | Raft 5.2, Election Safety |
| monotone | Raft figure 2; 279.4 |
| one-vote | Raft 5.2 |
| one-campaign | ADR 7 |
| log-matching | Raft 5.3, Log Matching |
| committed-stays | Raft 5.4.3, State Machine Safety; 279.4 |
| leader-completeness | Raft 5.4, Leader Completeness |
| committed-on-majority | Raft 5.3, 5.4.2 |
| bounds | docs/testing.md |
| log-start-covered | 630.14 |
| equal-images | Raft 5.4.3, State Machine Safety |
| equal-checkpoints | ADR 6 |
| promises | Raft 5; ADR 7 |
| tickets-in-order | quorum/runtime/DESIGN.md |
| durable-survives | ADR 7 |
| acknowledged-survives | requirements 360; ADR 10 |
| own-content | requirements 360.8; ADR 42 |
| evaluated-in-order | requirements 360.7; ADR 42 |
| confirmed-reads | Raft 8; ADR 9 |
| leader-append-only | Raft 5.3, Leader Append-Only; KAFKA RaftEventSimulationTest |
| tombstones | requirements 853; ADR 7 |
| one-change-at-a-time | Raft dissertation 4.1; requirements 853 |
| dedupe-table | ADR 10; requirements 360 |
| unique-ids | requirements 853, 360: topic and producer ids |
| producer-blocks | requirements 360; KIP-730 |
| processed-once | requirement 320.6; KIP-447 |
| broker-epochs | KIP-500, broker registration |
| hash-chain | ADR 5 |
| watch-is-prefix | Raft 5.4.3; Jepsen, etcd watch |
| watched-is-committed | KIP-595: consumers see only what is committed |
| damage-imagined | ADR 7; 630.14 |
| in-sync-brokers | KIP-841; KAFKA-6880 |
| timestamps-rise | docs/guarantees.md |
| read-rounds | Raft dissertation 6.4; ADR 9 |
| change-barrier | Raft dissertation 4.1; the bug of 2015 (raft-dev) |
| hung-disk | hashicorp/raft #503 |
| leader-contact | Raft dissertation 6.2 |
| leader-stickiness | Raft dissertation 4.2.3, 9.6 |
| second-incarnation | ADR 20; KIP-853 |
| regressions | ADR 20; ZOOKEEPER-4882 |
| same-history | ADR 25 |
| compared-ends | ADR 5; etcd #14039 |
| epochs | KIP-595: an epoch is an int32 |
| lineage-cuts | KIP-279 |
| relay-shows-committed | ADR 27 |
| relay-paths | ADR 27 |
| subtree-reported | 630.5; ADR 27 |
| trim-waits | 630.5 |
| resumed-downloads | ADR 50 |
| pauses | docs/reference/handlers.md, back-off |
| proven-changes | ADR 52 |
| leader-addresses | ADR 52 |
| leader-replays | requirements 630.1, 595: a leader answers writes from its own image |

Properties without a file of their own: *vote persisted
before grant* is promises, *majority holds every committed record* is committed-on-majority,
*snapshot joins log* is log-start-covered with equal-checkpoints, *leader never loads a snapshot*
is leader-append-only.
"""

from __future__ import annotations

from simulation.invariants.acknowledged_survives import AcknowledgedSurvives
from simulation.invariants.bounds import Bounds
from simulation.invariants.committed_on_majority import CommittedOnMajority
from simulation.invariants.committed_stays import CommittedStays
from simulation.invariants.compared_ends import ComparedEnds
from simulation.invariants.damage_imagined import DamageImagined
from simulation.invariants.dedupe_table import DedupeTable
from simulation.invariants.durable_survives import DurableSurvives, LossesKnown
from simulation.invariants.epochs import Epochs
from simulation.invariants.equal_checkpoints import EqualCheckpoints
from simulation.invariants.equal_images import EqualImages
from simulation.invariants.hash_chain import HashChain
from simulation.invariants.hooks import run_observer_for
from simulation.invariants.in_sync import InSyncBrokers
from simulation.invariants.invariant import Invariant
from simulation.invariants.leader_addresses import LeaderAddresses
from simulation.invariants.leader_append_only import LeaderAppendOnly
from simulation.invariants.leader_completeness import LeaderCompleteness
from simulation.invariants.leader_contact import HungDisk, LeaderContact
from simulation.invariants.leader_replays import LeaderReplays
from simulation.invariants.lineage_cuts import LineageCuts
from simulation.invariants.log_matching import LogMatching
from simulation.invariants.log_start_covered import LogStartCovered
from simulation.invariants.monotone import Monotone
from simulation.invariants.named_changes import NamedChanges
from simulation.invariants.one_campaign import OneCampaign
from simulation.invariants.one_leader import OneLeader
from simulation.invariants.one_vote import OneVote
from simulation.invariants.past_disks import Regressions, SecondIncarnation
from simulation.invariants.pauses import Pauses
from simulation.invariants.processed_once import ProcessedOnce
from simulation.invariants.producer_blocks import ProducerBlocks
from simulation.invariants.producers_own import EvaluatedInOrder, OwnContent
from simulation.invariants.promises import Promises
from simulation.invariants.proven_changes import ProvenChanges
from simulation.invariants.read_rounds import ReadRounds
from simulation.invariants.reads import ConfirmedReads
from simulation.invariants.relay_paths import RelayPaths
from simulation.invariants.relay_shows_committed import RelayShowsCommitted
from simulation.invariants.resumed_downloads import ResumedDownloads
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.same_history import SameHistory
from simulation.invariants.stickiness import LeaderStickiness
from simulation.invariants.subtree_reported import SubtreeReported
from simulation.invariants.tickets_in_order import TicketsInOrder
from simulation.invariants.timestamps import TimestampsRise
from simulation.invariants.trim_waits import TrimWaits
from simulation.invariants.unique_ids import BrokerEpochs, UniqueIds
from simulation.invariants.voter_changes import ChangeBarrier, OneChangeAtATime, Tombstones
from simulation.invariants.watch_is_prefix import WatchIsPrefix
from simulation.invariants.watched_is_committed import WatchedIsCommitted

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
    TicketsInOrder,
    DurableSurvives,
    LossesKnown,
    AcknowledgedSurvives,
    OwnContent,
    EvaluatedInOrder,
    ConfirmedReads,
    LeaderAppendOnly,
    Tombstones,
    OneChangeAtATime,
    DedupeTable,
    UniqueIds,
    ProducerBlocks,
    ProcessedOnce,
    BrokerEpochs,
    HashChain,
    WatchIsPrefix,
    WatchedIsCommitted,
    DamageImagined,
    InSyncBrokers,
    TimestampsRise,
    ReadRounds,
    ChangeBarrier,
    HungDisk,
    LeaderContact,
    LeaderStickiness,
    SecondIncarnation,
    Regressions,
    SameHistory,
    ComparedEnds,
    Epochs,
    LineageCuts,
    RelayShowsCommitted,
    RelayPaths,
    SubtreeReported,
    TrimWaits,
    LeaderReplays,
    ResumedDownloads,
    Pauses,
    ProvenChanges,
    LeaderAddresses,
    NamedChanges,
)


def watch() -> RunObserver:
    """Return a run observer with every standing invariant."""
    return run_observer_for(ALL)
