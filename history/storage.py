"""Histories as JSON lines: a header, then one object per operation, batch, delivery or gap.

Fields at their defaults are omitted. Unknown fields and lines of an unknown kind are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from enum import Enum
from pathlib import Path
from typing import Any, TextIO

from history.history import Delivery, History, LogBatch, LogGap
from history.operation import Action, Level, Operation, Outcome

VERSION = 1
_KINDS: dict[str, type[Any]] = {"op": Operation, "log": LogBatch, "watch": Delivery,
                                "gap": LogGap}  # fmt: skip
_ENUMS: dict[str, type[Enum]] = {"action": Action, "outcome": Outcome, "level": Level}
_WHOLE = frozenset({"number", "call", "end", "base", "epoch", "offset", "at_least"})
_MAPPINGS = frozenset({"arguments", "result"})


class HistoryFormatError(Exception):
    """The file is not a history; the message names file and line."""


def save(history: History, path: Path) -> None:
    """Write a history, replacing the file."""
    with path.open("w", encoding="utf-8") as file:
        write(history, file)


def write(history: History, file: TextIO) -> None:
    """Write a history as JSON lines."""
    for line in to_lines(history):
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def to_lines(history: History) -> Iterator[dict[str, Any]]:
    """Return the objects of the lines, header first."""
    yield {"kind": "history", "version": VERSION, "unit": history.unit, "notes": history.notes}
    for kind, items in (
        ("op", history.operations), ("log", history.log), ("watch", history.deliveries),
        ("gap", history.gaps),
    ):  # fmt: skip
        for item in items:
            yield {"kind": kind, **_plain(item)}


def load(path: Path) -> History:
    """Read a history.

    Raises:
        HistoryFormatError: The file is not a history, or a line is damaged.
        OSError: The file cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return from_lines(file, str(path))
    except UnicodeDecodeError as error:
        raise HistoryFormatError(f"{path}: not text: {error}") from error


def from_lines(lines: Iterable[str], name: str) -> History:
    """Read a history from its lines; ``name`` goes into errors.

    Raises:
        HistoryFormatError: The lines are not a history, or a line is damaged.
    """
    history: History | None = None
    numbers: set[int] = set()
    for count, text in enumerate(lines, 1):
        if not text.strip():
            continue
        where = f"{name}:{count}"
        line = _parse(text, where)
        if history is None:
            history = _begin(line, where)
            continue
        kind = _KINDS.get(str(line.get("kind")))
        if kind is None:
            continue
        item = _make(kind, line, where)
        if isinstance(item, Operation):
            if item.number in numbers:
                raise HistoryFormatError(f"{where}: operation {item.number} occurs twice")
            numbers.add(item.number)
            history.operations.append(item)
        elif isinstance(item, LogBatch):
            history.log.append(item)
        elif isinstance(item, LogGap):
            history.gaps.append(item)
        else:
            history.deliveries.append(item)
    if history is None:
        raise HistoryFormatError(f"{name}: the file is empty")
    return history


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HistoryFormatError(f"{where}: not JSON: {error}") from error
    if not isinstance(line, dict):
        raise HistoryFormatError(f"{where}: not a JSON object")
    return line


def _begin(line: dict[str, Any], where: str) -> History:
    if line.get("kind") != "history":
        raise HistoryFormatError(f"{where}: the first line is not of kind 'history'")
    if line.get("version") != VERSION:
        version = line.get("version")
        raise HistoryFormatError(f"{where}: version {version} is not supported, only {VERSION}")
    notes = line.get("notes", {})
    return History(str(line.get("unit", "us")), notes if isinstance(notes, dict) else {})


def _plain(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in fields(item):
        value = getattr(item, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value == default:
            continue
        if isinstance(value, Enum):
            value = value.value
        found[each.name] = list(value) if isinstance(value, tuple) else value
    return found


def _make(kind: type[Any], line: dict[str, Any], where: str) -> Any:
    values: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in line:
            values[each.name] = _convert(each.name, line[each.name], where)
    try:
        return kind(**values)
    except TypeError as error:
        raise HistoryFormatError(f"{where}: a field is missing: {error}") from error


def _convert(name: str, value: Any, where: str) -> Any:
    if name in _ENUMS and value is not None:
        try:
            return _ENUMS[name](value)
        except ValueError as error:
            raise HistoryFormatError(f"{where}: {error}") from error
    expected: type[Any] = str
    if name in _WHOLE:
        expected = int
    elif name in _MAPPINGS:
        expected = dict
    elif name == "marks":
        expected = list
    is_nothing = value is None and name in ("end", "level")
    if not is_nothing and (not isinstance(value, expected) or isinstance(value, bool)):
        raise HistoryFormatError(f"{where}: {name} is not {expected.__name__}: {value!r:.60}")
    return tuple(map(str, value)) if name == "marks" else value
