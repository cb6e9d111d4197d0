"""Events of one node of a model other than messages, and how timers are made to expire."""

from __future__ import annotations

from quorum.core.contract.output import Append
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.types import NodeId
from simulation.explore import slots
from simulation.explore.model import Model
from simulation.explore.node import Working
from simulation.explore.values import Event
from simulation.harness.core_disk import Disk


def events_of(node: Working, written: Disk, model: Model) -> list[Event]:
    """Return the events that may happen to a node without a message."""
    core = node.core
    role = core.role
    may_campaign = model.may_campaign(core.me.id, core.epoch + 1)
    may_rise = core.epoch < model.epochs and may_campaign
    found: list[Event] = []
    if is_urgent(node, model):
        found.append(("persist",))
        if node.raft.is_leader:
            return [*found, ("doom",)]
        watermarks = {min(node.stored, len(node.disk.log))}
        return found + crash_variants(node, written, watermarks)
    if node.pending and model.in_full:
        found.append(("persist",))
    if may_rise and (
        (isinstance(role, Unattached | Follower | Candidate) and core.is_voter)
        or (isinstance(role, Leader) and role.established and role.remote and model.resigns)
        or (isinstance(role, Resigned) and core.epoch + 1 < model.epochs)
    ):
        found.append(("timer",))
    if isinstance(role, Prospective):
        found.append(("timer",))
    if node.crashes and node.pending:
        known = min(core.high_watermark, len(node.disk.log))
        found += crash_variants(node, written, {0, known} if model.in_full else {known})
    return found


def is_urgent(node: Working, model: Model) -> bool:
    """Return whether the next event must decide what the disk has completed."""
    return bool(node.pending) and not model.in_full and not node.last_pass


def crash_variants(node: Working, written: Disk, watermarks: set[int]) -> list[Event]:
    """Return the crashes that differ in how much of the pending disk work survives."""
    durable = node.disk
    logs = [durable.log]
    done = durable
    for _, effects in node.pending:
        for effect in effects:
            if isinstance(effect, Append) and effect.base_offset == len(done.log):
                # A torn write leaves the first batch only. A single batch is written completely or
                # not at all.
                batch = done.after(effect, {}).log[: len(done.log) + 1]
                is_within = bool(done.log) and done.log[-1][0] == batch[-1][0]
                if len(batch) < effect.end_offset and is_within:
                    logs.append(batch)
            done = done.after(effect, node.checkpoints)
        if not node.last_pass:
            break
        if done.log != logs[-1] and done.log != written.log:
            logs.append(done.log)
    elections = [durable.election]
    if written.election != durable.election:
        elections.append(written.election)
    return [
        ("crash", log, election, watermark)
        for log in logs
        for election in elections
        for watermark in sorted(watermarks)
    ]


def expire(core: CoreState) -> None:
    """Let the timer of the present role expire."""
    role = core.role
    match role:
        case Follower():
            role.fetch_deadline_ms = slots.NOW_MS
        case Leader():
            role.check_quorum_deadline_ms = slots.NOW_MS
        case _:
            role.election_deadline_ms = slots.NOW_MS


def make_due(core: CoreState, target: NodeId) -> None:
    """Let the leader find ``target`` silent, so that it sends BeginQuorumEpoch again."""
    leader = core.role
    if isinstance(leader, Leader):
        progress = leader.remote[target]
        progress.last_fetch_ms = -1
        progress.begin.due_ms = leader.upkeep_due_ms = slots.NOW_MS
