"""The console shows the alert rules and runbooks of this checkout.

After a change of either: ``pytest tests/tidy/test_console_alerts.py --rewrite``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
SHIPPED = ROOT / "quorate" / "console" / "alerts.json"
WRAP = re.compile(r"(?<!\n)\n *(?![-|\n ]|[0-9]+\. )")
"""The end of a line inside of a sentence."""
LABEL = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def section(page: str, anchor: str) -> str:
    """The text below the heading of an anchor, as plain text."""
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        if heading.strip().lower().replace(" ", "-") == anchor:
            plain = LINK.sub(r"\1", body).replace("`", "").replace("**", "").strip()
            return WRAP.sub(" ", plain)
    raise LookupError(anchor)


def expected() -> list[dict[str, str]]:
    rows = []
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            runbook = rule["annotations"]["runbook"]
            path, _, anchor = runbook.partition("#")
            text = section((ROOT / path).read_text(encoding="utf-8"), anchor)
            rows.append(
                {
                    "alert": rule["alert"],
                    "expr": rule["expr"],
                    "for": str(rule["for"]),
                    "severity": rule["labels"]["severity"],
                    "summary": LABEL.sub(r"‹\1›", rule["annotations"]["summary"]),
                    "runbook": runbook,
                    "runbook_text": text,
                }
            )  # fmt: skip
    return rows


def test_the_console_has_the_newest_rules(request: pytest.FixtureRequest) -> None:
    rows = expected()
    assert len(rows) > 20
    if request.config.getoption("--rewrite"):
        SHIPPED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    assert json.loads(SHIPPED.read_text(encoding="utf-8")) == rows


def test_every_rule_says_what_to_do() -> None:
    assert [each["alert"] for each in expected() if len(each["runbook_text"]) < 40] == []
