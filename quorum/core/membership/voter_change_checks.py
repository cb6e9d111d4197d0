"""Checks whether a change of the voter set may begin, in the protocol's order of refusals.

The checks are pure and change no state. KIP-853's precondition c (a kraft.version of 0) cannot fail
on a leader of ours: the first record batch of a leadership term writes the voter set and
kraft.version 1 into a log that has none yet.

See: ADR 30; Raft dissertation section 4.1 and the 2015 correction ("a leader
commits a record of its own epoch before it changes the configuration").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from quorum.core.state.core_state import CoreState
from quorum.core.state.pending_change import ChangeKind, PendingChange
from quorum.core.state.replica_table import is_known_disqualified
from quorum.core.state.roles import Leader
from quorum.core.voters.versions import KRAFT_VERSION, kraft_versions_of, why_not_run_with
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Endpoint, VersionRange, Voter

TOMBSTONES_MAX = 10_000
"""Bound of tombstones; each takes 21 bytes of every voters record."""
CAUGHT_UP_WITHIN_MS = 3_600_000
"""A future voter must have fetched within this time, and been caught up before."""
_NODE_ID_MAX = (1 << 31) - 1
_PORT_MAX = (1 << 16) - 1
_VERSION_MAX = (1 << 15) - 1
_HOST_BYTES_MAX = 255
_ENDPOINTS_MAX = 16

Refusal: TypeAlias = tuple[ErrorCode, str]


def why_not_begin(core: CoreState, leader: Leader, change: PendingChange) -> Refusal | None:
    """Return why the change cannot begin now; None if it can."""
    return (
        why_malformed(core, change)
        or _why_not_now(core, leader)
        or _why_not_this(core, leader, change)
    )


def why_malformed(core: CoreState, change: PendingChange) -> Refusal | None:
    """Return what no leader could do: an invalid key, endpoint or version range; else None."""
    voter = change.voter
    key = voter.key
    if not 0 <= key.id <= _NODE_ID_MAX or len(key.directory_id) != len(ZERO_UUID):
        return ErrorCode.INVALID_REQUEST, f"{key.id} with a directory id is no replica"
    if key.directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, f"the directory id of node {key.id} is missing"
    if change.kind is ChangeKind.REMOVE:
        return None
    lowest, highest = voter.min_supported_version, voter.max_supported_version
    if not 0 <= lowest <= highest <= _VERSION_MAX:
        return ErrorCode.INVALID_REQUEST, f"kraft.version range {lowest} to {highest}"
    problem = _problem_with(voter.endpoints)
    if problem:
        return ErrorCode.INVALID_REQUEST, f"node {key.id}: {problem}"
    wanted = default_listener(core)
    if wanted and voter.endpoints[0].name != wanted:
        return (
            ErrorCode.INVALID_REQUEST,
            f"node {key.id}: the first endpoint must be of listener {wanted}",
        )
    if not lowest <= KRAFT_VERSION <= highest:
        return (
            ErrorCode.INVALID_REQUEST,
            f"node {key.id} supports kraft.version {lowest} to {highest}, in force is "
            f"{KRAFT_VERSION}",
        )
    return None


def default_listener(core: CoreState) -> str:
    """Return the listener of peers' requests, as in the voter set in force; may be empty."""
    entries = core.voters.latest.voters
    return next((entry.endpoints[0].name for entry in entries if entry.endpoints), "")


def _problem_with(endpoints: tuple[Endpoint, ...]) -> str:
    if not endpoints:
        return "no endpoint"
    if len(endpoints) > _ENDPOINTS_MAX:
        return f"{len(endpoints)} endpoints"
    for endpoint in endpoints:
        if not endpoint.name or not endpoint.host:
            return "an endpoint without listener name or host"
        if max(len(endpoint.name.encode()), len(endpoint.host.encode())) > _HOST_BYTES_MAX:
            return f"a listener name or host above {_HOST_BYTES_MAX} bytes"
        if not 1 <= endpoint.port <= _PORT_MAX:
            return f"port {endpoint.port}"
    if len({endpoint.name for endpoint in endpoints}) != len(endpoints):
        return "two endpoints of one listener"
    return ""


def _why_not_now(core: CoreState, leader: Leader) -> Refusal | None:
    """Check preconditions a, b and d: one change at a time, on a committed voter set and epoch."""
    other = leader.change
    if other is not None:
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            f"another change is under way: {other.kind.value} of node {other.voter.key.id}",
        )
    if not leader.can_write:
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            f"nothing of epoch {core.epoch} is committed yet",
        )
    if leader.transfer is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "a leadership transfer is under way"
    offset = core.voters.latest_offset
    if offset >= core.high_watermark:
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            f"the voters record at {offset} is not committed yet",
        )
    return None


