"""The dashboard asks for metrics that a node has, in a way that their type allows.

After a change of ``deploy/grafana/panels.py``: ``python deploy/grafana/dashboard.py``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry

from metrics.catalog import Kind, Metric
from metrics.process_metrics import register_process_metrics
from tests.support.doc_metrics import CATALOG

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "grafana"
BOARD: Any = json.loads((FOLDER / "quorate.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGET_LABELS = {"cluster", "instance", "job"}
"""What Prometheus adds to every series of a target."""
OF_COUNTERS = {"rate", "increase", "irate", "changes"}
VARIABLES = {"$__rate_interval": "1m"}


def known() -> dict[str, Metric]:
    registry = CollectorRegistry()
    register_process_metrics(registry)
    found = dict(CATALOG)
    for family in registry.collect():
        kind = Kind(family.type)
        name = f"{family.name}_total" if kind is Kind.COUNTER else family.name
        found[name] = Metric(name, kind, family.documentation)
    return found


KNOWN = known()


def parsed(query: str) -> Any:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return promql.parse(query)


def below(part: Any, functions: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every selector of a query with the functions around it."""
    match part:
        case promql.VectorSelector():
            yield part, functions
        case promql.MatrixSelector():
            yield part.vector_selector, functions
        case promql.Call():
            for each in part.args:
                yield from below(each, (*functions, part.func.name))
        case promql.AggregateExpr():
            yield from below(part.expr, functions)
        case promql.BinaryExpr():
            yield from below(part.lhs, functions)
            yield from below(part.rhs, functions)
        case promql.ParenExpr() | promql.UnaryExpr():
            yield from below(part.expr, functions)
        case promql.NumberLiteral() | promql.StringLiteral():
            return
        case _:
            raise AssertionError(f"a form that this test does not know: {part}")


def labels_of(part: Any) -> set[str]:
    """The labels that a query's result has."""
    match part:
        case promql.AggregateExpr():
            inner, kept = labels_of(part.expr), set(part.modifier.labels)
            assert kept <= inner, f"by ({', '.join(kept - inner)}): no such label"
            return kept
        case promql.VectorSelector():
            metric, is_bucket = metric_of(part.name)
            return {*metric.labels, *TARGET_LABELS, *(["le"] if is_bucket else [])}
        case promql.MatrixSelector():
            return labels_of(part.vector_selector)
        case promql.Call() if part.func.name == "histogram_quantile":
            return labels_of(part.args[1]) - {"le"}
        case promql.Call():
            return labels_of(part.args[0]) if part.args else set()
        case promql.BinaryExpr():
            sides = [labels_of(part.lhs), labels_of(part.rhs)]
            return sides[0] & sides[1] if all(sides) else sides[0] | sides[1]
        case promql.ParenExpr() | promql.UnaryExpr():
            return labels_of(part.expr)
        case _:
            return set()


def metric_of(name: str) -> tuple[Metric, bool]:
    """The metric behind a series name, and whether it is a histogram's bucket."""
    base = re.sub("_(bucket|sum|count)$", "", name)
    is_histogram = base in KNOWN and KNOWN[base].kind is Kind.HISTOGRAM
    return (KNOWN[base] if is_histogram else KNOWN[name]), is_histogram


def problems(query: str, legend: str = "") -> list[str]:
    """What is wrong with a query of the dashboard."""
    try:
        expression = parsed(query)
        labels = labels_of(expression)
    except (ValueError, AssertionError, KeyError) as error:
        return [str(error)]
    found = [
        f"{selector.name}: {problem}"
        for selector, functions in below(expression)
        for problem in selector_problems(selector, functions)
    ]
    shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
    if legend and not shown <= labels:
        found.append(f"the legend shows {shown - labels}, the result has {labels}")
    return found


def selector_problems(selector: Any, functions: tuple[str, ...]) -> list[str]:
    metric, is_histogram = metric_of(selector.name)
    is_counter = metric.kind is Kind.COUNTER or is_histogram
    given = {each.name: each.value for each in selector.matchers.matchers}
    found = []
    if (given.get("cluster"), given.get("instance")) != ("$cluster", "$instance"):
        found.append("not of the chosen clusters and nodes")
    if not given.keys() <= {*metric.labels, *TARGET_LABELS}:
        found.append(f"no label {given.keys() - set(metric.labels) - TARGET_LABELS}")
    if OF_COUNTERS & set(functions) and not is_counter:
        found.append("the rate of a gauge")
    if is_histogram and "histogram_quantile" not in functions:
        found.append("a bucket without a quantile")
    return found


