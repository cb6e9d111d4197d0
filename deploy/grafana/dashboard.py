"""Write the dashboard, the JSON file beside this one, from the table in ``panels.py``.

    python deploy/grafana/dashboard.py

The selectors of the dashboard's variables are added to every metric. A test compares the queries
with the metrics that a node has.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from panels import ROWS, Panel

FILE: Final = Path(__file__).with_name("quorate.json")
SELECTOR: Final = 'cluster=~"$cluster",instance=~"$instance"'
METRIC: Final = re.compile(r"\b((?:quorate|process|python)_[a-z0-9_]+)(\{)?")
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDTH: Final = 24
HEIGHT: Final = 8


def selected(query: str) -> str:
    """Return a query whose metrics are those of the chosen clusters and nodes."""
    return METRIC.sub(
        lambda found: f"{found[1]}{{{SELECTOR}" + ("," if found[2] else "}"),
        query,
    )


def thresholds(panel: Panel) -> dict[str, Any]:
    """Return where the colours of a panel begin, ascending; the first one has no bound."""
    named = [(panel.orange, "orange"), (panel.red, "red")]
    bounds = [(value, colour) for value, colour in named if value is not None]
    if not panel.is_low_bad:
        steps = [(None, "green"), *bounds]
    else:
        # From the lowest bound up, each colour ends where the better one begins.
        worst_first = sorted(bounds)
        colours = [colour for _, colour in worst_first] + ["green"]
        steps = list(zip([None, *(value for value, _ in worst_first)], colours, strict=True))
    return {
        "mode": "absolute",
        "steps": [{"color": colour, "value": value} for value, colour in steps],
    }


def panel_json(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    """Return one panel in Grafana's form."""
    custom: dict[str, Any] = {}
    if panel.kind == "timeseries":
        has_bounds = panel.orange is not None or panel.red is not None
        custom = {"thresholdsStyle": {"mode": "dashed" if has_bounds else "off"}}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "thresholds": thresholds(panel),
                "color": {
                    "mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"
                },
                "mappings": panel.mappings,
                "custom": custom,
            },
            "overrides": [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "expr": selected(query),
                "legendFormat": legend,
                "datasource": SOURCE,
            }
            for place, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def variable(name: str, label: str, query: str) -> dict[str, Any]:
    """Return a variable of label values; all of them are chosen at first.

    All is ``.*``, so that targets without the label are shown as well.
    """
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 1,
    }


def dashboard() -> dict[str, Any]:
    """Return the whole dashboard: three panels in a line, below a heading each."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        place = {"h": 1, "w": WIDTH, "x": 0, "y": top}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place})
        top += 1
        left = 0
        for panel in row:
            width = WIDTH if panel.kind == "state-timeline" else WIDTH // 3
            if left + width > WIDTH:
                left, top = 0, top + HEIGHT
            place = {"h": HEIGHT, "w": width, "x": left, "y": top}
            panels.append(panel_json(len(panels) + 1, panel, place))
            left += width
        top += HEIGHT
    return {
        "title": "Quorate",
        "uid": "quorate",
        "tags": ["quorate"],
        "timezone": "utc",
        "schemaVersion": 39,
        "version": 2,
        "refresh": "5s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "type": "datasource",
                    "query": "prometheus",
                    "label": "Data source",
                },
                variable("cluster", "Cluster", "label_values(quorate_node_info, cluster)"),
                variable(
                    "instance",
                    "Node",
                    'label_values(quorate_node_info{cluster=~"$cluster"}, instance)',
                ),
            ]
        },
        "annotations": {
            "list": [
                {
                    "name": "Leader changes",
                    "datasource": SOURCE,
                    "expr": selected("changes(quorate_raft_leader_changes_total[30s]) > 0"),
                    "enable": True,
                    "iconColor": "orange",
                }
            ]
        },
        "panels": panels,
    }


def text() -> str:
    """Return the file's content."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
