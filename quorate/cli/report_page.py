"""The page of an audit report: one HTML file with its charts inside, which needs no network."""

from __future__ import annotations

import html
import importlib.util
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from audit.report import ChartKind, Section
from quorate.cli.exits import CliError
from quorate.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid #8884; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; background: #fff; border-radius: 6px; overflow-x: auto; }
"""
_SIZE_INCHES = (9.0, 2.8)
_BINS = 30


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        CliError: It is not; names the extra.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise CliError("matplotlib is not installed", hint="pip install 'quorate[plots]' brings it")


def page(source: str, as_of_offset: int, sections: Sequence[Section]) -> str:
    """Return the report as HTML. Equal sections give equal text."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f"<title>Audit report of {_text(source)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Audit report</h1><p>{_text(source)}, as of offset {as_of_offset}. Times are UTC.</p>",
    ]
    for section in sections:
        parts += [
            f'<h2 id="{section.name}">{section.title}</h2><p>{section.meaning}</p>',
            f"<p><strong>{section.total}</strong> {section.counted}</p>",
        ]
        if section.chart_rows:
            parts.append(f"<figure>{_chart(section)}</figure>")
        if section.rows:
            parts.append(_table(section.rows))
    return "\n".join([*parts, "</body></html>\n"])


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{_text(name.replace('_', ' '))}</th>" for name in rows[0])
    body = "\n".join(
        "<tr>" + "".join(_cell(value) for value in row.values()) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>\n{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        return f'<td class="number">{shown}</td>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, datetime):
        return f"<td>{value:%Y-%m-%d %H:%M:%S}</td>"
    return f"<td>{'-' if value is None else _text(str(value))}</td>"


def _text(text: str) -> str:
    return html.escape(visible(text))


def _chart(section: Section) -> str:
    """Return a chart as an SVG element."""
    import matplotlib
    from matplotlib.figure import Figure

    # With a fixed salt, equal charts are equal text.
    with matplotlib.rc_context({"svg.hashsalt": section.name, "svg.fonttype": "none"}):
        figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        _DRAW[section.chart](axes, section.chart_rows)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return "<svg" + written.getvalue().split("<svg", 1)[1]


def _over_time(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    time, *counts = rows[0]
    times = [row[time] for row in rows]
    for name in counts:
        label = name.replace("_", " ")
        axes.plot(times, [row[name] for row in rows], marker=".", linewidth=1, label=label)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _bars(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    name, count = rows[0]
    # Not formulas: a name may hold dollar signs, which begin one.
    names = [visible(str(row[name])).replace("$", r"\$") for row in rows]
    axes.barh(names, [row[count] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(count)


def _histogram(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    (name,) = rows[0]
    axes.hist([row[name] for row in rows], bins=_BINS)
    axes.set_xlabel(name)


_DRAW = {
    ChartKind.OVER_TIME: _over_time,
    ChartKind.BARS: _bars,
    ChartKind.HISTOGRAM: _histogram,
}
