"""Any two voter sets in force one after the other have majorities that always meet."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.core.contract.local_events import AddVoter, LocalEvent, RemoveVoter, Resign, UpdateVoter
from quorum.core.voters.majority import quorum_size
from quorum.core.voters.voter_set import VoterSet
from quorum.types import ReplicaKey
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key, voter

NODES = (1, 2, 3, 4, 5)


def majorities(voters: frozenset[ReplicaKey]) -> list[frozenset[ReplicaKey]]:
    return [frozenset(each) for each in combinations(voters, quorum_size(len(voters)))]


def always_meet(one: frozenset[ReplicaKey], other: frozenset[ReplicaKey]) -> bool:
    return all(a & b for a in majorities(one) for b in majorities(other))


def test_the_rule_sees_majorities_that_do_not_meet() -> None:
    """Two voters exchanged at once: the very thing that one at a time excludes."""
    before = frozenset(map(key, (1, 2, 3)))
    assert always_meet(before, frozenset(map(key, (1, 2))))
    assert always_meet(before, frozenset(map(key, (1, 2, 3, 4))))
    assert not always_meet(before, frozenset(map(key, (3, 4, 5))))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30))
def test_each_step_of_a_set_meets_the_one_before(steps: list[tuple[bool, int]]) -> None:
    voters = VoterSet(voter(each) for each in (1, 2, 3))
    gone: set[ReplicaKey] = set()
    for is_add, node_id in steps:
        before = frozenset(each.key for each in voters.voters)
        if is_add and voters.get(node_id) is None:
            voters = voters.adding(voter(node_id))
            gone.discard(key(node_id))
        elif not is_add and voters.contains(key(node_id)) and len(voters) > 1:
            voters = voters.removing(key(node_id))
            gone.add(key(node_id))
        after = frozenset(each.key for each in voters.voters)
        assert always_meet(before, after)
        assert set(voters.removed) == gone
        assert not gone & after


class Story:
    """Random changes, cuts and crashes; every set that any node ever had in force is kept."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = CoreCluster((1, 2, 3), (4, 5), seed=seed)

    def change(self) -> LocalEvent:
        target = self.rng.choice(NODES)
        match self.rng.randrange(4):
            case 0:
                return RemoveVoter(1, key(target), 300)
            case 1:
                return UpdateVoter(1, voter(target))
            case _:
                return AddVoter(1, voter(target), readmit=self.rng.random() < 0.7)

    def step(self) -> None:
        cluster, rng = self.cluster, self.rng
        match rng.randrange(8):
            case 0:
                cluster.isolate(rng.choice(NODES))
            case 1 | 2:
                cluster.heal()
            case 3 if cluster.leaders():
                event = Resign()
                node_id = rng.choice(cluster.leaders())
                cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, event))
            case 4:
                node_id = rng.choice(NODES)
                cluster.crash(node_id)
                cluster.restart(node_id)
            case _:
                wish = self.change()
                for node_id in cluster.leaders():
                    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, wish))
        cluster.advance(rng.choice((1, 50, 400, 3000)))
        self.check()

    def check(self) -> None:
        """The sets that leaders and followers have in force now, each with the next."""
        for node_id in NODES:
            node = self.cluster[node_id]
            core = node._core
            sets = [frozenset(each.key for each in one.voters) for one in core.voters._sets]
            for before, after in pairwise(sets):
                assert always_meet(before, after), (node_id, before, after)
        leaders = [self.cluster[each] for each in self.cluster.leaders()]
        for one, other in combinations(leaders, 2):
            assert one.epoch != other.epoch


def test_sets_in_force_under_cuts_crashes_and_changes_of_leader() -> None:
    """Forty stories; together they must have changed the set often enough to prove something."""
    changes = 0
    for seed in range(40):
        story = Story(seed)
        for _ in range(25):
            story.step()
        cluster = story.cluster
        cluster.heal()
        cluster.advance(20_000)
        assert len(cluster.leaders()) == 1
        leader = cluster[cluster.leaders()[0]]
        changes += leader.voters_offset > 2
        voters = {each.key.id for each in leader.voters}
        for node_id in voters:
            assert cluster[node_id].voters == leader.voters
            assert cluster[node_id].removed_voters == leader.removed_voters
    assert changes > 20
