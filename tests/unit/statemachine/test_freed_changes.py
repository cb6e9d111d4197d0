"""What a broker event does to tens of thousands of partitions leaves nothing behind."""

from __future__ import annotations

import gc

from statemachine.derivation import derivation_of
from statemachine.sections.partitions import AlikeChange
from tests.unit.statemachine.test_derivation import after, brokers, fence, image_of, partition


def living_changes():
    return sum(isinstance(each, AlikeChange) for each in gc.get_objects())


def test_the_changes_of_an_event_are_freed_without_a_search_for_cycles():
    """Goal: tens of thousands of them wait for no collector. Method: it is off meanwhile."""
    image = image_of(*brokers(1, 2, 3), partition(0, (1, 2, 3)), partition(1, (2, 1, 3)))
    gc.collect()
    gc.disable()
    try:
        before = living_changes()
        derived = derivation_of(image, fence(1))
        assert len(list(derived.records())) == 2
        assert living_changes() == before + 2
        del derived
        after(image, fence(1))
        assert living_changes() == before
    finally:
        gc.enable()
