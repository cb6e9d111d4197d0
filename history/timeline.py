"""Draw operations as a timeline in text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from history.operation import Action, Operation, Outcome, Value

WIDTH = 40
OPERATIONS_MAX = 40


def draw(operations: Sequence[Operation], unit: str) -> list[str]:
    """Return one line per operation, in call order: a bar, client, request and outcome."""
    shown = sorted(operations, key=lambda each: (each.call, each.number))[-OPERATIONS_MAX:]
    if not shown:
        return []
    start = shown[0].call
    end = max(max(each.call, each.end or 0) for each in shown)
    scale = max(1, end - start)
    lines = [f"{'':{WIDTH}}  from {start} to {end} {unit}"]
    clients = max(len(each.client) for each in shown)
    lines += [
        f"{_bar(each, start, scale)}  {each.client:{clients}}  {describe(each)}" for each in shown
    ]
    return lines


def describe(operation: Operation) -> str:
    """Return the request and the response in one line."""
    asked = _asked(operation)
    if operation.outcome is Outcome.UNKNOWN:
        answer = "outcome unknown"
    elif operation.outcome is Outcome.FAILED:
        answer = f"refused: {operation.error or 'never sent'}"
    else:
        answer = _pairs(operation.result) or "done"
    place = f" @{operation.offset}" if operation.offset >= 0 else ""
    return f"#{operation.number} {asked} -> {answer}{place}"


def _asked(operation: Operation) -> str:
    if operation.level is not None:
        wanted = f" {operation.at_least}" if operation.at_least >= 0 else ""
        session = f" on {operation.session}" if operation.session else ""
        return f"read {operation.level.value}{wanted}{session}"
    if operation.action is Action.ALTER:
        changes = operation.arguments.get("changes")
        parts = [
            f"{change[1]} {change[0]}" + (f"={change[2]}" if change[2] is not None else "")
            for change in (changes if isinstance(changes, list) else [])
            if isinstance(change, list) and len(change) == 3
        ]
        return ", ".join(parts)
    return " ".join((operation.action.value, _pairs(operation.arguments))).rstrip()


def _pairs(values: Iterable[str]) -> str:
    if not isinstance(values, dict):
        return ""
    return " ".join(f"{name}={_short(value)}" for name, value in values.items())


def _short(value: Value) -> str:
    if isinstance(value, dict):
        return "{" + " ".join(f"{name}={_short(item)}" for name, item in value.items()) + "}"
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bar(operation: Operation, start: int, scale: int) -> str:
    def column(moment: int) -> int:
        return (moment - start) * (WIDTH - 1) // scale

    first = column(operation.call)
    is_open = operation.end is None or operation.outcome is Outcome.UNKNOWN
    last = WIDTH - 1 if is_open else column(operation.end or 0)
    if first == last:
        return f"{' ' * first}|{' ' * (WIDTH - first - 1)}"
    tip = ">" if is_open else "]"
    return f"{' ' * first}[{'-' * (last - first - 1)}{tip}{' ' * (WIDTH - last - 1)}"
