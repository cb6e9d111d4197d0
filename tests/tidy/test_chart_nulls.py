"""A value that is null, as YAML has it where all keys below are comments, removes the default."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.chart import BOUND, CHART, NAMESPACE, helm

DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
NONE_ON_PURPOSE = {
    ("resources",),
    ("resources", "requests"),
    ("resources", "limits"),
    ("spreadOver",),
}
"""Here the absence has a meaning of its own."""


def places(values: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*above, key)
        if isinstance(value, dict) and above != ("resources",):
            yield from places(value, (*above, key))


def without(place: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(BOUND))
    inner = values
    for key in place[:-1]:
        inner = inner.setdefault(key, {})
    inner[place[-1]] = None
    return values


@functools.cache
def rendered() -> str:
    return helm("template", "quorate", str(CHART), "--namespace", NAMESPACE, values=BOUND).stdout


@pytest.mark.parametrize(
    "place", [each for each in places(DEFAULTS) if each not in NONE_ON_PURPOSE], ids=".".join
)
def test_null_changes_nothing_or_is_refused_by_name(place: tuple[str, ...]) -> None:
    """Among what it changed: no anti-affinity, no policy, and any certificate for any node."""
    done = helm("template", "quorate", str(CHART), "--namespace", NAMESPACE, values=without(place))
    if done.returncode == 0:
        assert done.stdout == rendered()
    else:
        assert place[-1] in done.stderr
        assert "nil pointer" not in done.stderr
        assert "wrong type" not in done.stderr
