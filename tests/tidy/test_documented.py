"""Metrics and settings are documented, and what is documented exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from metrics.catalog import Kind
from quorate.config.settings import settings
from tests.support.doc_metrics import CATALOG

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"\bquorate_[a-z0-9_]+")


def series(name: str) -> str:
    """The catalog name behind a series name in a query."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return base if base in CATALOG and CATALOG[base].kind is Kind.HISTOGRAM else name


def test_every_setting_is_read_somewhere() -> None:
    """A key that no code reads has no effect."""
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("quorum", "snapshot", "statemachine", "metrics", "quorate")
        for path in (ROOT / folder).rglob("*.py")
        if not path.relative_to(ROOT).as_posix().startswith("quorate/config")
    )
    # These are read through properties of their section that put them together.
    through_properties = {
        "advertised_client",
        "advertised_peer",
        "advertised_sasl",
        "advertised_peer_tcp_port",
        "peer",
        "client",
    }
    unread = [
        key
        for key, setting in settings().items()
        if setting.name not in through_properties and not re.search(rf"\.{setting.name}\b", sources)
    ]
    assert unread == []


def named_metrics(text: str) -> set[str]:
    return {series(name) for name in NAME.findall(text)}


DEPLOYED = sorted(
    path for path in (ROOT / "deploy").rglob("*") if path.suffix in (".json", ".yaml", ".yml")
)


@pytest.mark.parametrize("path", DEPLOYED, ids=lambda path: path.name)
def test_what_is_deployed_names_only_real_metrics(path: Path) -> None:
    assert named_metrics(path.read_text(encoding="utf-8")) - set(CATALOG) == set()


def test_the_rule_sees_an_unknown_metric() -> None:
    assert named_metrics("rate(quorate_nonsense_total[5m])") - set(CATALOG)
    assert named_metrics("quorate_raft_commit_seconds_bucket") - set(CATALOG) == set()


def test_every_alert_leads_to_a_runbook() -> None:
    rules: Any = yaml.safe_load(
        (ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8")
    )
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len(alerts) >= 12
    for alert in alerts:
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert alert["annotations"]["summary"].endswith(".")
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        runbooks = (ROOT / page).read_text(encoding="utf-8")
        assert re.search(rf"^#+ {anchor}$", runbooks, re.M | re.I), alert["alert"]
