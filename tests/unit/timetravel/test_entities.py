"""Kinds and names of entities: from a table, or from what a record type declares."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.timetravel import entities
from quorate.timetravel.kinds import KINDS
from statemachine import records
from statemachine.image import EMPTY_IMAGE


@dataclass(slots=True)
class SampleThingRecord(records.MetadataRecord):
    API_KEY = 32_000
    IDENTITY = ("place", "id")
    place: str = ""
    id: bytes = bytes(16)


def test_a_new_full_state_type_needs_no_entry() -> None:
    kind, namer = entities._declared(SampleThingRecord)
    assert kind == "sample-thing"
    assert namer(EMPTY_IMAGE, SampleThingRecord("a")) == ("a", "AAAAAAAAAAAAAAAAAAAAAA")


def test_every_full_state_type_has_a_kind_of_its_own() -> None:
    full = [
        each.record_class
        for each in records.RECORD_TYPES.values()
        if each.record_class.IDENTITY is not None
    ]
    assert len({entities._NAMERS[each][0] for each in full}) == len(full)


def test_the_named_kinds_are_those_of_the_full_state_types() -> None:
    """A new type needs its kind there, so that ``--kind`` takes it."""
    assert tuple(kind for kind, _ in entities._NAMERS.values()) == KINDS
