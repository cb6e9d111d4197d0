"""Broken replicas that use a wrong voter set, or mistake one disk for another."""

from __future__ import annotations

from quorum.control_records import Origin
from quorum.core.election import campaign
from quorum.core.membership import voter_change_checks, voter_changes
from quorum.core.membership.voter_change_checks import Refusal
from quorum.core.messages.fetch_messages import ReceivedFetchRequest
from quorum.core.replication import commitment, fetch_serving
from quorum.core.state.core_state import CoreState
from quorum.core.state.pending_change import PendingChange
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Leader
from quorum.core.voters.voter_set import VoterHistory, VoterSet
from quorum.types import NodeId, ReplicaKey
from simulation.options import Options
from tests.simulation.zoo.bug import Bug, Patch

CHURN = Options("membership")


def reformatted_voter_votes(patch: Patch) -> None:
    """A newly formatted voter votes at once, although its directory id may have voted before."""
    patch.setattr(CoreState, "has_agreed_to_bootstrap", property(lambda core: True))


def rolled_back_disk_accepted(patch: Patch) -> None:
    """A leader forgets a voter's acknowledgements when the voter fetches below them again."""

    def went_back(
        core: CoreState, progress: ReplicaProgress, received: ReceivedFetchRequest
    ) -> bool:
        progress.end_offset = min(progress.end_offset, received.request.fetch_offset)
        return False

    patch.setattr(fetch_serving, "_went_back", went_back)


def change_before_own_commit(patch: Patch) -> None:
    """A new leader changes the voters before it has committed a record of its own epoch."""
    why_not_now = voter_change_checks._why_not_now

    def without_barrier(core: CoreState, leader: Leader) -> Refusal | None:
        can_write, leader.can_write = leader.can_write, True
        try:
            return why_not_now(core, leader)
        finally:
            leader.can_write = can_write

    patch.setattr(voter_change_checks, "_why_not_now", without_barrier)


def two_changes_at_once(patch: Patch) -> None:
    """A voter change begins before the last one is committed."""
    patch.setattr(voter_change_checks, "_why_not_now", lambda core, leader: None)


def removed_leader_counts_itself(patch: Patch) -> None:
    """A leader that has removed itself still counts its own disk."""

    def voter_ends(core: CoreState, leader: Leader) -> list[int]:
        ends = [progress.end_offset for progress in leader.remote.values()]
        return [*ends, core.log.flushed_end]

    patch.setattr(commitment, "voter_ends", voter_ends)


def voters_not_reverted_by_truncation(patch: Patch) -> None:
    """A voter set whose record is truncated stays in force."""

    def keep(history: VoterHistory, end_offset: int) -> bool:
        while len(history._offsets) > 1 and history._offsets[-1] >= end_offset:
            history._offsets.pop(-2 if len(history._offsets) > 1 else -1)
            del history._sets[-2]
            history._offsets[-1] = min(history._offsets[-1], end_offset - 1)
        return False

    patch.setattr(VoterHistory, "truncate_to", keep)


def change_in_force_only_when_committed(patch: Patch) -> None:
    """A leader counts by the previous voter set until the change is committed."""
    voter_ends = commitment.voter_ends

    def by_committed_set(core: CoreState, leader: Leader) -> list[int]:
        if core.voters.latest_offset < core.high_watermark or len(core.voters._sets) < 2:
            return voter_ends(core, leader)
        before = core.voters._sets[-2]
        replicas = {**leader.remote, **{key.id: each for key, each in leader.observers.items()}}
        ends = [
            replicas[voter.key.id].end_offset if voter.key.id in replicas else -1
            for voter in before.others(core.me)
        ]
        if before.contains(core.me):
            ends.append(core.log.flushed_end)
        return ends

    patch.setattr(commitment, "voter_ends", by_committed_set)


