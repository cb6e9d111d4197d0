"""Replica placement: hard rules for any cluster, stripes and balance for regular ones."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.errors import CommandError, ErrorCode
from statemachine.placement import UsableBroker, UsableBrokers, _Stripes, place_replicas


def place(brokers, count, factor, seed=1):
    return place_replicas(
        UsableBrokers(brokers),
        partition_count=count,
        replication_factor=factor,
        rng=random.Random(seed),
    )


def racks(**sizes):
    """Brokers numbered through, ``a=3`` meaning three in rack "a"."""
    names = [rack for rack, size in sizes.items() for _ in range(size)]
    return [UsableBroker(broker_id, rack) for broker_id, rack in enumerate(names)]


def test_no_broker_is_not_called_fenced():
    with pytest.raises(CommandError, match="no usable brokers: none is registered"):
        place([], 1, 1)
    with pytest.raises(CommandError, match="all 1 usable brokers are fenced"):
        place([UsableBroker(1, is_fenced=True)], 1, 1)


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        ([], 1),
        ([UsableBroker(1, is_fenced=True)], 1),
        (racks(a=2), 3),
        (racks(a=2), 0),
        (racks(a=2), -1),
    ],
)
def test_impossible_wishes_are_refused(brokers, factor):
    with pytest.raises(CommandError) as caught:
        place(brokers, 1, factor)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_stripes_over_three_racks_of_three():
    """A0 B0 C0, B1 C1 A1, C2 A2 B2: each broker once in three partitions, leaders all apart."""
    brokers = racks(a=3, b=3, c=3)
    rack_of = {broker.id: broker.rack for broker in brokers}
    placed = place(brokers, 3, 3)
    assert sorted(b for replicas in placed for b in replicas) == list(range(9))
    assert {rack_of[replicas[0]] for replicas in placed} == {"a", "b", "c"}
    assert all({rack_of[b] for b in replicas} == {"a", "b", "c"} for replicas in placed)


def test_replicas_and_leading_racks_are_balanced_exactly_and_leaders_nearly():
    brokers = racks(a=3, b=3, c=3)
    rack_of = {broker.id: broker.rack for broker in brokers}
    placed = place(brokers, 900, 3)
    assert set(Counter(b for replicas in placed for b in replicas).values()) == {300}
    assert set(Counter(rack_of[replicas[0]] for replicas in placed).values()) == {300}
    leaders = Counter(replicas[0] for replicas in placed)
    assert len(leaders) == 9
    assert max(leaders.values()) <= 150


def test_a_fenced_broker_serves_only_where_its_rack_has_no_other():
    brokers = [UsableBroker(1, "a"), UsableBroker(2, "a", is_fenced=True), UsableBroker(3, "b")]
    assert all(set(replicas) == {1, 3} for replicas in place(brokers, 20, 2))
    brokers = [UsableBroker(1, "a"), UsableBroker(2, "b", is_fenced=True), UsableBroker(3, "a")]
    assert all(2 in replicas[1:] for replicas in place(brokers, 20, 2))


def test_no_rack_is_a_rack_of_its_own():
    brokers = [UsableBroker(1), UsableBroker(2), UsableBroker(3, "")]
    assert all(3 in replicas for replicas in place(brokers, 20, 2))


@given(
    size=st.integers(1, 12), factor=st.integers(1, 12), count=st.integers(1, 40),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_one_rack_is_dealt_from_as_several_are(size, factor, count, seed):
    """The short way for brokers in one rack chooses what the stripes over racks choose."""
    brokers = UsableBrokers(racks(a=size))
    quick, slow = (_Stripes(brokers, random.Random(seed)) for _ in range(2))
    slow._only = None
    factor = min(factor, size)
    for _ in range(count):
        assert quick.place(factor) == slow.place(factor)


@st.composite
def clusters(draw):
    return [
        UsableBroker(broker_id, draw(st.sampled_from([None, "a", "b", "c"])), draw(st.booleans()))
        for broker_id in range(draw(st.integers(1, 9)))
    ]


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(clusters(), st.integers(1, 9), st.integers(1, 40), st.integers(0, 9))
def test_hard_rules_hold_for_any_cluster(brokers, factor, count, seed):
    unfenced = {broker.id for broker in brokers if not broker.is_fenced}
    if not unfenced or factor > len(brokers):
        with pytest.raises(CommandError):
            place(brokers, count, factor, seed)
        return
    rack_of = {broker.id: broker.rack for broker in brokers}
    placed = place(brokers, count, factor, seed)
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] in unfenced
        used = Counter(rack_of[broker] for broker in replicas)
        unused = set(rack_of.values()) - set(used)
        assert not unused or max(used.values()) == 1
