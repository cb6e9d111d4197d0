"""Startup: from the recovered state to the first role.

A restarted leader begins ``Resigned`` in its epoch: peers may know it as the leader. A node that
had voted for itself begins ``Unattached`` and never campaigns in that epoch again: it cannot know
what its former process run promised in it (ADR 7).

See: docs/architecture.md (Starting and stopping); 630.14 (what must hold on disk).
"""

from __future__ import annotations

from quorum.core.contract.events import VoterDisqualified
from quorum.core.contract.local_events import DurableState
from quorum.core.contract.reasons import DisqualifiedReason
from quorum.core.following.snapshot_install import replace_log
from quorum.core.following.snapshot_transfer import take_up_download
from quorum.core.positions.download import replaces_log
from quorum.core.positions.log_view import LogView
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.protocol.role_transitions import resigned_role
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower, Role, Unattached
from quorum.core.voters.voter_set import VoterHistory
from quorum.errors import QuorumUsageError
from quorum.types import ElectionState


def problems_with(state: DurableState) -> list[str]:
    """Return every contradiction in ``state`` that no correct recovery can find (630.14)."""
    found = []
    start, end = state.log_start, state.log_end
    if not 0 <= start.offset <= end.offset:
        found.append(f"log start {start} is not within [0, log end {end}]")
    if start.epoch > end.epoch:
        found.append(f"epoch falls from log start {start} to log end {end}")
    if start.offset > 0 and all(each.offset < start.offset for each in state.snapshots):
        found.append(f"the log starts at {start} but no snapshot ends at or above it")
    epochs = state.epochs
    for index in range(1, len(epochs)):
        before, after = epochs[index - 1], epochs[index]
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            found.append(f"epoch history does not rise: {before}, {after}")
    inside = [each for each in epochs if each.start_offset < end.offset]
    last_epoch = inside[-1].epoch if inside and end.offset > start.offset else start.epoch
    if last_epoch != end.epoch:
        found.append(f"the epoch history ends with {last_epoch}, the log with {end}")
    try:
        VoterHistory.of(state.voters)
    except ValueError as error:
        found.append(f"voters: {error}")
    return found


def start(core: CoreState, state: DurableState) -> None:
    """Adopt the recovered state and take the first role.

    Raises:
        QuorumUsageError: The state contradicts itself; the error names every contradiction.
    """
    found = problems_with(state)
    if found:
        raise QuorumUsageError("; ".join(found))
    core.adopt_election(state.election)
    core.log = LogView(state.log_start, state.log_end, state.epochs)
    core.snapshots = SnapshotIndex(
        state.snapshots, state.snapshot_sizes, state.snapshot_ages_ms, now_ms=core.now_ms
    )
    core.voters = VoterHistory.of(state.voters)
    core.bootstrap.without = frozenset(state.bootstrap_without)
    core.voters_changed()
    if state.election.disqualified:
        reason = DisqualifiedReason.EARLIER_RUN
        core.event(VoterDisqualified(core.me, core.epoch, reason, state.election.disqualified))
    latest = core.snapshots.latest
    committed = max(state.high_watermark, state.log_start.offset)
    if latest is not None and replaces_log(core.log, committed, latest):
        # A crash between sealing a downloaded snapshot and replacing the log.
        replace_log(core, latest, ())
    known = [each.offset for each in state.snapshots if each.offset <= core.log.end_offset]
    core.raise_high_watermark(
        min(max([state.high_watermark, core.log.start.offset, *known]), core.log.end_offset)
    )
    if state.download is not None:
        take_up_download(core, state.download)
    if core.relay is not None and core.log.end_offset > 0:
        core.relay.silent_until_ms = core.now_ms + core.config.observer_session_ms
    core.role, election = starting_role(core)
    core.save_election(election)
    if isinstance(core.role, Follower):
        learn_endpoints(core)
    core.announce_leadership()


def starting_role(core: CoreState) -> tuple[Role, ElectionState]:
    """Return the first role and its election state.

    Never ``Candidate`` and never ``Leader``: requests of an earlier process run are not repeated.
    """
    found = core.election
    newest_epoch = core.position.epoch
    if found.epoch < newest_epoch:
        found = ElectionState(newest_epoch, vote_floor=found.vote_floor)
    if found.leader_id == core.me.id:
        others = tuple(voter.key for voter in core.voters.latest.others(core.me))
        return resigned_role(core, others), found
    if core.voters.latest.get(found.leader_id) is not None:
        timeout_ms = core.random_fetch_timeout()
        return Follower(found.leader_id, core.now_ms + timeout_ms, timeout_ms), found
    deadline = core.now_ms if core.is_lone_voter else core.random_election_deadline()
    return Unattached(deadline), found