QUERIES = [
    pytest.param(target["expr"], target["legendFormat"], id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]


@pytest.mark.parametrize(("query", "legend"), QUERIES)
def test_a_query_fits_the_metrics_that_exist(query: str, legend: str) -> None:
    assert problems(query, legend) == []


CHOSEN = '{cluster=~"$cluster",instance=~"$instance"}'
MISTAKES = {
    "unknown": f"quorate_nonsense{CHOSEN}",
    "no-cluster": "quorate_raft_epoch",
    "rate-of-a-gauge": f"rate(quorate_raft_epoch{CHOSEN}[1m])",
    "no-such-label": f"sum by (cluster, topic) (quorate_raft_epoch{CHOSEN})",
    "no-such-matcher": f'quorate_raft_epoch{CHOSEN[:-1]},topic="a"}}',
    "bucket-alone": f"quorate_raft_commit_seconds_bucket{CHOSEN}",
    "no-query": "sum by (",
}


@pytest.mark.parametrize("query", MISTAKES.values(), ids=MISTAKES)
def test_the_rule_sees_a_mistake(query: str) -> None:
    assert problems(query)


def test_the_rule_sees_a_legend_without_its_label() -> None:
    assert problems(f"sum by (cluster) (quorate_raft_epoch{CHOSEN})", "{{instance}}")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_explains_itself_and_has_thresholds(panel: Any) -> None:
    assert len(panel["description"]) > 30
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    steps = defaults["thresholds"]["steps"]
    assert steps[0]["value"] is None
    bounds = [step["value"] for step in steps[1:]]
    assert bounds == sorted(set(bounds))
    assert {step["color"] for step in steps} <= {"green", "orange", "red"}


def test_most_panels_say_what_is_too_much() -> None:
    bounded = [p for p in PANELS if len(p["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1]
    assert len(bounded) > len(PANELS) / 2


def test_an_alert_that_a_panel_names_begins_where_the_panel_turns_red() -> None:
    """For alerts with one comparison, with a number that is not 0."""
    rules: Any = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text("utf-8"))
    bounds: dict[str, tuple[str, float]] = {}
    alerts = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}
    for name, rule in alerts.items():
        found = re.search(r"([<>]) ([0-9.e]+)$", rule["expr"])
        if found and float(found[2]) > 0 and len(re.findall("[<>]", rule["expr"])) == 1:
            bounds[name] = found[1], float(found[2])
    compared = 0
    for panel in PANELS:
        for name in re.findall(r"alert (Quorate\w+)", panel["description"]):
            assert name in alerts, name
            steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            if name in bounds:
                is_low_bad = bounds[name][0] == "<"
                red = steps[1]["value"] if is_low_bad else steps[-1]["value"]
                assert red == bounds[name][1], (panel["title"], name)
                compared += 1
    assert compared >= 4


def test_leadership_is_a_timeline_of_every_state() -> None:
    from quorate.server.gauges import STATES

    (panel,) = [p for p in PANELS if p["type"] == "state-timeline" and p["title"] == "Leadership"]
    ((mapping,),) = [panel["fieldConfig"]["defaults"]["mappings"]]
    by_number = {int(number): shown["text"] for number, shown in mapping["options"].items()}
    assert sorted(by_number.values()) == sorted(STATES)
    ((target,),) = [panel["targets"]]
    for number, state in by_number.items():
        assert re.search(rf'state="{state}"\}} \* {number}\b', target["expr"])


def test_a_variable_chooses_clusters_and_nodes() -> None:
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}
    assert set(variables) == {"datasource", "cluster", "instance"}
    for name in ("cluster", "instance"):
        each = variables[name]
        # Also targets without the label, where one Prometheus watches one cluster.
        assert (each["multi"], each["includeAll"], each["allValue"]) == (True, True, ".*")
        match = re.fullmatch(r"label_values\((\w+)(\{.*\})?, (\w+)\)", each["query"]["query"])
        assert match is not None
        assert match[1] in KNOWN
        assert match[3] == name


def test_panels_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, (panel["title"], taken.get((x, y)))
                taken[x, y] = panel["title"]


def test_ids_and_names_of_queries_are_unique() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    for panel in PANELS:
        names = [target["refId"] for target in panel["targets"]]
        assert len(set(names)) == len(names) > 0


def test_the_file_is_what_the_table_makes() -> None:
    code = "import dashboard, sys; sys.stdout.write(dashboard.text())"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=True
    )
    assert made.stdout == (FOLDER / "quorate.json").read_text(encoding="utf-8")
