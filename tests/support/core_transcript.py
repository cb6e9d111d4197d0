"""The actions of a node as text that a reader who knows the protocol can check line by line.

Request numbers, the cluster's id and fields with their default value are left out. Positions are
``offset/epoch``, replicas are their node ids, times are relative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

from quorum.core.contract.events import RequestRefused
from quorum.core.contract.output import Output
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.timers import name_of
from quorum.errors import ErrorCode
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, VersionRange, Voter

_LEFT_OUT = ("request_id", "cluster_id")
_SHORT = {"RequestRefused": "refused", "MessageIgnored": "ignored"}
_QUIET = ("FetchClassified", "VoteDecided")
"""Events that only repeat the response."""


def text_of(value: Any) -> str:
    """Return a message, event or value as one phrase."""
    match value:
        case ReplicaKey():
            return str(value.id)
        case Voter():
            addresses = ",".join(f"{each.host}:{each.port}" for each in value.endpoints)
            return f"{value.key.id}@{addresses}"
        case Endpoint():
            return f"{value.host}:{value.port}"
        case VersionRange():
            return f"{value.name} {value.lowest}..{value.highest}"
        case OffsetAndEpoch():
            return f"{value.offset}/{value.epoch}"
        case Enum():
            return value.name
        case tuple() | list():
            return f"({','.join(map(text_of, value))})"
        case bytes():
            return f"<{len(value)} bytes>" if value else "-"
        case str():
            return f'"{value}"' if " " in value else value
    if not is_dataclass(value):
        return str(value)
    parts = [_SHORT.get(type(value).__name__, type(value).__name__)]
    is_short = type(value).__name__ in _SHORT
    for each in fields(value):
        held = getattr(value, each.name)
        if is_short and each.name in ("request", "message"):
            continue
        if each.name in _LEFT_OUT or (each.default is not MISSING and held == each.default):
            continue
        if each.name == "error" and held.name == "NONE":
            continue
        if isinstance(held, bool):
            parts.append(each.name if held else f"not-{each.name}")
        else:
            parts.append(f"{each.name}={text_of(held)}")
    return " ".join(parts)


def lines_of(output: Output) -> list[str]:
    """Return what an output does and reports, one line for each.

    The response shows that a request was refused; only a report without a response is a line.
    """
    sends = [*output.immediate, *output.after_persist]
    errors = [(each.to, getattr(each.message, "error", ErrorCode.NONE)) for each in sends]
    refused = [each for each in output.events if isinstance(each, RequestRefused)]
    reported = [(each.sender, each.error) for each in refused]
    left_out = {id(each) for each in refused if (each.sender, each.error) in errors}
    events = (each for each in output.events if type(each).__name__ not in _QUIET)
    unreported = (
        f"! not reported: {error.name} to {to}"
        for to, error in errors
        if error is not ErrorCode.NONE and (to, error) not in reported
    )
    return [
        *(f"! {text_of(each)}" for each in events if id(each) not in left_out),
        *unreported,
        *(f"disk: {text_of(each)}" for each in output.persist),
        *(f"-> {each.to} {text_of(each.message)}" for each in output.immediate),
        *(f"when durable -> {each.to} {text_of(each.message)}" for each in output.after_persist),
        *(f"{text_of(each)}" for each in output.progress),
    ]


def _counts(node: RaftNode) -> Counter[str]:
    """Return the events that only metrics show: expired timers and results of digest checks."""
    chain = node.chain
    return Counter(
        {
            **{name_of(fired): count for fired, count in node.timers_fired.items()},
            "digests equal": chain.equal,
            "digests different": chain.different,
            "digests too early": chain.too_early,
            "digests unknown": chain.unknown,
        }
    )


class Transcript:
    """One node with an instant disk; a function plays its peers."""

    def __init__(self, node: RaftNode, now_ms: int) -> None:
        self.node = node
        self.now_ms = now_ms
        self.began_ms = now_ms
        self.deadline_ms: int | None = None
        self.lines: list[str] = []
        self.sent: list[tuple[int, Any]] = []

    def do(self, entry: Callable[[RaftNode], Output]) -> None:
        """Call one entry point, and again whenever its writes have become durable."""
        before = _counts(self.node)
        output = entry(self.node)
        while True:
            self.lines += lines_of(output)
            self.sent += [(each.to, each.message) for each in output.immediate]
            self.sent += [(each.to, each.message) for each in output.after_persist]
            self.deadline_ms = output.next_deadline_ms
            if not output.persist:
                break
            ticket = output.ticket
            output = self.node.persisted(self.now_ms, ticket)
        counted = _counts(self.node)
        counted.subtract(before)
        parts = [
            f"{name}{'' if count == 1 else f' {count:+}'}"
            for name, count in sorted(counted.items())
            if count
        ]
        self.lines += [f"counts: {', '.join(parts)}"] if parts else []

    def wake(self) -> bool:
        """Move the time to the node's own deadline; return False if it has none."""
        if self.deadline_ms is None:
            self.lines.append("sleeps until it is called")
            return False
        self.now_ms = self.deadline_ms
        begin = len(self.lines)
        self.do(lambda node: node.tick(self.now_ms))
        done = self.lines[begin:] or ["nothing"]
        self.lines[begin:] = [f"+{self.now_ms - self.began_ms}: {each}" for each in done]
        return True

    def wakes(self, count: int) -> list[str]:
        """Return the outputs of so many deadlines in a row."""
        begin = len(self.lines)
        for _ in range(count):
            if not self.wake():
                break
        return self.lines[begin:]


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines of a list below a heading."""
    return [f"    {each}" for each in lines]
