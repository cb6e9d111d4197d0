"""Documents as pages: Jinja templates with autoescape, and the few words and numbers they need."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from quorate.console.charts import bar, timeline
from quorate.console.index import KINDS_OF_HISTORY, SEARCHED_KINDS
from quorate.principal_text import principal_text

TITLES: Final = {
    "overview": "Overview",
    "quorum": "Quorum",
    "leadership": "Leadership",
    "topics": "Topics",
    "partitions": "Partitions",
    "brokers": "Brokers",
    "search": "Search",
    "history": "History",
    "diff": "Diff",
    "alerts": "Alerts",
    "features": "Features",
}
"""Views in the navigation, in its order."""
_TEXT_MAX: Final = 400


def ago(age_ms: int) -> str:
    """Return an age in the unit that a person would use; a dash if it is not known."""
    if age_ms < 0:
        return "–"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if age_ms >= 2 * size:
            return f"{age_ms // size} {unit} ago"
    return f"{age_ms / 1000:.1f} s ago"


def moment(time_ms: int | None) -> str:
    """Return a time in UTC, to the second; a dash if there is none."""
    if time_ms is None or time_ms < 0:
        return "–"
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "–"


def number(value: int | None) -> str:
    """Return a number with separators; a dash for -1 and None, which mean unknown."""
    return "–" if value is None or value == -1 else f"{value:,}"


def short(value: Any) -> str:
    """Return a field's value on one line, cut where it is very long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + " …"


def link(view: str, **values: object) -> str:
    """Return the address of a view with parameters, the empty ones left out."""
    query = urlencode({name: value for name, value in values.items() if value not in ("", None)})
    path = "/" if view == "overview" else f"/{view}"
    return f"{path}?{query}" if query else path


class Pages:
    """Renders documents."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("quorate.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            ago=ago, moment=moment, number=number, principal=principal_text, short=short
        )
        self._environment.globals.update(
            link=link,
            bar=bar,
            timeline=timeline,
            titles=TITLES,
            searched_kinds=SEARCHED_KINDS,
            kinds_of_history=KINDS_OF_HISTORY,
        )

    def render(self, view: str, **values: Any) -> str:
        """Return the page of a view; ``values`` are the fields that its template names."""
        return self._environment.get_template(f"{view}.html").render(view=view, **values)
