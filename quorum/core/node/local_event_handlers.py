"""Handle local events and operator requests, which the runtime reports by ``on_local_event``.

Each is routed to the module concerned; those that concern several are handled here.
"""

from __future__ import annotations

from typing import assert_never

from quorum.core.contract.local_events import (
    AddVoter,
    ConnectionRefused,
    DamageFound,
    FeatureLevels,
    LeaseChanged,
    ListenerEndpoints,
    LocalEvent,
    LogVerified,
    RemoveVoter,
    ReplayStopped,
    RequestFailed,
    Resign,
    ShutDown,
    SnapshotCreated,
    SnapshotRejected,
    SnapshotRemoved,
    SnapshotSealed,
    TransferLeadership,
    UpdateVoter,
)
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.following import snapshot_install
from quorum.core.following.chunk_requests import forget_chunk
from quorum.core.integrity import divergence_resolution, quarantine
from quorum.core.leadership import leadership_term, transfer
from quorum.core.membership import voter_changes
from quorum.core.protocol.requests import retry_later
from quorum.core.protocol.role_transitions import lose_leader
from quorum.core.replication import read_forwarding, trimming
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import Follower, Leader
from quorum.core.voters.versions import Versions, with_kraft_version
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.types import NodeId


def on_local_event(core: CoreState, event: LocalEvent) -> None:
    """Handle one local event.

    Raises:
        QuorumUsageError: A snapshot beyond the high watermark is reported.
    """
    match event:
        case ConnectionRefused():
            _on_connection_refused(core, event.peer)
        case RequestFailed():
            _on_request_failed(core, event.peer, event.request_id, event.refusal, event.code)
        case SnapshotCreated():
            _on_snapshot_created(core, event)
        case SnapshotSealed():
            snapshot_install.on_snapshot_sealed(core, event)
        case SnapshotRejected():
            snapshot_install.on_snapshot_rejected(core, event)
        case SnapshotRemoved():
            core.snapshots.remove(event.snapshot_id)
        case ShutDown() | Resign() | TransferLeadership():
            _on_leadership_request(core, event)
        case ListenerEndpoints() | FeatureLevels() | ReplayStopped():
            _on_own_state(core, event)
        case LeaseChanged():
            core.snapshots.leased = event.leased
            trimming.delete_unneeded(core)
        case AddVoter() | RemoveVoter() | UpdateVoter():
            voter_changes.on_request(core, event)
        case LogVerified() | DamageFound():
            _on_own_files(core, event)
        case _:
            assert_never(event)


def _on_own_state(
    core: CoreState, event: ListenerEndpoints | FeatureLevels | ReplayStopped
) -> None:
    match event:
        case ListenerEndpoints():
            core.process.endpoints = event.endpoints
            core.registration.forget()
        case FeatureLevels():
            core.process.versions = Versions(
                with_kraft_version(event.supported), event.in_force, is_advertised=True
            )
        case ReplayStopped():
            core.process.replay_stopped = event.reason
            leadership_term.resign_if_replay_stopped(core)


def _on_own_files(core: CoreState, event: LogVerified | DamageFound) -> None:
    match event:
        case LogVerified():
            divergence_resolution.on_log_verified(core, event)
        case DamageFound():
            quarantine.on_damage_found(core, event)


def _on_connection_refused(core: CoreState, peer: NodeId) -> None:
    """Enter fail-fast mode if the refused peer is the leader, whose process is gone.

    An observer does not campaign, but grants pre-votes from then on (``has_leader_contact``).
    """
    role = core.role
    if isinstance(role, Follower) and role.leader_id == peer:
        lose_leader(core, core.rng.randint(0, core.config.lost_leader_jitter_ms))


def _on_request_failed(
    core: CoreState, peer: NodeId, request_id: int, refusal: str, code: ErrorCode
) -> None:
    request = core.requests.get(request_id)
    if request is None:
        forget_chunk(core, request_id)
        return
    if not request.is_answered_by(peer):
        return
    match request.purpose:
        case Purpose.FETCH | Purpose.FETCH_SNAPSHOT:
            core.requests.end_flight()
            core.peer_failed(peer)
        case Purpose.BEGIN_EPOCH:
            leadership_term.on_begin_failed(core, request)
        case Purpose.PROBE:
            voter_changes.on_probe_failed(core, request, refusal, code)
        case Purpose.TRANSFER:
            transfer.on_failed(core)
        case Purpose.READ_POSITION:
            read_forwarding.on_read_position_failed(core, request)
        case Purpose.SELF_REGISTRATION | Purpose.LEADER_SEARCH:
            core.requests.close(request)
        case Purpose.CHAIN_DIGEST:
            divergence_resolution.on_digest_failed(core, request)
        case Purpose.BOOTSTRAP | Purpose.VOTE | Purpose.END_EPOCH:
            retry_later(core, request)
        case _:
            assert_never(request.purpose)


def _on_snapshot_created(core: CoreState, event: SnapshotCreated) -> None:
    if event.snapshot_id.offset > core.high_watermark:
        raise QuorumUsageError(
            f"snapshot {event.snapshot_id} is beyond high watermark {core.high_watermark}"
        )
    core.snapshots.add(event.snapshot_id, event.size, now_ms=core.now_ms)
    role = core.role
    if isinstance(role, Leader) and role.established:
        trimming.trim_as_leader(core, role)


def _on_leadership_request(core: CoreState, event: ShutDown | Resign | TransferLeadership) -> None:
    role = core.role
    match event:
        case TransferLeadership():
            transfer.begin(core, event)
        case Resign() if isinstance(role, Leader):
            leadership_term.resign(core, role, RoleChangeReason.RESIGNATION_REQUESTED)
        case ShutDown():
            core.process.is_shutting_down = True
            # What the tools know of a stopped node's directory ends at the bound on its disk.
            core.disk.store_watermark_now(core.now_ms)
            if isinstance(role, Leader):
                transfer.transfer_leadership(core, role)
