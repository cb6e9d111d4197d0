"""The change builder: elections, ELR, reassignment; and agreement with the derived changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statemachine import derivation
from statemachine.election import Election, ElectionRules, WantedChange, build_change
from statemachine.prepare.lifecycle import departure_changes
from statemachine.records import BrokerFencedEvent, PartitionChangeRecord, PartitionRecord
from statemachine.sections.partitions import PartitionState
from tests.support.image_builder import (
    fenced,
    registration,
    small_cluster,
    topic_config,
    topic_id,
)

TOPIC = topic_id(1)


def rules(*alive, min_isr=1, elr=False, bump=False):
    return ElectionRules(
        is_acceptable=lambda broker, _directory: broker in alive,
        min_isr=min_isr,
        is_elr_enabled=elr,
        isr_shrink_bumps_leader_epoch=bump,
    )


def state(**fields):
    return PartitionState((1, 2, 3), (1, 2, 3), leader=1)._replace(**fields)


def build(partition, wanted, evaluate):
    return build_change(partition, wanted, evaluate, topic_id=TOPIC, partition_id=0)


def change(**fields):
    return PartitionChangeRecord(0, TOPIC, **fields)


@pytest.mark.parametrize(
    ("partition", "wanted", "evaluate", "expected"),
    [
        pytest.param(state(), WantedChange(), rules(1, 2, 3), None, id="nothing to do"),
        pytest.param(
            state(),
            WantedChange(isr=(2, 3)),
            rules(2, 3),
            change(isr=(2, 3), leader=2),
            id="leader leaves",
        ),
        pytest.param(
            state(leader=2), WantedChange(), rules(1, 2, 3), None, id="a valid leader stays"
        ),
        pytest.param(
            state(leader=2),
            WantedChange(election=Election.PREFERRED),
            rules(1, 2, 3),
            change(leader=1),
            id="preferred",
        ),
        pytest.param(
            state(leader=2),
            WantedChange(election=Election.PREFERRED),
            rules(2, 3),
            None,
            id="preferred is dead",
        ),
        pytest.param(
            state(isr=(1,)),
            WantedChange(isr=()),
            rules(2, 3),
            change(leader=-1),
            id="the last member stays in the isr but cannot lead",
        ),
        pytest.param(
            state(isr=(1,)),
            WantedChange(isr=(), election=Election.UNCLEAN),
            rules(2, 3),
            change(leader=2, isr=(2,), leader_recovery_state=1),
            id="unclean",
        ),
        pytest.param(
            state(),
            WantedChange(isr=(1, 2)),
            rules(1, 2, 3, bump=True),
            change(isr=(1, 2), leader=1),
            id="an old level bumps on shrink",
        ),
        pytest.param(
            state(),
            WantedChange(isr=(1,)),
            rules(1, 2, 3, min_isr=2, elr=True),
            change(isr=(1,), eligible_leader_replicas=(2, 3)),
            id="below min isr the elr fills",
        ),
        pytest.param(
            state(isr=(1,), elr=(2,)),
            WantedChange(isr=(1, 2)),
            rules(1, 2, min_isr=2, elr=True),
            change(isr=(1, 2), eligible_leader_replicas=()),
            id="at min isr the elr empties",
        ),
        pytest.param(
            state(isr=(1,), elr=(2,)),
            WantedChange(isr=()),
            rules(2, min_isr=2, elr=True),
            change(leader=2, isr=(2,), eligible_leader_replicas=(1,)),
            id="elr winner is clean",
        ),
        pytest.param(
            state(isr=(1,), elr=()),
            WantedChange(isr=(), unclean_replicas=frozenset({1})),
            rules(min_isr=2, elr=True),
            change(leader=-1, isr=(), last_known_elr=(1,)),
            id="the last leader is remembered",
        ),
        pytest.param(
            state(isr=(), leader=-1, last_known_elr=(1,)),
            WantedChange(),
            rules(1, min_isr=2, elr=True),
            change(leader=1, isr=(1,), last_known_elr=(), leader_recovery_state=1),
            id="and comes back as the last resort",
        ),
        pytest.param(
            state(removing=(3,)),
            WantedChange(isr=(1, 2)),
            rules(1, 2, 3),
            change(isr=(1, 2), replicas=(1, 2), removing_replicas=(), leader=1),
            id="a removal completes and bumps the leader epoch",
        ),
        pytest.param(
            state(isr=(1, 2), adding=(3,)),
            WantedChange(),
            rules(1, 2, 3),
            None,
            id="an addition waits for the isr",
        ),
        pytest.param(
            state(adding=(3,)),
            WantedChange(),
            rules(1, 2, 3),
            change(adding_replicas=()),
            id="an addition completes",
        ),
        pytest.param(
            state(replicas=(1, 2, 3), isr=(1, 3), removing=(3,)),
            WantedChange(),
            rules(1, 2, 3),
            None,
            id="a shrink waits for every remaining replica",
        ),
    ],
)
def test_what_a_change_comes_to(partition, wanted, evaluate, expected):
    assert build(partition, wanted, evaluate) == expected


def test_directories_follow_their_replicas():
    partition = state(removing=(2,), directories=(b"1" * 16, b"2" * 16, b"3" * 16), isr=(1, 3))
    built = build(partition, WantedChange(), rules(1, 2, 3))
    assert (built.replicas, built.directories) == ((1, 3), (b"1" * 16, b"3" * 16))


brokers = st.lists(st.integers(1, 5), unique=True, min_size=1, max_size=4).map(tuple)


@st.composite
def partitions(draw):
    replicas = draw(brokers)
    isr = tuple(b for b in replicas if draw(st.booleans())) or replicas[:1]
    elr = tuple(b for b in replicas if b not in isr and draw(st.booleans()))
    leader = draw(st.sampled_from((*isr, -1)))
    last_known = draw(st.sampled_from([(), (replicas[0],)]))
    removing = draw(st.sampled_from([(), replicas[-1:]]))
    return replicas, isr, elr, leader, last_known, removing


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    partitions(),
    st.booleans(),
    st.sets(st.integers(2, 5)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([10, 33]),
)
def test_changes_written_out_agree_with_those_derived_from_the_event(
    partition, elr, dead, unclean, allows_unclean, min_isr, level
):
    """Kafka's codec writes what the native codec derives: two codes, one set of rules."""
    replicas, isr, eligible, leader, last_known, removing = partition
    records = [registration(4), registration(5), *(fenced(b) for b in sorted(dead))]
    records.append(
        PartitionRecord(
            9,
            TOPIC,
            replicas,
            isr,
            removing,
            (),
            leader,
            0,
            1,
            1,
            eligible_leader_replicas=eligible if elr else (),
            last_known_elr=last_known if elr else (),
        )
    )
    if allows_unclean:
        records.append(topic_config("unclean.leader.election.enable", "true"))
    if min_isr:
        records.append(topic_config("min.insync.replicas", "2"))
    image = small_cluster(*records, elr=elr, level=level)
    derived = derivation.derive(image, BrokerFencedEvent(1, 11, unclean=unclean))
    assert departure_changes(image, 1, is_unclean=unclean) == derived
