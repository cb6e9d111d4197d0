"""A turn that the core skips would have done nothing, in whole runs with faults.

``deadlines`` finds in one pass that a leader or a follower has nothing to do. Whoever adds a duty
to a turn must add its deadline there. Here each skipped turn is taken on a copy of the core.
"""

from __future__ import annotations

import copy
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from quorum.core.contract.output import Output
from quorum.core.membership import self_registration
from quorum.core.node import deadlines, raft_node
from quorum.core.node.raft_node import RaftNode
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower, Leader
from simulation.lanes import run_seed
from simulation.options import Options

finish = RaftNode._finish


def copy_of(core: CoreState) -> CoreState:
    copied = copy.deepcopy(core, {id(core.config): core.config})
    copied.out = Output()
    return copied


def is_skipped(core: CoreState) -> bool:
    role, due_ms = core.role, deadlines.TURN_IS_DUE
    if isinstance(role, Follower):
        due_ms = deadlines.follower_deadline(core, role)
    elif isinstance(role, Leader) and role.established and role.transfer is None:
        due_ms = deadlines.leader_deadline(core, role)
    return core.now_ms < due_ms


def state_of(core: CoreState) -> tuple[Any, ...]:
    """What a turn may request or change."""
    out = core.out
    requested = (*out.persist, *out.after_persist, *out.immediate, *out.progress, *out.events)
    is_derived = core.registration.basis is core.voters.latest
    counters = core.requests.last_id, core.rng.getstate(), dict(core.timers_fired)
    return requested, type(core.role), core.election, is_derived, *counters


def check_turn(core: CoreState, deadline_ms: int | None) -> None:
    before, node = state_of(core), RaftNode.__new__(RaftNode)
    node._core, node._is_started = core, True
    with pytest.MonkeyPatch.context() as general:

        def due(*_: object) -> int:
            return deadlines.TURN_IS_DUE

        always = {"leader_deadline": due, "follower_deadline": due}
        general.setattr(raft_node, "deadlines", SimpleNamespace(**{**vars(deadlines), **always}))
        general.setattr(deadlines, "follower_deadline", due)
        assert finish(node).next_deadline_ms == deadline_ms
    assert state_of(core) == before


def check_derived(core: CoreState) -> None:
    """What is kept for a voter set would be derived from it again alike."""
    if core.registration.basis is core.voters.latest:
        assert self_registration._wish(core) == core.registration.change
    if core.known_leader.basis is core.voters.latest and isinstance(core.role, Follower):
        again = copy_of(core)
        learn_endpoints(again, ())
        assert not again.out.progress


@pytest.mark.parametrize("profile", ["everything", "membership"])
def test_a_skipped_turn_would_have_done_nothing(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped: Counter[str] = Counter()

    def checked(node: RaftNode) -> Output:
        core = node._core
        before = copy_of(core) if is_skipped(core) else None
        out = finish(node)
        if before is not None:
            skipped[node.role_name] += 1
            check_turn(before, out.next_deadline_ms)
        check_derived(core)
        return out

    monkeypatch.setattr(RaftNode, "_finish", checked)
    result = run_seed(1, Options(profile, voters=(3,), observers=(1,), events=600))
    assert not result.failure
    assert min(skipped["Leader"], skipped["Follower"]) > 50, skipped
