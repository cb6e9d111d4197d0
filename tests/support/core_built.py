"""A replica's state built by hand, for direct tests of one rule of the core.

Node 1 is in epoch 4. Its log ends at offset 5, and all of it is durable and committed: a voters
record at 3 and a record of epoch 4 at 4.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, TypeVar

from quorum.config import QuorumConfig
from quorum.core.contract.events import Event
from quorum.core.contract.output import Progress
from quorum.core.messages.message_types import Outgoing
from quorum.core.positions.log_view import LogView
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_table import build_remote
from quorum.core.state.roles import Follower, Leader, Role, Unattached
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.core.voters.voter_set import VoterSet
from quorum.types import (
    LOG_BEGINNING,
    NO_NODE,
    ElectionState,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
)
from tests.support.core_disk import key, voter

NOW_MS = 10_000
EPOCH = 4
END = 5
VOTERS_AT = 3
_Kind = TypeVar("_Kind")


def built(
    role: Role | None = None,
    *,
    voters: Iterable[Voter | NodeId] = (1, 2, 3),
    removed: Iterable[ReplicaKey] = (),
    bootstrap: tuple[NodeId, ...] = (),
    relays: RelayPlan = NO_RELAYS,
    **config: Any,
) -> CoreState:
    """Return the state of node 1 in ``role``; without one it is unattached."""
    core = CoreState(
        config=QuorumConfig(**config),
        cluster_id="cluster",
        me=key(1),
        rng=random.Random(1),
        bootstrap=bootstrap,
        relays=relays,
    )
    core.log = LogView(LOG_BEGINNING, OffsetAndEpoch(END, EPOCH), (EpochStart(EPOCH, 4),))
    entries = [each if isinstance(each, Voter) else voter(each) for each in voters]
    core.voters.add(VOTERS_AT, VoterSet(entries, removed))
    core.is_voter = core.voters.latest.contains(core.me)
    core.role, core.now_ms, core.high_watermark = role or Unattached(NEVER_MS), NOW_MS, END
    leader_id = core.role.leader_id if isinstance(core.role, Follower) else NO_NODE
    core.adopt_election(ElectionState(EPOCH, leader_id))
    return core


def leading(core: CoreState, **fields: Any) -> Leader:
    """Make the replica a leader that may write and whose other voters have its whole log."""
    core.adopt_election(ElectionState(EPOCH, core.me.id, core.me))
    role = Leader(
        4, (), 0, ReadRounds(EPOCH, 0), **{"established": True, "can_write": True, **fields}
    )
    core.role = role
    build_remote(core, role)
    for progress in role.remote.values():
        progress.end_offset = END
    return role


def sent(core: CoreState, kind: type[_Kind]) -> list[tuple[NodeId, _Kind]]:
    """Return the messages of ``kind`` that the core has sent, with their receivers, in order."""
    sends: list[tuple[NodeId, Outgoing]] = [
        *((each.to, each.message) for each in core.out.immediate),
        *((each.to, each.message) for each in core.out.after_persist),
    ]
    return [(to, message) for to, message in sends if isinstance(message, kind)]


def events(core: CoreState, kind: type[_Kind]) -> list[_Kind]:
    """Return the events of ``kind`` so far."""
    found: list[Event] = core.out.events
    return [each for each in found if isinstance(each, kind)]


def progress(core: CoreState, kind: type[_Kind]) -> list[_Kind]:
    """Return what the state machine and the callers were given of ``kind`` so far."""
    found: list[Progress] = core.out.progress
    return [each for each in found if isinstance(each, kind)]
