"""Run all checks on one history and report the coverage and the violations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from history import log_order, real_time
from history.exactly_once import log_violations, write_violations
from history.hints import Places, places_in
from history.history import History
from history.operation import Operation, Outcome
from history.search import STEPS_MAX, CheckResult
from history.timeline import draw
from history.violation import Violation
from history.watches import watch_violations

EXPLAINED_MAX = 5
"""At most this many failed keys are explained; each needs many searches for a shortest prefix."""


@dataclass(slots=True)
class Report:
    """The coverage of the checks and the violations found."""

    unit: str
    operations: int = 0
    answered: int = 0
    """Operations with a known effect: reads and writes with a successful response, and refused
    writes. Excludes operations without a response and those that were never sent."""
    keys: int = 0
    batches: int = 0
    gaps: int = 0
    """Ranges of the log that were trimmed before the log reader read them."""
    unread: int = 0
    """Offsets in the gaps, and offsets below the first batch that was read."""
    deliveries: int = 0
    """Events delivered to watchers; they are not client operations."""
    steps: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    """Number of operations by action (or read level) and outcome."""
    violations: list[Violation] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """Keys whose search exhausted its budget."""

    @property
    def check_result(self) -> CheckResult:
        """INVALID if there is a violation; else UNKNOWN if a key is undecided; else VALID."""
        if self.violations:
            return CheckResult.INVALID
        return CheckResult.UNKNOWN if self.undecided else CheckResult.VALID

    def explanation(self) -> list[str]:
        """Return every violation with its timeline, and the undecided keys, as lines."""
        lines: list[str] = []
        for violation in self.violations:
            lines.append(str(violation))
            lines += [f"    {line}" for line in draw(violation.operations, self.unit)]
        lines += [f"undecided within the budget: {key}" for key in self.undecided]
        return lines


def check(history: History, *, steps_max: int = STEPS_MAX) -> Report:
    """Check a history against everything that Quorate promises its clients.

    ``steps_max`` bounds each search, in configurations; a key whose search exceeds it is reported
    as undecided, never as valid.
    """
    operations = history.operations
    report = Report(
        unit=history.unit,
        operations=len(operations),
        answered=sum(map(_is_answered, operations)),
        batches=len(history.log),
        gaps=len(history.gaps),
        unread=sum(gap.end - gap.base for gap in history.gaps)
        + (history.log[0].base if history.log else 0),
        deliveries=len(history.deliveries),
        outcomes=dict(Counter(map(_kind, operations))),
    )
    report.violations += log_order.freshness_violations(operations)
    report.violations += log_order.id_violations(operations)
    report.violations += log_violations(history.log, history.gaps)
    report.violations += write_violations(history)
    report.violations += watch_violations(history)
    floor = log_order.floors(operations)
    places = places_in(operations, history.log)
    for key, found in history.by_key().items():
        report.keys += 1
        _check_key(key, found, (floor, places), report, steps_max)
    return report


def _check_key(
    key: str,
    operations: list[Operation],
    offsets: tuple[dict[int, int], Places],
    report: Report,
    steps_max: int,
) -> None:
    floor, places = offsets
    in_time = real_time.find_order(key, operations, places=places, steps_max=steps_max)
    in_log = log_order.find_order(key, operations, floor, places=places, steps_max=steps_max)
    report.steps += in_time.steps + in_log.steps
    if in_time.check_result is CheckResult.INVALID:
        if len(report.violations) < EXPLAINED_MAX:
            report.violations.append(real_time.explain(key, operations, steps_max=steps_max))
        else:
            text = "no order explains the responses that clients received"
            report.violations.append(Violation(real_time.RULE, key, text))
    if in_log.check_result is CheckResult.INVALID:
        report.violations.append(log_order.explain(key, operations, in_log))
    if CheckResult.UNKNOWN in (in_time.check_result, in_log.check_result):
        report.undecided.append(key)


def _is_answered(operation: Operation) -> bool:
    if operation.outcome is Outcome.FAILED:
        # A failed read returned no state; a write without an error code was never sent.
        return not operation.is_read and bool(operation.error)
    return operation.outcome is Outcome.OK


def _kind(operation: Operation) -> str:
    # ``_value_`` because the property ``value`` costs a call, and this runs for every operation.
    level = operation.level
    name = operation.action._value_ if level is None else f"read {level._value_}"
    return f"{name} {operation.outcome._value_}"
