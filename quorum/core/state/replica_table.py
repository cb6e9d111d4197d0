"""The leader's table of replicas: finding, adding and forgetting entries, and showing them.

A fetcher whose id and directory match a voter is that voter; anybody else is an observer,
including a voter's id on another disk.

See: KIP-595.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_progress import ReplicaProgress, ReplicaView
from quorum.core.state.roles import Follower, Leader
from quorum.core.state.timers import Timer
from quorum.core.voters import majority
from quorum.types import ReplicaKey


def build_remote(core: CoreState, leader: Leader) -> None:
    """Match the table of voters to the set in force, keeping what is known of each."""
    known = {**leader.remote}
    voters = core.voters.latest
    leader.counts_itself = core.is_voter
    leader.remote = {}
    for voter in voters.others(core.me):
        progress = known.get(voter.key.id)
        if progress is None or not progress.key.matches(voter.key):
            progress = leader.observers.pop(voter.key, None) or ReplicaProgress(
                voter.key, is_voter=True, live_since_ms=core.now_ms
            )
            progress.is_voter = True
        progress.key = voter.key
        leader.remote[voter.key.id] = progress
    itself = leader.counts_itself
    leader.others_needed = majority.quorum_size(len(leader.remote) + itself) - itself
    # A replica that left the set does not count any more, and may continue as an observer.
    leader.contacted &= leader.remote.keys()
    for progress in known.values():
        if leader.remote.get(progress.key.id) is not progress:
            progress.is_voter = False
            core.requests.close(progress.begin)
            # A disqualified disk is already among the observers.
            leader.observers.setdefault(progress.key, progress)


def progress_of(leader: Leader, key: ReplicaKey) -> ReplicaProgress | None:
    """What is known of ``key``; None for an observer seen for the first time."""
    progress = leader.remote.get(key.id)
    if progress is not None and progress.key.matches(key):
        return progress
    return leader.observers.get(key)


def progress_for(
    core: CoreState, leader: Leader, key: ReplicaKey, *, is_disqualified: bool
) -> ReplicaProgress:
    """The entry of a replica that fetches; a voter disqualified from voting is an observer."""
    if not is_disqualified:
        progress = progress_of(leader, key) or track_observer(core, leader, key)
        progress.is_disqualified = False
        return progress
    former = leader.remote.get(key.id)
    if former is not None and former.key.matches(key):
        # The replica no longer has the records it acknowledged.
        former.end_offset = -1
    progress = leader.observers.get(key) or track_observer(core, leader, key)
    progress.is_disqualified = True
    return progress


def is_known_disqualified(leader: Leader, key: ReplicaKey) -> bool:
    """Whether the replica that fetches with ``key`` last reported that its disk never votes."""
    disqualified, voter = leader.observers.get(key), leader.remote.get(key.id)
    if disqualified is None or not disqualified.is_disqualified:
        return False
    return voter is None or voter.key != key or voter.live_since_ms <= disqualified.live_since_ms


def track_observer(core: CoreState, leader: Leader, key: ReplicaKey) -> ReplicaProgress:
    """Begin to track an observer; when there are too many, the longest silent one goes."""
    observers = leader.observers
    if len(observers) >= core.config.observers_max:
        silent = min(observers.values(), key=lambda each: each.live_since_ms)
        del observers[silent.key]
    progress = ReplicaProgress(key, is_voter=False, live_since_ms=core.now_ms)
    observers[key] = progress
    return progress


def forget_silent_observers(core: CoreState, leader: Leader) -> None:
    """Drop observers that have been silent for a session."""
    limit = core.now_ms - core.config.observer_session_ms
    silent = [key for key, each in leader.observers.items() if each.live_since_ms < limit]
    if silent:
        core.fired(Timer.OBSERVER_SESSION)
    for key in silent:
        del leader.observers[key]


def note_contact(core: CoreState, leader: Leader, progress: ReplicaProgress) -> None:
    """Count a Fetch or FetchSnapshot of this epoch as a sign of life.

    A majority of voters (the leader among them if it votes) resets the check-quorum timer.
    """
    progress.live_since_ms = core.now_ms
    if not progress.is_voter:
        return
    contacted = leader.contacted
    contacted.add(progress.key.id)
    if len(contacted) >= leader.others_needed:
        contacted.clear()
        leader.check_quorum_deadline_ms = check_quorum_deadline(core)


def check_quorum_deadline(core: CoreState) -> int:
    """Return when a leader resigns if no majority contacts it before."""
    return core.now_ms + core.config.check_quorum_ms


def replica_views(core: CoreState) -> tuple[ReplicaView, ...]:
    """Describe-quorum: voters ascending, then observers; empty unless this node leads."""
    leader = core.role
    if not isinstance(leader, Leader) or not leader.established:
        return ()
    views = [
        replace(_view(each), is_disqualified=is_known_disqualified(leader, each.key))
        for each in replicas_of(leader)
    ]
    now_ms = core.now_ms
    itself = ReplicaView(core.me, leader.counts_itself, core.log.end_offset, now_ms, now_ms)
    views.append(replace(itself, supported=core.process.versions.supported))
    return tuple(sorted(views, key=lambda each: (not each.is_voter, each.key.id)))


@dataclass(frozen=True, slots=True)
class TreeView:
    """Where a node stands in the tree of relays."""

    path: tuple[ReplicaKey, ...]
    """The relays between it and the leader, nearest first; empty without any."""
    downstream: tuple[ReplicaView, ...]
    """The observers that fetch from it, ascending by id; empty for one that is no relay."""
    subtree_low: int = -1
    """The lowest offset that it reports anybody below it to need; -1 without anybody."""
    is_low_provisional: bool = False
    """Whether that stands in for observers that a relay has not seen since its restart."""


def tree_view(core: CoreState) -> TreeView:
    """How this node is connected, as far as it knows itself."""
    relay = core.relay
    reported = reported_subtree(core)
    below = relay.downstream.values() if relay is not None else ()
    return TreeView(
        core.following.upstream.path if isinstance(core.role, Follower) else (),
        tuple(sorted(map(_view, below), key=lambda each: each.key.id)),
        reported.low if reported is not None else -1,
        reported is not None and reported.is_provisional,
    )


def reported_subtree(core: CoreState) -> Subtree | None:
    """Return the observers below this node, as it reports them; None without any.

    A voter serves no observer; one that fetched from it before it became a voter counts until it
    is silent.
    """
    relay = core.relay
    if relay is None or (core.is_voter and relay.subtree is None):
        return None
    return relay.reported(core.now_ms, core.log.start.offset)


def _view(each: ReplicaProgress) -> ReplicaView:
    return ReplicaView(
        each.key,
        each.is_voter,
        each.end_offset,
        each.last_fetch_ms,
        each.last_caught_up_ms,
        each.subtree,
        each.compared_end,
        supported=each.supported,
    )


def replicas_of(leader: Leader) -> list[ReplicaProgress]:
    """Everybody the leader keeps account of: voters ascending, then observers."""
    return [*leader.remote.values(), *leader.observers.values()]


def preferred_successors(leader: Leader) -> tuple[ReplicaKey, ...]:
    """The other voters, the one with the longest acknowledged log first, then by id."""
    ranked = sorted(leader.remote.values(), key=lambda each: (-each.end_offset, each.key.id))
    return tuple(each.key for each in ranked)
