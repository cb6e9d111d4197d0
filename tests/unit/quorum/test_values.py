"""What a value is: a frozen dataclass in all that can be seen of it, and only cheaper to make."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import get_args

import pytest

from quorum.core.contract import events, output
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadRound
from quorum.values import copier, value


@value
class Point:
    """A value with every kind of field."""

    x: int
    y: int = 7
    tags: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """A method of its own."""
        return self.x + self.y


@dataclass(frozen=True, slots=True)
class Plain:
    """What ``Point`` has to look like."""

    x: int
    y: int = 7
    tags: list[str] = field(default_factory=list)


def test_a_value_is_made_as_a_dataclass_is() -> None:
    assert (Point(1).x, Point(1).y, Point(1).tags) == (1, 7, [])
    assert (Point(1, tags=["a"]).y, Point(y=2, x=1).total) == (7, 3)
    assert Point(1).tags is not Point(1).tags
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1, 2, [], 4)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1, z=3)  # type: ignore[call-arg]


def test_a_value_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        point.z = 2  # type: ignore[attr-defined]
    assert not hasattr(point, "__dict__")
    assert type(point) is Point
    assert point == Point(1)


def test_values_compare_hash_and_show_by_their_fields() -> None:
    assert ReadRound(1, 2) == ReadRound(1, 2) != ReadRound(1, 3)
    assert hash(ReadRound(1, 2)) == hash(ReadRound(1, 2))
    assert Point(1) != Plain(1)
    assert repr(Point(1)).removeprefix("Point") == repr(Plain(1)).removeprefix("Plain")
    assert Point.__match_args__ == Plain.__match_args__
    assert [each.name for each in fields(Point)] == [each.name for each in fields(Plain)]


def test_values_are_copied_and_pickled() -> None:
    point = Point(1, tags=["a"])
    assert replace(point, y=9) == Point(1, 9, ["a"])
    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.copy(point) == point
    deep = copy.deepcopy(point)
    assert deep == point
    assert deep.tags is not point.tags


def test_a_class_that_does_not_fit_is_refused() -> None:
    class Base:
        """Anything."""

    with pytest.raises(TypeError, match="Derived needs a dataclass"):

        @value
        class Derived(Base):
            """Has fields that the maker does not know of."""

            x: int

    with pytest.raises(TypeError, match="Checked needs a dataclass"):

        @value
        class Checked:
            """Would have to be called back."""

            x: int

            def __post_init__(self) -> None:
                """Look at itself."""

    with pytest.raises(TypeError, match="Hidden needs a dataclass"):

        @value
        class Hidden:
            """Has a field that is no argument."""

            x: int = field(init=False, default=1)


def _kinds_in(module: object) -> list[type]:
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")
    ]


@pytest.mark.parametrize(
    "kinds",
    [list(get_args(Message)), _kinds_in(output), _kinds_in(events)],
    ids=["messages", "output", "events"],
)
def test_everything_that_passes_through_the_core_is_frozen(kinds: list[type]) -> None:
    assert len(kinds) > 15
    for kind in kinds:
        if kind is output.Output:
            continue
        empty = object.__new__(kind)
        name = fields(kind)[0].name
        with pytest.raises(FrozenInstanceError):
            setattr(empty, name, 1)


def test_a_copier_changes_one_field_and_leaves_the_value_alone() -> None:
    point = Point(1, 2, ["a"])
    with_y = copier(Point, "y")
    assert with_y(point, 5) == replace(point, y=5)
    assert point == Point(1, 2, ["a"])
    with pytest.raises(ValueError, match="no field z"):
        copier(Point, "z")
