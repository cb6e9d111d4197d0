"""Check that every read, at every level, shows the log prefix that its response names.

Offsets are a second clock. An acknowledged write takes effect at its end offset, a read at the
offset of its response, and a write of unknown outcome after every response received before its
call. On that clock all reads of a key, of all levels, must be linearizable together. What a level
promises beyond that is checked by comparing offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter

from history.hints import Places, search_with_hints
from history.model import Model, State
from history.operation import Action, Level, Operation, Outcome
from history.search import FOREVER, STEPS_MAX, Found, Timed, search
from history.violation import Violation

PREFIX_RULE = "prefix"
_CALL = attrgetter("call")
_END = attrgetter("end")


def freshness_violations(operations: Sequence[Operation]) -> list[Violation]:
    """Return the responses that are older than their read level allows.

    A linearizable read, like a write, must be at or above every offset returned to any client
    before its call. A read at-least N must be at N or above. Offsets never decrease in a session.
    """
    violations = []
    ended = _in_order_of_answers(operations)
    called = sorted(ended, key=_CALL)
    newest: Operation | None = None
    by_session: dict[str, Operation] = {}
    position = 0
    for operation in called:
        while position < len(ended) and (ended[position].end or 0) < operation.call:
            before = ended[position]
            position += 1
            if newest is None or before.offset > newest.offset:
                newest = before
            held = by_session.get(before.session)
            if before.session and (held is None or before.offset > held.offset):
                by_session[before.session] = before
        is_fresh = operation.level in (None, Level.LINEARIZABLE)
        if is_fresh and newest is not None and operation.offset < newest.offset:
            rule = "stale-read" if operation.is_read else "stale-write"
            violations.append(_older(rule, operation, newest))
        if operation.level is Level.AT_LEAST and operation.offset < operation.at_least:
            text = f"answered at offset {operation.offset}, asked for at least {operation.at_least}"
            violations.append(Violation("at-least", operation.key, text, (operation,)))
        held = by_session.get(operation.session) if operation.session else None
        if operation.is_read and held is not None and operation.offset < held.offset:
            violations.append(_older("session-went-back", operation, held))
    return violations


def id_violations(operations: Sequence[Operation]) -> list[Violation]:
    """Return topic ids that were assigned twice."""
    given: dict[object, list[Operation]] = defaultdict(list)
    for each in operations:
        if each.action is Action.CREATE and each.outcome is Outcome.OK:
            topic_id = each.result.get("topic_id")
            if topic_id:
                given[topic_id].append(each)
    return [
        Violation("unique-ids", found[0].key, f"id {topic_id} was assigned twice", tuple(found))
        for topic_id, found in given.items()
        if len(found) > 1
    ]


def floors(operations: Sequence[Operation]) -> dict[int, int]:
    """Return, by operation number, the highest offset returned to any client before its call."""
    ended = _in_order_of_answers(operations)
    found: dict[int, int] = {}
    newest, position = -1, 0
    for operation in sorted(operations, key=_CALL):
        while position < len(ended) and (ended[position].end or 0) < operation.call:
            newest = max(newest, ended[position].offset)
            position += 1
        found[operation.number] = newest
    return found


def find_order(
    key: str,
    operations: Sequence[Operation],
    floor: Mapping[int, int],
    *,
    places: Places | None = None,
    steps_max: int = STEPS_MAX,
) -> Found[State, Operation]:
    """Search an order in which every response about one key shows the log prefix it names.

    ``places`` are hints that only speed up the search, as in ``real_time``.
    """
    timed = []
    for each in operations:
        if each.is_answered:
            # Reads at an offset see the write that ends there. A write that changed nothing may
            # also have been evaluated there.
            moment = 2 * each.offset + each.is_read
            timed.append(Timed(moment, moment, each))
        elif not each.is_read and each.outcome is not Outcome.FAILED:
            begin = 2 * (floor[each.number] + 1)
            timed.append(Timed(begin, FOREVER, each, is_optional=True))
    model = Model(key, operations)
    if places is not None and any(each.is_optional for each in timed):
        return search_with_hints(timed, _at_places(timed, places), model, steps_max=steps_max)
    return search(timed, model.initial, model.step, steps_max=steps_max)


def _at_places(timed: Sequence[Timed[Operation]], places: Places) -> list[Timed[Operation]]:
    """Pin writes of unknown outcome to their log offset; omit those the log does not show."""
    found = [each for each in timed if not each.is_optional]
    for each in timed:
        moment = 2 * places.get(each.operation.number, -1)
        if each.is_optional and moment >= each.begin:
            found.append(Timed(moment, moment, each.operation))
    return found


def explain(key: str, operations: Sequence[Operation], found: Found[State, Operation]) -> Violation:
    """Describe which responses do not match the prefix they name."""
    stuck = found.stuck[0] if found.stuck else None
    around = [
        each
        for each in operations
        if stuck is not None and (each.outcome is Outcome.UNKNOWN or each.offset <= stuck.offset)
    ]
    around.sort(key=lambda each: each.offset)
    numbers = {each.number for each in (*around[-12:], *found.stuck)}
    where = f"offset {stuck.offset}" if stuck is not None else "some offset"
    message = (
        f"the response at {where} does not match the state of the log there. "
        f"Furthest state: {found.state}"
    )
    return Violation(
        PREFIX_RULE, key, message, tuple(each for each in operations if each.number in numbers)
    )


def _older(rule: str, operation: Operation, before: Operation) -> Violation:
    message = (
        f"operation {operation.number} got a response at offset {operation.offset}, although "
        f"operation {before.number} had got one at {before.offset} before it was called"
    )
    return Violation(rule, operation.key, message, (before, operation))


def _in_order_of_answers(operations: Sequence[Operation]) -> list[Operation]:
    answered = [each for each in operations if each.is_answered]
    return sorted(answered, key=_END)
