"""Numbers on the command line, whose errors say which values are allowed.

The ``name`` of each kind stands behind the option in ``--help``, unless the option has a word of
its own there.
"""

from __future__ import annotations

import math
from typing import Any

import click


class WholeNumber(click.IntRange):
    """A whole number, within bounds if there are any."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number.

        Raises:
            click.BadParameter: It is none that is allowed; the message says which are.
        """
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"expected {allowed(self, 'a whole number')}, not {value!r}", param, ctx)


class Number(click.FloatRange):
    """A finite number, within bounds if there are any; click takes `nan` for one in every range."""

    name = "number"
    noun = "a number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number.

        Raises:
            click.BadParameter: It is none that is allowed; the message says which are.
        """
        try:
            found = float(super().convert(value, param, ctx))
        except click.BadParameter:
            found = math.nan
        if not math.isfinite(found):
            self.fail(f"expected {allowed(self, self.noun)}, not {value!r}", param, ctx)
        return found


class Seconds(Number):
    """A finite number of seconds."""

    name = "seconds"
    noun = "a number of seconds"


def allowed(kind: click.IntRange | click.FloatRange, noun: str) -> str:
    """Return which values a range allows: ``a whole number from 1 to 9``."""
    low, high = kind.min, kind.max
    if low is not None and high is not None and not (kind.min_open or kind.max_open):
        return f"{noun} from {low} to {high}"
    bounds = []
    if low is not None:
        bounds.append(f"above {low}" if kind.min_open else f"of at least {low}")
    if high is not None:
        bounds.append(f"below {high}" if kind.max_open else f"of at most {high}")
    return " ".join([noun, " and ".join(bounds)]) if bounds else noun
