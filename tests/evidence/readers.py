"""Read figures from JSON that a command prints, JSON in a file, or a JUnit report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


class UnreadableError(Exception):
    """A command has left no figures, or in another form."""


def printed_json(text: str) -> dict[str, Any]:
    """Return the JSON document at the end of an output; lines before it are a report for people."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("{", "[")):
            try:
                return _as_object(json.loads("\n".join(lines[number:])))
            except json.JSONDecodeError:
                continue
    raise UnreadableError("no JSON at the end of the output")


def json_file(path: Path) -> dict[str, Any]:
    """Return the figures that a command wrote to its file."""
    try:
        return _as_object(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, json.JSONDecodeError) as error:
        raise UnreadableError(str(error)) from error


def junit(path: Path) -> dict[str, Any]:
    """Return the counts of a pytest run, and what its tests stored with ``record_property``."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise UnreadableError(str(error)) from error
    cases = list(root.iter("testcase"))
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = sum(
        case.find("failure") is not None or case.find("error") is not None for case in cases
    )
    recorded: dict[str, Any] = {}
    for each in root.iter("property"):
        recorded[each.get("name", "")] = _value(each.get("value", ""))
    return {
        "tests": len(cases),
        "passed": len(cases) - skipped - failed,
        "failed": failed,
        "skipped": skipped,
        "recorded": recorded,
    }


def _value(text: str) -> Any:
    """Return a property's value. A report holds only text, so numbers and objects are JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _as_object(document: Any) -> dict[str, Any]:
    return document if isinstance(document, dict) else {"rows": document}
