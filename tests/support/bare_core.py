"""A core's state built by hand: node 1 with a role and voters, without a node or a disk round it.

For tests that call one rule of the core directly. What a rule sends, writes and reports is in the
state's ``out``.
"""

from __future__ import annotations

import random
from typing import Any, TypeVar

from quorum.config import QuorumConfig
from quorum.core.messages.message_types import Outgoing
from quorum.core.positions.log_view import LogView
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_table import build_remote
from quorum.core.state.roles import Follower, Leader, Role
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.core.voters.voter_set import VoterSet
from quorum.types import (
    LOG_BEGINNING,
    ElectionState,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
)
from tests.support.core_disk import key, voter

CLUSTER = "cluster"
EPOCH = 4
LEADER = 2
LOG_END = 40
NOW_MS = 10_000_000
Found = TypeVar("Found")


def core_of(
    role: Role,
    *,
    voters: tuple[NodeId, ...] = (1, 2, 3),
    bootstrap: tuple[NodeId, ...] = (),
    relays: RelayPlan = NO_RELAYS,
    leader_id: NodeId = LEADER,
    start: OffsetAndEpoch = LOG_BEGINNING,
    log_end: int = LOG_END,
    log_epoch: int = EPOCH,
    **config: Any,
) -> CoreState:
    """Node 1 in epoch 4, where ``leader_id`` leads; its whole log is durable, nothing committed.

    The voters come from the bootstrap checkpoint, so no voters record is in the log.
    """
    core = CoreState(
        config=QuorumConfig(**config),
        cluster_id=CLUSTER,
        me=key(1),
        rng=random.Random(1),
        bootstrap=bootstrap,
        relays=relays,
    )
    core.adopt_election(ElectionState(EPOCH, leader_id))
    core.voters.add(-1, VoterSet(map(voter, voters)))
    core.is_voter = 1 in voters
    core.role, core.now_ms = role, NOW_MS
    epochs = (EpochStart(log_epoch, start.offset),) if log_end > start.offset else ()
    core.log = LogView(start, OffsetAndEpoch(log_end, log_epoch), epochs)
    return core


def follower(leader_id: NodeId = LEADER, **fields: Any) -> Follower:
    """A follower that waits for nothing."""
    return Follower(
        leader_id, **{"fetch_deadline_ms": NEVER_MS, "fetch_timeout_ms": 2_000, **fields}
    )


def leading(voters: tuple[NodeId, ...] = (1, 2, 3), **of_core: Any) -> tuple[CoreState, Leader]:
    """Node 1 as the established leader of epoch 4, with a table of the other voters."""
    role = Leader(0, (), 0, ReadRounds(EPOCH, 0), established=True, can_write=True)
    core = core_of(role, voters=voters, leader_id=1, **of_core)
    build_remote(core, role)
    return core, role


def sent(core: CoreState, to: NodeId) -> list[Outgoing]:
    """What leaves for ``to`` at once."""
    return [each.message for each in core.out.immediate if each.to == to]


def reported(core: CoreState, kind: type[Found]) -> list[Found]:
    """The events of one type."""
    return [each for each in core.out.events if isinstance(each, kind)]
