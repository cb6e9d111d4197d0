"""The page of an audit report: one HTML file with its charts inside, which needs no network."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from audit.report import Section
from quorate.cli.exits import CliError
from quorate.cli.report_chart import chart
from quorate.principal_text import PRINCIPAL_COLUMNS, principal_text
from quorate.visible_text import visible

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
nav a { margin-right: 1.2rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid #8884; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; overflow-x: auto; }
figcaption, .note { font-size: 13px; opacity: 0.8; }
svg { max-width: 100%; height: auto; }
"""
_NUMBERED = frozenset({"partition", "broker_id"})
"""Columns whose numbers are names."""


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        CliError: It is not; names the extra.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise CliError("matplotlib is not installed", hint="pip install 'quorate[plots]' brings it")


def page(
    source: str,
    as_of_offset: int,
    sections: Sequence[Section],
    covered: tuple[datetime, datetime] | None = None,
) -> str:
    """Return the report as HTML. Equal sections give equal text.

    ``covered`` are the times of the oldest and of the newest record.
    """
    span = "" if covered is None else f", records from {_time(covered[0])} to {_time(covered[1])}"
    links = " ".join(f'<a href="#{each.name}">{each.title}</a>' for each in sections)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Audit report of {_text(source)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Audit report</h1><p>{_text(source)}, as of offset {as_of_offset}{span}. "
        f"Times are UTC.</p><nav>{links}</nav>",
    ]
    for section in sections:
        parts += [
            f'<h2 id="{section.name}">{section.title}</h2><p>{section.meaning}</p>',
            f"<p><strong>{section.total:,}</strong> {section.counted}</p>",
        ]
        if section.chart_rows:
            caption = f"<figcaption>{_text(section.reading)}</figcaption>"
            parts.append(f"<figure>{chart(section)}{caption}</figure>")
        if section.rows:
            parts += [f'<p class="note">{_text(section.order)}</p>', _table(section.rows)]
        if not section.chart_rows and not section.rows:
            parts.append('<p class="note">Nothing of this kind happened up to this offset.</p>')
    return "\n".join([*parts, "</body></html>\n"])


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(
        f"<th{_class_of(value)}>{_text(name.replace('_', ' '))}</th>"
        for name, value in rows[0].items()
    )
    body = "\n".join(
        "<tr>" + "".join(_cell(name, value) for name, value in row.items()) + "</tr>"
        for row in rows
    )
    return f'<div class="table"><table><tr>{head}</tr>\n{body}</table></div>'


def _class_of(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ' class="number"' if is_number else ""


def _cell(name: str, value: object) -> str:
    return f"<td{_class_of(value)}>{_shown(name, value)}</td>"


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return str(value) if name in _NUMBERED else f"{value:,}"
    if isinstance(value, datetime):
        return _time(value)
    if name in PRINCIPAL_COLUMNS and isinstance(value, str):
        return _text(principal_text(value))
    return "-" if value is None else _text(str(value))


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


def _text(text: str) -> str:
    return html.escape(visible(text))
