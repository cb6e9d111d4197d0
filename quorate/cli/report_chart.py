"""The charts of an audit report as SVG, legible on light and on dark pages."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from audit.report import ChartKind, Section
from quorate.principal_text import PRINCIPAL_COLUMNS, principal_text
from quorate.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_INCHES = 9.0
_HEIGHT_INCHES = 2.8
_BAR_INCHES = 0.26
_INK = "#010203"
"""Stands for the colour of the page's text, which differs between light and dark."""
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_COLOURS = ("#3f7fbf", "#c8651b")
"""Both differ enough from white and from black."""
_BINS = 30
_NAME_CHARACTERS_MAX = 40
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_GROUP_WIDTH = 0.8
"""Part of a unit of time that its bars take."""


def chart(section: Section) -> str:
    """Return a chart as an SVG element. Equal sections give equal text."""
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = {
        # With a fixed salt, equal charts are equal text.
        "svg.hashsalt": section.name,
        "svg.fonttype": "none",
        **dict.fromkeys(_INKED, _INK),
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(_WIDTH_INCHES, _height(section)), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        _DRAW[section.chart](axes, section)
        written = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(written, format="svg", metadata=metadata, transparent=True)
    drawn = written.getvalue().split("<svg", 1)[1].replace(_INK, "currentColor")
    return f'<svg role="img" aria-label="{section.title}"{drawn}'


def _height(section: Section) -> float:
    if section.chart is not ChartKind.BARS:
        return _HEIGHT_INCHES
    return 0.7 + _BAR_INCHES * len(section.chart_rows)


def _over_time(axes: Axes, section: Section) -> None:
    """Draw a group of bars per unit of time; a unit without a row had nothing to count."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    rows = section.chart_rows
    time, *counts = rows[0]
    unit = _UNITS[section.unit]
    width = unit * _GROUP_WIDTH / len(counts)
    for number, (name, colour) in enumerate(zip(counts, _COLOURS, strict=False)):
        axes.bar(
            [row[time] + width * number for row in rows],
            [row[name] for row in rows],
            width=width,  # type: ignore[arg-type] # as the times are
            align="edge",
            color=colour,
            label=name.replace("_", " "),
        )
    locator = AutoDateLocator(minticks=2)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_xlim(rows[0][time], rows[-1][time] + unit)
    axes.set_xlabel("time (UTC)")
    axes.set_ylabel(f"changes per {section.unit}")
    _whole_numbers(axes, "y")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(counts))


def _bars(axes: Axes, section: Section) -> None:
    rows = section.chart_rows
    name, count = rows[0]
    # By place: two long names may look alike when they are cut.
    places = range(len(rows))
    drawn = axes.barh(places, [row[count] for row in rows], color=_COLOURS[0])
    axes.bar_label(drawn, fmt="{:,.0f}", padding=3)
    axes.set_yticks(places, [_short(name, str(row[name])) for row in rows])
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlabel(count)
    _whole_numbers(axes, "x")


def _short(column: str, name: str) -> str:
    """Return a name of a column as it is shown; the table below has it whole."""
    text = visible(principal_text(name) if column in PRINCIPAL_COLUMNS else name)
    if len(text) > _NAME_CHARACTERS_MAX:
        text = text[: _NAME_CHARACTERS_MAX - 1] + "\u2026"
    # Not formulas: a name may hold dollar signs, which begin one.
    return text.replace("$", r"\$")


def _histogram(axes: Axes, section: Section) -> None:
    rows = section.chart_rows
    (name,) = rows[0]
    values = [row[name] for row in rows]
    # From 0 on, and not a single bar around it if all of them are 0.
    axes.hist(values, bins=_BINS, range=(0, max(values) or 1), color=_COLOURS[0])
    axes.set_xlim(left=0)
    axes.set_xlabel(name)
    axes.set_ylabel(section.counted)
    _whole_numbers(axes, "y")


def _whole_numbers(axes: Axes, which: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axis.set_major_formatter("{x:,.0f}")


_DRAW: Mapping[ChartKind, Callable[[Axes, Section], None]] = {
    ChartKind.OVER_TIME: _over_time,
    ChartKind.BARS: _bars,
    ChartKind.HISTOGRAM: _histogram,
}
