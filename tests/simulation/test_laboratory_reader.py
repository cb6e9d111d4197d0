"""What a reader of the laboratory demands of a truncation whose offset is only a bound."""

from __future__ import annotations

import pytest

from quorate.client.log_consumer import ResetPolicy
from simulation.invariants.violation import Violation
from simulation.laboratory.laboratory import Laboratory
from simulation.laboratory.producer import PartitionProducer
from simulation.laboratory.random_run import RandomRun
from simulation.laboratory.reader import Counts, Reader
from simulation.laboratory.replica import Replica

TOPIC = "t"


def reader_of_three() -> tuple[Reader, Replica]:
    """A reader that has all three records of a log, and the leader of that log."""
    laboratory = Laboratory((1, 2))
    laboratory.create(TOPIC, (1, 2), {})
    producer = PartitionProducer(laboratory, TOPIC)
    for value in "abc":
        producer.send(value)
    laboratory.replicate(TOPIC)
    reader = Reader(laboratory, TOPIC, ResetPolicy.EARLIEST, Counts())
    while len(reader.have) < 3:
        reader.read()
    leader = laboratory.leader(TOPIC)
    assert leader is not None
    return reader, leader


@pytest.mark.parametrize(
    ("lost", "reported", "fault"),
    [
        (0, 0, None),
        (0, 2, None),
        (2, 2, None),
        (2, 1, "a bound is too low"),
        (None, 2, "a false alarm"),
    ],
)
def test_a_bound_is_at_the_first_lost_record_or_above(
    lost: int | None, reported: int, fault: str | None
) -> None:
    reader, leader = reader_of_three()
    if lost is not None:
        reader.have[lost] = (7, "another")
    if fault is None:
        reader._check_bound(leader, reported)
        return
    with pytest.raises(Violation, match=fault):
        reader._check_bound(leader, reported)


def test_a_reader_that_knows_its_lineage_in_part_gets_a_bound() -> None:
    """Found by the ten thousand runs: after a seek it knows one epoch, and the log has none of it.

    Records below the offset that it is told are lost as well. It begins anew and ends with all.
    """
    assert RandomRun(8378).run().inexact
