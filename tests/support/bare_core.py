"""A core's state built by hand: node 1 with a role and voters, without a ``RaftNode`` or a disk.

For tests that call one rule of the core directly. The state's ``out`` collects the messages, writes
and events of the rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, TypeVar

from quorum.config import QuorumConfig
from quorum.core.contract.output import Progress
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
    ReplicaKey,
    Voter,
)
from tests.support.core_disk import key, voter

CLUSTER = "cluster"
EPOCH = 4
LEADER = 2
LOG_END = 40
NOW_MS = 10_000
Found = TypeVar("Found")


def core_of(
    role: Role,
    *,
    voters: Iterable[Voter | NodeId] = (1, 2, 3),
    removed: Iterable[ReplicaKey] = (),
    voters_at: int = -1,
    bootstrap: tuple[NodeId, ...] = (),
    relays: RelayPlan = NO_RELAYS,
    leader_id: NodeId = LEADER,
    start: OffsetAndEpoch = LOG_BEGINNING,
    log_end: int = LOG_END,
    log_epoch: int = EPOCH,
    epoch_start: int | None = None,
    high_watermark: int = 0,
    **config: Any,
) -> CoreState:
    """Node 1 in epoch 4, where ``leader_id`` leads; its whole log is durable.

    The log is of ``log_epoch`` from ``epoch_start``, by default from its start, on. The voters come
    from a record at ``voters_at``, by default from the bootstrap checkpoint.
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
    entries = [each if isinstance(each, Voter) else voter(each) for each in voters]
    core.voters.add(voters_at, VoterSet(entries, removed))
    core.is_voter = core.voters.latest.contains(core.me)
    core.role, core.now_ms, core.high_watermark = role, NOW_MS, high_watermark
    begins = start.offset if epoch_start is None else epoch_start
    epochs = (EpochStart(log_epoch, begins),) if log_end > start.offset else ()
    core.log = LogView(start, OffsetAndEpoch(log_end, log_epoch), epochs)
    return core


def follower(leader_id: NodeId = LEADER, **fields: Any) -> Follower:
    """Return node 1 as a follower without pending requests."""
    return Follower(
        leader_id, **{"fetch_deadline_ms": NEVER_MS, "fetch_timeout_ms": 2_000, **fields}
    )


def lead(core: CoreState, *, epoch_start: int = 0, **fields: Any) -> Leader:
    """Make node 1 the established leader of epoch 4, with a table of the other voters."""
    core.adopt_election(ElectionState(EPOCH, core.me.id, core.me))
    given = {"established": True, "can_write": True, **fields}
    role = Leader(epoch_start, (), 0, ReadRounds(EPOCH, 0), **given)
    core.role = role
    build_remote(core, role)
    return role


def leading(voters: tuple[NodeId, ...] = (1, 2, 3), **of_core: Any) -> tuple[CoreState, Leader]:
    """Return node 1 as the leader, made so by ``lead``."""
    core = core_of(follower(), voters=voters, **of_core)
    return core, lead(core)


def sent(core: CoreState, to: NodeId) -> list[Outgoing]:
    """Return the messages to ``to`` that are sent at once."""
    return [each.message for each in core.out.immediate if each.to == to]


def sent_of(core: CoreState, kind: type[Found]) -> list[tuple[NodeId, Found]]:
    """Return the messages of one type, sent at once or after a write, with their receivers."""
    sends = (*core.out.immediate, *core.out.after_persist)
    return [(each.to, each.message) for each in sends if isinstance(each.message, kind)]


def reported(core: CoreState, kind: type[Found]) -> list[Found]:
    """Return the events of one type."""
    return [each for each in core.out.events if isinstance(each, kind)]


def progress(core: CoreState, kind: type[Found]) -> list[Found]:
    """Return the progress of one type, for the state machine and for callers."""
    found: list[Progress] = core.out.progress
    return [each for each in found if isinstance(each, kind)]