def _why_not_this(core: CoreState, leader: Leader, change: PendingChange) -> Refusal | None:
    voters, key = core.voters.latest, change.voter.key
    known = voters.get(key.id)
    match change.kind:
        case ChangeKind.ADD:
            if known is not None:
                return ErrorCode.DUPLICATE_VOTER, f"node {key.id} is a voter already"
            if key in voters.removed and not change.readmit:
                return (
                    ErrorCode.VOTER_REMOVED,
                    f"node {key.id} was removed with this directory id; adding it again needs an "
                    "explicit readmission",
                )
            return _why_disqualified(leader, change.voter)
        case ChangeKind.REMOVE:
            if known is None or known.key != key:
                return ErrorCode.VOTER_NOT_FOUND, f"node {key.id} is no voter with that directory"
            if len(voters) == 1:
                return ErrorCode.VOTER_NOT_FOUND, f"node {key.id} is the last voter"
            if len(voters.removed) >= TOMBSTONES_MAX:
                return (
                    ErrorCode.RESOURCE_EXHAUSTED,
                    f"{len(voters.removed)} removed voters are remembered already",
                )
        case ChangeKind.UPDATE:
            if known is None or not known.key.matches(key):
                return ErrorCode.VOTER_NOT_FOUND, f"node {key.id} is no voter with that directory"
    return None


def _why_disqualified(leader: Leader, voter: Voter) -> Refusal | None:
    # It would count for the majority without ever voting; a readmission does not change that.
    if not is_known_disqualified(leader, voter.key):
        return None
    return (
        ErrorCode.INELIGIBLE_REPLICA,
        f"node {voter.key.id} is disqualified: the disk with this directory id never votes; "
        "format an "
        "empty folder without initial voters and add the directory id that it gets",
    )


def why_not_supported(
    core: CoreState, change: PendingChange, supported: tuple[VersionRange, ...]
) -> Refusal | None:
    """Return why the replica at the endpoint does not support the versions in force."""
    voter = change.voter
    kraft = kraft_versions_of(supported)
    if kraft is None:
        return (
            ErrorCode.UNSUPPORTED_VERSION,
            f"node {voter.key.id} reports no supported versions: its release is too old",
        )
    if not kraft.lowest <= KRAFT_VERSION <= kraft.highest:
        return (
            ErrorCode.INVALID_REQUEST,
            f"node {voter.key.id} supports kraft.version {kraft.lowest} to {kraft.highest}, in "
            f"force is {KRAFT_VERSION}",
        )
    asked = voter.min_supported_version, voter.max_supported_version
    if change.kind is ChangeKind.UPDATE and asked != (kraft.lowest, kraft.highest):
        return (
            ErrorCode.INVALID_REQUEST,
            f"node {voter.key.id} supports kraft.version {kraft.lowest} to {kraft.highest}, not "
            f"{asked[0]} to {asked[1]} as in the request",
        )
    problem = why_not_run_with(voter.key.id, supported, core.process.versions.in_force)
    return (ErrorCode.UNSUPPORTED_VERSION, problem) if problem else None


def as_supported(voter: Voter, supported: tuple[VersionRange, ...]) -> Voter:
    """Return the entry with the kraft.version range that the replica itself reported."""
    kraft = kraft_versions_of(supported)
    if kraft is None:
        return voter
    return replace(voter, min_supported_version=kraft.lowest, max_supported_version=kraft.highest)


def why_not_caught_up(core: CoreState, leader: Leader, voter: Voter) -> Refusal | None:
    """Return why a replica may not vote yet: it must fetch from this leader and have caught up.

    A lagging voter endangers no committed record, but it counts for the majority and delays it.
    """
    progress = leader.observers.get(voter.key)
    node = f"node {voter.key.id}"
    if progress is None:
        return ErrorCode.REQUEST_TIMED_OUT, f"{node} does not fetch from this leader"
    if progress.last_caught_up_ms < 0:
        return ErrorCode.REQUEST_TIMED_OUT, f"{node} has not caught up with this leader yet"
    if core.now_ms - progress.last_fetch_ms > CAUGHT_UP_WITHIN_MS:
        return ErrorCode.REQUEST_TIMED_OUT, f"{node} has not fetched for too long"
    # Its first Fetch may have arrived during the probe.
    return _why_disqualified(leader, voter)
