"""Broken replicas that make no progress, do not resign, or disturb working nodes."""

from __future__ import annotations

from quorate.replica.replica import Replica
from quorum.core.contract.reasons import Rejection, VoteRejection
from quorum.core.election import voting
from quorum.core.leadership import epoch_catch_up, leadership_term
from quorum.core.membership import voter_changes
from quorum.core.messages.fetch_messages import ReceivedFetchRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.replication import fetch_serving, snapshot_serving
from quorum.core.state import replica_table
from quorum.core.state.core_state import CoreState
from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Follower
from simulation.options import Options
from tests.simulation.experiments.cut_off import CUT_OFF
from tests.simulation.zoo.bug import Bug, Patch
from tests.simulation.zoo.rejections import without


def hung_disk_not_noticed(patch: Patch) -> None:
    """A leader whose disk hangs does not resign."""
    patch.setattr(DiskWatch, "check", lambda watch, now_ms: False)


def leader_without_a_majority_stays(patch: Patch) -> None:
    """A leader without contact to a majority does not resign."""
    for module in (leadership_term, replica_table, voter_changes):
        patch.setattr(module, "check_quorum_deadline", lambda core: NEVER_MS)


def pre_vote_against_a_living_leader(patch: Patch) -> None:
    """Voters with contact to their leader grant pre-votes."""
    why_not_grant = voting.why_not_grant

    def grant_any_pre_vote(core: CoreState, request: VoteRequest) -> Rejection | None:
        rejection = why_not_grant(core, request)
        is_pre_vote = request.pre_vote
        return without(rejection, VoteRejection.LEADER_CONTACT) if is_pre_vote else rejection

    patch.setattr(voting, "why_not_grant", grant_any_pre_vote)


def different_digests_pass(patch: Patch) -> None:
    """A leader serves a replica although the digests of their logs differ."""
    patch.setattr(fetch_serving, "is_same_history", lambda core, progress, request: True)


def incomparable_digests_count_as_equal(patch: Patch) -> None:
    """A leader reports equal histories although one of the two digests is missing."""
    is_same_history = fetch_serving.is_same_history

    def count_as_equal(
        core: CoreState, progress: ReplicaProgress, received: ReceivedFetchRequest
    ) -> bool:
        request = received.request
        if request.digest and received.own_digest:
            return is_same_history(core, progress, received)
        core.chain.equal += 1
        progress.compared_end = request.fetch_offset
        return True

    patch.setattr(fetch_serving, "is_same_history", count_as_equal)


def leader_without_replay(patch: Patch) -> None:
    """A node whose replay has stopped campaigns, accepts a transfer and keeps leading."""
    patch.setattr(Replica, "_report_replay", lambda replica, stopped: None)


def observer_refuses_for_ever(patch: Patch) -> None:
    """An observer that has fetched refuses all pre-votes of its epoch, even without a leader."""
    has_leader_contact = voting.has_leader_contact

    def has_contact(core: CoreState, role: Follower) -> bool:
        return has_leader_contact(core, role) or (role.has_fetched and not core.may_campaign)

    patch.setattr(voting, "has_leader_contact", has_contact)


def leader_does_not_count_its_followers(patch: Patch) -> None:
    """A leader does not count Fetches as contact and resigns although a majority follows it."""
    for module in (fetch_serving, snapshot_serving):
        patch.setattr(module, "note_contact", lambda core, leader, progress: None)


def stranded_observer_is_left_alone(patch: Patch) -> None:
    """A leader does nothing for an observer whose epoch is above its own."""
    patch.setattr(epoch_catch_up, "poll", lambda core, leader: None)


BUGS = (
    Bug(
        "leader-without-replay",
        leader_without_replay,
        ("leader-replays",),
        "this project: a voter of an older release led for ever and answered no write",
        options=Options("releases"),
    ),
    Bug(
        "hung-disk-not-noticed",
        hung_disk_not_noticed,
        ("hung-disk",),
        "hashicorp/raft #503",
        options=Options("disk"),
    ),
    Bug(
        "leader-without-a-majority-stays",
        leader_without_a_majority_stays,
        ("leader-contact", "liveness"),
        "Raft dissertation 6.2; the Cloudflare outage of November 2020",
        options=Options("network"),
    ),
    Bug(
        "pre-vote-against-a-living-leader",
        pre_vote_against_a_living_leader,
        ("leader-stickiness",),
        "Raft dissertation 9.6 and 4.2.3",
        options=Options("network"),
    ),
    Bug(
        "different-digests-pass",
        different_digests_pass,
        ("same-history",),
        "ADR 25",
        seeds=1_000,
        options=Options("history"),
    ),
    Bug(
        "incomparable-digests-count-as-equal",
        incomparable_digests_count_as_equal,
        ("compared-ends",),
        "etcd #14039: a check that could not compare was passed",
    ),
    Bug(
        "observer-refuses-for-ever",
        observer_refuses_for_ever,
        ("liveness",),
        "found from outside, and in KRaft; Raft dissertation 4.1, 4.2.3",
        seeds=100,
        options=Options("interleavings", events=600),
    ),
    Bug(
        "leader-does-not-count-its-followers",
        leader_does_not_count_its_followers,
        ("stable-leader", "liveness"),
        "Raft dissertation 6.2: a leader with contact to a majority",
    ),
    Bug(
        "stranded-observer-is-left-alone",
        stranded_observer_is_left_alone,
        ("liveness",),
        "found from outside: an observer in a later epoch stays out until the next election",
        experiment=CUT_OFF,
    ),
)