def origin_dropped_at_the_voters_record(patch: Patch) -> None:
    """A voters record does not say who asked for it."""
    append_voters = voter_changes._append_voters

    def nameless(
        core: CoreState,
        leader: Leader,
        voters: VoterSet,
        readmitted: tuple[ReplicaKey, ...],
        origin: Origin | None,
    ) -> int:
        return append_voters(core, leader, voters, readmitted, None)

    patch.setattr(voter_changes, "_append_voters", nameless)


def origin_of_the_change_before(patch: Patch) -> None:
    """A change that begins while the last one waits gets the name of the last one."""
    begin, origins = voter_changes.begin, []

    def mixed_up(core: CoreState, change: PendingChange, timeout_ms: int = 0) -> None:
        origins.append(change.origin)
        change.origin = origins[-2:][0]
        begin(core, change, timeout_ms)

    patch.setattr(voter_changes, "begin", mixed_up)


def origin_dropped_at_the_transfer(patch: Patch) -> None:
    """The leader that a transfer made does not say who asked for the transfer."""
    campaign_now = campaign.campaign_now

    def nameless(core: CoreState, leader_id: NodeId, origin: Origin | None = None) -> None:
        campaign_now(core, leader_id)

    patch.setattr(campaign, "campaign_now", nameless)


BUGS = (
    Bug(
        "reformatted-voter-votes",
        reformatted_voter_votes,
        ("second-incarnation", "leader-completeness"),
        "KIP-853: a wiped disk with the same directory id; Jepsen, TigerBeetle",
        options=Options("detection"),
    ),
    Bug(
        "rolled-back-disk-accepted",
        rolled_back_disk_accepted,
        ("regressions",),
        "ZOOKEEPER-4882; Jepsen, TigerBeetle: a stale copy put back",
        options=Options("detection"),
    ),
    Bug(
        "change-before-own-commit",
        change_before_own_commit,
        ("change-barrier", "one-change-at-a-time", "leader-completeness"),
        "the single-server bug of 2015 (raft-dev, Ongaro); also found by the model `removals`",
        seeds=1_000,
        options=CHURN,
    ),
    Bug(
        "two-changes-at-once",
        two_changes_at_once,
        (
            "change-barrier",
            "one-change-at-a-time",
            "leader-completeness",
            "one-leader",
            "committed-on-majority",
        ),
        "Raft dissertation 4.1",
        seeds=1_000,
        options=CHURN,
    ),
    Bug(
        "removed-leader-counts-itself",
        removed_leader_counts_itself,
        ("committed-on-majority", "leader-completeness"),
        "Raft dissertation 4.2.2; etcd #7625",
        seeds=1_000,
        options=Options("membership", voters=(5,)),
    ),
    Bug(
        "voters-not-reverted-by-truncation",
        voters_not_reverted_by_truncation,
        ("equal-checkpoints", "committed-on-majority", "one-leader", "no-crash", "tombstones"),
        "Raft dissertation 4.1: fall back to the previous configuration",
        seeds=1_000,
        options=CHURN,
    ),
    Bug(
        "change-in-force-only-when-committed",
        change_in_force_only_when_committed,
        ("committed-on-majority", "one-leader"),
        "etcd/raft applies changes when committed; raft-dev",
        seeds=1_000,
        options=CHURN,
    ),
    Bug(
        "origin-dropped-at-the-voters-record",
        origin_dropped_at_the_voters_record,
        ("named-changes",),
        "issue 13: voter changes carry principal and reason into the log",
        options=CHURN,
    ),
    Bug(
        "origin-of-the-change-before",
        origin_of_the_change_before,
        ("named-changes",),
        "this project: who asked is kept beside the change, not in it",
        options=CHURN,
    ),
    Bug(
        "origin-dropped-at-the-transfer",
        origin_dropped_at_the_transfer,
        ("named-changes",),
        "issue 13: transfers carry principal and reason into the log",
        options=CHURN,
    ),
)
