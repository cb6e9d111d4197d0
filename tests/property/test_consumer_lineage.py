"""A consumer over random histories of epochs (``tests.support.consumer_world``)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.client.log_consumer import ResetPolicy
from quorum.log_position import Divergence, Lineage
from tests.support.consumer_world import REPLICAS, STEPS_MAX, follow

replicas = st.integers(0, REPLICAS - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("copy"), replicas, st.integers(0, 12)),
        st.tuples(st.just("elect"), replicas),
        st.tuples(st.just("elect_untold"), replicas),
        st.tuples(st.just("poll")),
        st.tuples(st.just("poll")),
        st.tuples(st.just("poll_replaced"), replicas),
        st.tuples(st.just("restart")),
    ),
    max_size=STEPS_MAX,
)


@settings(max_examples=200, deadline=None)
@given(policy=st.sampled_from(ResetPolicy), todo=steps)
def test_a_loss_is_found_where_it_is_and_nothing_is_lost_or_doubled(policy, todo):
    follow(policy, todo)


PATHOLOGY = [
    ("elect", 0), ("append", 1), ("copy", 1, 2), ("elect_untold", 1), ("append", 1), ("poll",),
    ("poll",), ("elect", 0), ("append", 1),
]  # fmt: skip
"""Read e1 and e2; then the log is e1, longer than it was, and e3 (KIP-279, scenario 1)."""


@pytest.mark.parametrize("policy", ResetPolicy)
def test_the_pathology_of_the_document(policy):
    follow(policy, PATHOLOGY)


def test_a_judgement_beyond_the_replicas_epoch_is_noticed(monkeypatch):
    """The model can fail: a deposed leader evaluates an epoch that it does not know."""
    monkeypatch.setattr("quorate.services.log_range.check_epoch_read", lambda node, epoch: None)
    todo = [("elect_untold", 1), ("append", 2), ("poll",), ("restart",), ("poll_replaced", 0)]
    follow(ResetPolicy.EARLIEST, todo[:-1])
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        follow(ResetPolicy.EARLIEST, todo)


def test_one_lookup_alone_is_not_enough(monkeypatch):
    """The model can fail: the consumer believes the first answer."""

    def believe(lineage, position, epoch, end_offset):
        yield from ()
        return Divergence(min(end_offset, position), epoch, is_exact=True)

    monkeypatch.setattr(Lineage, "walk", believe)
    with pytest.raises(AssertionError):
        follow(ResetPolicy.EARLIEST, PATHOLOGY)
