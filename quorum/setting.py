"""Declaration of settings: default, meaning, range and Kafka's name beside the field itself.

An absurd number fails late: a wait that no clock can represent, a size that exceeds the memory. So
every number of the configuration has a maximum as well as a minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

_KEY: Final = "setting"

HOUR_MS = 3_600_000
"""Maximum of waits: elections, answers, disks."""
CENTURY_MS = 100 * 365 * 24 * HOUR_MS
"""Maximum of values that are only compared with an age; in practice: never."""
COUNT_MAX = 10_000_000
"""Maximum entries of a queue or a table in memory."""
BYTES_MAX = 1 << 40
"""Maximum bytes that are held or written at a time."""


class Range(NamedTuple):
    """A closed range: both ends are valid."""

    least: float
    most: float

    def problem(self, name: str, value: float) -> str:
        """Return one sentence that begins with ``name``; empty for a valid value."""
        if value < self.least:
            return f"{name} must be at least {self.least}, not {value}"
        # Written this way so that NaN, which compares false with every number, is outside.
        if not value <= self.most:
            return f"{name} must be at most {self.most}, not {value}"
        return ""


WAIT = Range(1, HOUR_MS)
WAIT_OR_NONE = Range(0, HOUR_MS)
AGE = Range(1, CENTURY_MS)
COUNT = Range(1, COUNT_MAX)
BYTES = Range(1, BYTES_MAX)


@dataclass(frozen=True, slots=True)
class Declared:
    """Declaration of one field by ``setting``."""

    help: str
    """Text for people; empty for a field that is no key of the configuration file."""
    range: Range | None
    kafka: str
    """The nearest key of Kafka, or empty."""


def setting(default: T, help: str, range: Range | None = None, *, kafka: str = "") -> T:  # noqa: A002
    """Declare a field of a settings dataclass; ``--help`` and the documents show ``help``."""
    return field(default=default, metadata={_KEY: Declared(help, range, kafka)})


def derived(default: T, range: Range | None = None) -> T:  # noqa: A002
    """Declare a field that follows from other settings and is no key of the file."""
    return setting(default, "", range)


def declared(settings: DataclassInstance | type[DataclassInstance]) -> dict[str, Declared]:
    """Return the declarations of a settings class by field name, in the order of its fields."""
    return {each.name: each.metadata[_KEY] for each in fields(settings) if _KEY in each.metadata}


def out_of_range(settings: DataclassInstance, prefix: str = "") -> list[str]:
    """Return a sentence for each field outside its range, in the order of the fields.

    A field that is None is switched off, and passes.
    """
    found = []
    for name, each in declared(settings).items():
        value = getattr(settings, name)
        if each.range is not None and value is not None:
            found.append(each.range.problem(prefix + name, value))
    return [problem for problem in found if problem]
